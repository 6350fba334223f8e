"""Holds the metadata of a transactional id, and derives the metadata after each transition.

Source: KIP-98, KIP-360 (epoch bump by the producer), KIP-588 (fencing), KIP-890 (epoch bump at the
end of each transaction), KIP-939 (two-phase commit). The rules are those of Kafka's
TransactionMetadata.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from ..groups.committed_offsets import TopicPartition
from .transaction_state import PREVIOUS_STATES, TransactionState

__all__ = [
    "EPOCH_BUMP_VERSION",
    "NO_EPOCH",
    "NO_PRODUCER_ID",
    "NO_TIMEOUT_MS",
    "TransactionMetadata",
    "is_epoch_exhausted",
]

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
_NO_TIME: Final = -1
_MAX_EPOCH: Final = 0x7FFF

#: The transaction timeout of a producer with two-phase commit: its transactions never time out.
NO_TIMEOUT_MS: Final = 0x7FFF_FFFF

#: The first transaction version (feature level of transaction.version) that bumps the epoch at the
#: end of each transaction.
EPOCH_BUMP_VERSION: Final = 2


def is_epoch_exhausted(epoch: int) -> bool:
    """Returns True if the producer needs a new producer id, because the epoch cannot be bumped.

    The highest epoch (32,767) is reserved for fencing.
    """
    return epoch >= _MAX_EPOCH - 1


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """Holds the metadata of one transactional id. Times are in ms since 1970, -1 for none.

    - `previous_producer_id`: the producer id before the last transition, -1 for none.
    - `next_producer_id`: if the epoch is exhausted, the producer id after the transaction; if a
      producer has taken over the prepared transaction, the id of this producer; else -1.
    - `next_epoch`: the epoch of the producer that has taken over a prepared transaction (KIP-939),
      else -1. Only this producer may end the transaction.
    - `last_epoch`: the epoch before the last bump, -1 if no producer may still use it.
    - `timeout_ms`: the transaction timeout (transaction.timeout.ms).
    - `partitions`: the partitions of the ongoing or prepared transaction.
    - `client_version`: the transaction version of the client at the last transition.
    - `has_failed_fence`: whether a fence bumped the epoch, but could not be stored.
    """

    transactional_id: str
    producer_id: int
    timeout_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    next_epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = _NO_TIME
    update_ms: int = _NO_TIME
    client_version: int = 0
    has_failed_fence: bool = False

    @property
    def is_exhausted(self) -> bool:
        """Returns True if the producer may not get a higher epoch."""
        return is_epoch_exhausted(self.epoch)

    @property
    def is_taken_over(self) -> bool:
        """Returns True if a new producer has taken over the prepared transaction (KIP-939)."""
        return self.next_epoch != NO_EPOCH

    def taken_over(self, producer_id: int, epoch: int, now_ms: int) -> TransactionMetadata:
        """Returns the metadata of the ongoing transaction, which a new producer will end."""
        return self._to(
            TransactionState.ONGOING,
            next_producer_id=producer_id,
            next_epoch=epoch,
            update_ms=now_ms,
        )

    def _to(self, state: TransactionState, **changes: Any) -> TransactionMetadata:
        assert self.state in PREVIOUS_STATES[state], (
            f"{self.transactional_id!r} cannot become {state.name} from {self.state.name}"
        )
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)

    def with_bumped_epoch(
        self, timeout_ms: int, epoch: int, last_epoch: int, now_ms: int
    ) -> TransactionMetadata:
        """Returns the metadata after InitProducerId, with the given epochs."""
        return self._to(
            TransactionState.EMPTY,
            epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=_NO_TIME,
            update_ms=now_ms,
        )

    def with_new_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, keeps_last_epoch: bool
    ) -> TransactionMetadata:
        """Returns the metadata after an InitProducerId that replaced the producer id.

        The producer id is replaced because its epoch is exhausted.

        `keeps_last_epoch` is True if the request had the producer's epoch: the metadata then keeps
        this epoch, so that the producer can repeat the request.
        """
        return self._to(
            TransactionState.EMPTY,
            producer_id=producer_id,
            epoch=0,
            last_epoch=self.epoch if keeps_last_epoch else NO_EPOCH,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=_NO_TIME,
            update_ms=now_ms,
        )

    def fenced(self) -> TransactionMetadata:
        """Returns the metadata with an epoch that fences the current producer (KIP-588).

        The state stays ONGOING; the caller aborts the transaction next. If an earlier fence could
        not be stored, returns the epoch of that fence again.
        """
        if self.is_taken_over:  # the epoch that the new producer has
            return replace(self, last_epoch=NO_EPOCH)
        keeps = self.has_failed_fence or self.epoch == _MAX_EPOCH
        return replace(self, epoch=self.epoch if keeps else self.epoch + 1, last_epoch=NO_EPOCH)

    def with_partitions(
        self, partitions: frozenset[TopicPartition], now_ms: int, client_version: int
    ) -> TransactionMetadata:
        """Returns the metadata after `partitions` are added to the transaction.

        The first partitions begin a transaction.
        """
        is_ongoing = self.state is TransactionState.ONGOING
        return self._to(
            TransactionState.ONGOING,
            partitions=self.partitions | partitions,
            start_ms=self.start_ms if is_ongoing else now_ms,
            update_ms=now_ms,
            client_version=client_version,
        )

    def prepared(
        self, *, is_commit: bool, client_version: int, next_producer_id: int, now_ms: int
    ) -> TransactionMetadata:
        """Returns the metadata after the decision to commit or abort the transaction.

        With transaction version 2, the epoch is bumped. If no partition was added, the transaction
        starts at `now_ms`. A producer that has taken over the transaction keeps its id and epoch.
        """
        if self.is_taken_over:
            next_producer_id = self.next_producer_id
        state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        epoch, last_epoch = self.epoch, self.last_epoch
        if client_version >= EPOCH_BUMP_VERSION:
            epoch, last_epoch = min(self.epoch + 1, _MAX_EPOCH), self.epoch
        return self._to(
            state,
            epoch=epoch,
            last_epoch=last_epoch,
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            next_producer_id=next_producer_id,
            update_ms=now_ms,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """Returns the metadata after all markers are written.

        If the epoch was exhausted, the next producer id takes effect, with epoch 0. If a new
        producer has ended a prepared transaction (KIP-939), its producer id and epoch take effect.
        """
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        producer_id, epoch = self.producer_id, self.epoch
        if self.is_taken_over:
            producer_id, epoch = self.producer_after_takeover
        elif self.client_version >= EPOCH_BUMP_VERSION and self.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = self.next_producer_id, 0
        return self._to(
            TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
            producer_id=producer_id,
            epoch=epoch,
            next_producer_id=NO_PRODUCER_ID,
            next_epoch=NO_EPOCH,
            partitions=frozenset(),
            update_ms=now_ms,
            has_failed_fence=False,
        )

    @property
    def producer_after_takeover(self) -> tuple[int, int]:
        """Returns the producer id and epoch after the end of a transaction that is taken over."""
        bumps = self.client_version >= EPOCH_BUMP_VERSION
        return self.next_producer_id, min(self.next_epoch + bumps, _MAX_EPOCH)

    def is_timed_out(self, now_ms: int) -> bool:
        """Returns True if the transaction has been ongoing for longer than its timeout.

        A transaction with two-phase commit never times out.
        """
        if self.timeout_ms == NO_TIMEOUT_MS:
            return False
        return self.state is TransactionState.ONGOING and self.start_ms + self.timeout_ms < now_ms

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Returns True if the transactional id was not used for `expiration_ms`.

        `expiration_ms` is transactional.id.expiration.ms.

        An id with an ongoing or prepared transaction does not expire.
        """
        is_idle = self.state is TransactionState.EMPTY or self.state.is_complete
        return is_idle and self.update_ms <= now_ms - expiration_ms
