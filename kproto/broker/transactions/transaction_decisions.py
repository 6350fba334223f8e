"""Decides the outcome of a request to the transaction coordinator, from metadata alone.

Each function returns the metadata after the request, which the caller stores. A function returns
the same metadata if the request has no effect, and raises BrokerResponseError with the error of the
response. Source: KIP-98, KIP-360, KIP-588, KIP-890; the order of checks is that of Kafka's
TransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ..api_error import api_error
from ..groups.committed_offsets import TopicPartition
from .transaction_metadata import (
    EPOCH_BUMP_VERSION,
    NO_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
    is_epoch_exhausted,
)
from .transaction_state import TransactionState

__all__ = [
    "ProducerIdAndEpoch",
    "decide_add_partitions",
    "decide_end",
    "decide_forced_abort",
    "decide_init_producer_id",
    "is_in_transaction",
]

_S = TransactionState
_MAX_EPOCH: Final = 0x7FFF


class ProducerIdAndEpoch(NamedTuple):
    """Names a producer by its id and epoch."""

    producer_id: int
    epoch: int


def decide_init_producer_id(
    metadata: TransactionMetadata,
    timeout_ms: int,
    current: ProducerIdAndEpoch | None,
    now_ms: int,
    new_producer_id: Callable[[], int],
    *,
    keeps_prepared: bool = False,
) -> TransactionMetadata:
    """Returns the metadata with the producer id and epoch in the response to InitProducerId.

    `current` is the producer id and epoch in the request, None if the producer has none. If a
    transaction is ongoing, returns the metadata unchanged: the caller aborts the transaction by
    `decide_forced_abort`, and responds CONCURRENT_TRANSACTIONS. With `keeps_prepared` the producer
    takes over the ongoing transaction instead (KIP-939).

    Raises CONCURRENT_TRANSACTIONS if a transaction is prepared, PRODUCER_FENCED if `current` is
    neither the present nor the previous producer id and epoch, and UNKNOWN_SERVER_ERROR in a state
    that is never stored.
    """
    if current is not None and not _may_continue(metadata, current):
        raise _fenced(metadata, current.epoch)
    if metadata.state.is_prepared:
        raise _concurrent(metadata)
    _check_state(metadata)
    if metadata.state is _S.ONGOING and keeps_prepared:
        return _taken_over(metadata, now_ms, new_producer_id)
    if metadata.state is _S.ONGOING:
        return metadata
    if metadata.is_exhausted and (current is None or current.epoch == metadata.epoch):
        return metadata.with_new_producer_id(
            new_producer_id(), timeout_ms, now_ms, keeps_last_epoch=current is not None
        )
    epoch, last_epoch = metadata.epoch + 1, metadata.epoch
    if current is None:
        last_epoch = NO_EPOCH
    elif metadata.epoch not in (NO_EPOCH, current.epoch):
        if current.epoch != metadata.last_epoch:
            raise _fenced(metadata, current.epoch)
        # The producer repeats a request whose response it did not receive.
        epoch, last_epoch = metadata.epoch, metadata.last_epoch
    return metadata.with_bumped_epoch(timeout_ms, epoch, last_epoch, now_ms)


def _taken_over(
    metadata: TransactionMetadata, now_ms: int, new_producer_id: Callable[[], int]
) -> TransactionMetadata:
    """Returns the metadata after a new producer has taken over the ongoing transaction."""
    producer_id, epoch = metadata.producer_id, metadata.epoch
    if metadata.is_taken_over:
        producer_id, epoch = metadata.next_producer_id, metadata.next_epoch
    if is_epoch_exhausted(epoch + 1):  # the end of the transaction bumps it, too
        return metadata.taken_over(new_producer_id(), 0, now_ms)
    return metadata.taken_over(producer_id, epoch + 1, now_ms)


def decide_forced_abort(
    metadata: TransactionMetadata,
    now_ms: int,
    new_producer_id: Callable[[], int],
    transaction_version: int,
) -> TransactionMetadata:
    """Returns the metadata after the coordinator has aborted a transaction and fenced the producer.

    The coordinator aborts for InitProducerId, and when the transaction has timed out.
    `transaction_version` is the finalized level of transaction.version. From level 2 on, the epoch
    is bumped as in an abort by the producer. Below level 2, fencing bumps the epoch (KIP-588).
    """
    bumps = transaction_version >= EPOCH_BUMP_VERSION
    return (metadata if bumps else metadata.fenced()).prepared(
        is_commit=False,
        client_version=transaction_version if bumps else 0,
        next_producer_id=new_producer_id() if bumps and metadata.is_exhausted else NO_PRODUCER_ID,
        now_ms=now_ms,
    )


def _may_continue(metadata: TransactionMetadata, current: ProducerIdAndEpoch) -> bool:
    """Returns True if a request with the producer id and epoch `current` is accepted.

    The producer id must be the producer id of `metadata`. The previous producer id is accepted too
    if its epoch is exhausted, because the request may then be a repetition. Any producer id is
    accepted if the coordinator has just created the metadata.
    """
    return (
        metadata.epoch == NO_EPOCH
        or current.producer_id == metadata.producer_id
        or (
            current.producer_id == metadata.previous_producer_id
            and is_epoch_exhausted(current.epoch)
        )
    )


def decide_add_partitions(
    metadata: TransactionMetadata | None,
    producer: ProducerIdAndEpoch,
    partitions: frozenset[TopicPartition],
    now_ms: int,
    client_version: int,
) -> TransactionMetadata:
    """Returns the metadata with `partitions` in the transaction.

    Raises INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED and CONCURRENT_TRANSACTIONS, and
    UNKNOWN_SERVER_ERROR in a state that is never stored.
    """
    metadata = _check_producer(metadata, producer)
    if metadata.state is _S.ONGOING and partitions <= metadata.partitions:
        return metadata
    _check_state(metadata)
    return metadata.with_partitions(partitions, now_ms, client_version)


def is_in_transaction(
    metadata: TransactionMetadata | None, producer: ProducerIdAndEpoch, partition: TopicPartition
) -> bool:
    """Returns True if a partition was added to the producer's transaction (KIP-890).

    Raises INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED and CONCURRENT_TRANSACTIONS.
    """
    return partition in _check_producer(metadata, producer).partitions


def _check_producer(
    metadata: TransactionMetadata | None, producer: ProducerIdAndEpoch
) -> TransactionMetadata:
    if metadata is None or metadata.producer_id != producer.producer_id:
        raise _unknown_mapping(producer)
    if metadata.epoch != producer.epoch or metadata.is_taken_over:
        raise _fenced(metadata, producer.epoch)
    if metadata.state.is_prepared:
        raise _concurrent(metadata)
    return metadata


def decide_end(
    metadata: TransactionMetadata | None,
    producer: ProducerIdAndEpoch,
    *,
    is_commit: bool,
    client_version: int,
    now_ms: int,
    new_producer_id: Callable[[], int],
) -> TransactionMetadata:
    """Returns the metadata after EndTxn: prepared, or unchanged for a repeated request.

    `client_version` is 2 for clients that bump the epoch at the end of a transaction (EndTxn v5,
    KIP-890). Raises INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS and
    INVALID_TXN_STATE, and UNKNOWN_SERVER_ERROR in a state that is never stored.
    """
    bumps = client_version >= EPOCH_BUMP_VERSION
    is_retry = bumps and metadata is not None and _is_retry(metadata, producer)
    if metadata is None:
        raise _unknown_mapping(producer)
    present = ProducerIdAndEpoch(metadata.producer_id, metadata.epoch)
    if metadata.is_taken_over:
        present = ProducerIdAndEpoch(metadata.next_producer_id, metadata.next_epoch)
        is_retry = bumps and metadata.state.is_prepared and producer == present
        if producer != present:
            raise _fenced(metadata, producer.epoch)
    if not (is_retry or present.producer_id == producer.producer_id):
        raise _unknown_mapping(producer)
    if not (is_retry or present.epoch == producer.epoch):
        raise _fenced(metadata, producer.epoch)
    outcome = _outcome(metadata.state, is_commit=is_commit, bumps=bumps, is_retry=is_retry)
    if outcome == "NONE":
        return metadata
    if outcome == "CONCURRENT_TRANSACTIONS":
        raise _concurrent(metadata)
    if outcome != "PREPARE":
        raise api_error(
            outcome,
            f"transactional id {metadata.transactional_id!r} is in state {metadata.state.label} "
            f"and cannot {'commit' if is_commit else 'abort'}",
        )
    next_producer_id = new_producer_id() if bumps and metadata.is_exhausted else NO_PRODUCER_ID
    return metadata.prepared(
        is_commit=is_commit,
        client_version=client_version,
        next_producer_id=next_producer_id,
        now_ms=now_ms,
    )


def _is_retry(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> bool:
    """Returns True if EndTxn has taken effect, but the producer did not receive the response.

    In this case, the producer still has the previous epoch or the previous producer id.
    """
    if producer.producer_id == metadata.producer_id:
        return producer.epoch + 1 == metadata.epoch
    return (
        producer.producer_id == metadata.previous_producer_id
        and producer.epoch == _MAX_EPOCH - 1
        and metadata.epoch == 0
    )


#: The states that Kafka's coordinator never stores. It refuses requests in such a state with the
#: error of an internal fault.
_NEVER_STORED: Final = (_S.DEAD, _S.PREPARE_EPOCH_FENCE)

#: The outcome of EndTxn by state: for a commit, and for an abort.
_OUTCOMES: Final = {
    **dict.fromkeys(_NEVER_STORED, ("UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR")),
    _S.ONGOING: ("PREPARE", "PREPARE"),
    _S.PREPARE_COMMIT: ("CONCURRENT_TRANSACTIONS", "INVALID_TXN_STATE"),
    _S.PREPARE_ABORT: ("INVALID_TXN_STATE", "CONCURRENT_TRANSACTIONS"),
    _S.COMPLETE_COMMIT: ("NONE", "INVALID_TXN_STATE"),
    _S.COMPLETE_ABORT: ("INVALID_TXN_STATE", "NONE"),
    _S.EMPTY: ("INVALID_TXN_STATE", "INVALID_TXN_STATE"),
}

#: The outcome of a repeated EndTxn by state, if the client bumps the epoch (KIP-890). The epoch of
#: such a request is the epoch before the bump. The request succeeds only if it repeats the outcome
#: of the transaction that the producer has ended.
_OUTCOMES_OF_RETRY: Final = {
    **_OUTCOMES,
    _S.ONGOING: ("PRODUCER_FENCED", "PRODUCER_FENCED"),
    _S.EMPTY: ("PRODUCER_FENCED", "PRODUCER_FENCED"),
}

#: The outcome of an EndTxn that is not repeated, by state, if the client bumps the epoch. Such a
#: client may abort a transaction without partitions. While a transaction is prepared, its producer
#: has the epoch before the bump, so a request with the bumped epoch is fenced.
_OUTCOMES_WITH_BUMP: Final = {
    **_OUTCOMES,
    _S.PREPARE_COMMIT: ("PRODUCER_FENCED", "PRODUCER_FENCED"),
    _S.PREPARE_ABORT: ("PRODUCER_FENCED", "PRODUCER_FENCED"),
    _S.COMPLETE_COMMIT: ("INVALID_TXN_STATE", "PREPARE"),
    _S.COMPLETE_ABORT: ("INVALID_TXN_STATE", "PREPARE"),
    _S.EMPTY: ("INVALID_TXN_STATE", "PREPARE"),
}


def _outcome(state: TransactionState, *, is_commit: bool, bumps: bool, is_retry: bool) -> str:
    table = _OUTCOMES
    if bumps:
        table = _OUTCOMES_OF_RETRY if is_retry else _OUTCOMES_WITH_BUMP
    return table[state][0 if is_commit else 1]


def _check_state(metadata: TransactionMetadata) -> None:
    """Raises UNKNOWN_SERVER_ERROR in a state that is never stored."""
    if metadata.state in _NEVER_STORED:
        raise api_error(
            "UNKNOWN_SERVER_ERROR",
            f"transactional id {metadata.transactional_id!r} is in state {metadata.state.label}, "
            "which Kafka never stores",
        )


def _unknown_mapping(producer: ProducerIdAndEpoch) -> Exception:
    return api_error(
        "INVALID_PRODUCER_ID_MAPPING",
        f"the transactional id does not have producer id {producer.producer_id}",
    )


def _fenced(metadata: TransactionMetadata, epoch: int) -> Exception:
    return api_error(
        "PRODUCER_FENCED",
        f"transactional id {metadata.transactional_id!r} has epoch {metadata.epoch}, not {epoch}",
    )


def _concurrent(metadata: TransactionMetadata) -> Exception:
    return api_error(
        "CONCURRENT_TRANSACTIONS",
        f"transactional id {metadata.transactional_id!r} is in state {metadata.state.label}",
    )
