"""Tracks the producer id, its epoch, and the sequence numbers of each partition (KIP-98, KIP-360).

Does no I/O, and has no batches. `ProducerState` has the producer id of InitProducerId, for all
partitions; a `PartitionSequence` has the epoch and the next sequence number of one partition. By
these rules no record is stored twice, and the records of a partition are stored in order:

| event | effect on the sequence of the partition | effect on the producer |
|---|---|---|
| the first batch under an id and epoch | it is sent alone, with sequence 0, until it is acked | – |
| a batch is acked | up to `max_in_flight` batches may be in flight | – |
| a batch fails for good | later batches restart at 0 under the next epoch | – |
| a batch fails, and its id is unusable | later batches wait for a new id | InitProducerId is sent |

Each partition bumps its own epoch, because brokers keep the epoch by partition.

A transactional producer has one epoch for all partitions, in `ProducerState.identity`. The
sequences of the partitions continue in the next transaction with the same epoch, and restart at 0
under another epoch. A batch that fails for good makes its transaction fail, so no later batch of
the transaction gets a sequence.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError, KprotoError

__all__ = [
    "LAST_EPOCH",
    "LAST_SEQUENCE",
    "NO_PRODUCER_ID",
    "OutOfOrderAction",
    "PartitionSequence",
    "ProducerIdAndEpoch",
    "ProducerState",
    "identity_after_failure",
    "may_be_stored",
]

#: The largest sequence number; 0 follows it (KIP-98).
LAST_SEQUENCE: Final = 0x7FFFFFFF

#: The largest epoch (KIP-360).
LAST_EPOCH: Final = 0x7FFF

#: Errors after which no epoch of a producer id can be used: the broker has forgotten the id, or
#: another producer uses the id with a later epoch.
_LOSES_PRODUCER_ID: Final = frozenset(
    map(code_of, ("INVALID_PRODUCER_EPOCH", "UNKNOWN_PRODUCER_ID"))
)

#: Error codes after which a batch may be stored; after any other error code the batch is not
#: stored.
_MAY_BE_STORED: Final = frozenset(
    map(
        code_of,
        (
            "KAFKA_STORAGE_ERROR",
            "NETWORK_EXCEPTION",
            "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
            "REQUEST_TIMED_OUT",
            "UNKNOWN_SERVER_ERROR",
        ),
    )
)


class ProducerIdAndEpoch(NamedTuple):
    """A producer id and its epoch; -1 and -1 for a producer that is not idempotent."""

    producer_id: int
    producer_epoch: int


NO_PRODUCER_ID: Final = ProducerIdAndEpoch(-1, -1)


def may_be_stored(error: KprotoError) -> bool:
    """Returns True if a broker may have stored a batch that failed with `error`."""
    return not isinstance(error, BrokerResponseError) or error.code in _MAY_BE_STORED


def identity_after_failure(
    identity: ProducerIdAndEpoch, error: KprotoError
) -> ProducerIdAndEpoch | None:
    """Returns the producer id and epoch for the next batches after a batch under `identity` failed.

    The result is the next epoch of the same producer id, so that a broker refuses the failed batch
    if it still arrives. Returns None if a new producer id must be requested.
    """
    is_lost = isinstance(error, BrokerResponseError) and error.code in _LOSES_PRODUCER_ID
    if is_lost or identity.producer_epoch >= LAST_EPOCH:
        return None
    return identity._replace(producer_epoch=identity.producer_epoch + 1)


class OutOfOrderAction(Enum):
    """The reaction of the producer to OUT_OF_ORDER_SEQUENCE_NUMBER."""

    FAIL = "the batch must keep its sequence, which no broker accepts any more"
    FAIL_UNRESOLVED = "both an earlier failed batch and this one may still be stored"
    RESEQUENCE = "the batch is not stored: it gets a sequence under the next epoch"
    RETRY = "an earlier batch is not acked yet: both are sent again, in their order"
    APPLY_REMEDY = "the table of remedies decides, as for other errors"


class PartitionSequence:
    """The producer id and epoch, and the next sequence number, of one partition.

    `identity` is the producer id and epoch. `identity` is None until the first batch gets a
    sequence number. `identity` becomes None again if, after a failed batch, the partition needs
    another producer id or epoch. `is_acked` is True once a broker has acked a batch under
    `identity`. After a batch has failed for good, `must_restart` is True: the next batch has
    sequence 0. `unresolved_sequence` is True if the broker may have stored the failed batch. A
    transactional producer sets `has_failed` instead: later batches of the transaction fail, too.
    """

    __slots__ = (
        "has_failed",
        "identity",
        "is_acked",
        "must_restart",
        "next_sequence",
        "unresolved_sequence",
    )

    def __init__(self) -> None:
        self.identity: ProducerIdAndEpoch | None = None
        self.next_sequence = 0
        self.is_acked = False
        self.must_restart = False
        self.unresolved_sequence = False
        self.has_failed = False

    def assign(
        self, count: int, producer_identity: ProducerIdAndEpoch
    ) -> tuple[ProducerIdAndEpoch, int]:
        """Returns the producer id and epoch, and the base sequence, of the partition's next batch.

        The batch has `count` records. If the partition has no `identity`, it takes
        `producer_identity`. The sequence is -1 for a producer that is not idempotent.
        """
        if self.identity is None or self.must_restart:
            self.restart(self.identity or producer_identity)
        identity = self.identity or producer_identity
        if identity == NO_PRODUCER_ID:
            return NO_PRODUCER_ID, -1
        base_sequence = self.next_sequence
        self.next_sequence = (base_sequence + count) & LAST_SEQUENCE
        return identity, base_sequence

    def restart(self, identity: ProducerIdAndEpoch) -> None:
        """Sets the next sequence to 0, under `identity`."""
        self.identity = identity
        self.next_sequence = 0
        self.is_acked = self.must_restart = self.unresolved_sequence = self.has_failed = False

    def on_ack(self, identity: ProducerIdAndEpoch) -> None:
        """Stores that a broker has acked a batch under `identity`."""
        self.is_acked = self.is_acked or identity == self.identity

    def on_out_of_order(
        self, *, must_keep_sequence: bool, maybe_stored: bool, has_unacked_predecessor: bool
    ) -> OutOfOrderAction:
        """Returns the action for a batch that failed with OUT_OF_ORDER_SEQUENCE_NUMBER.

        `must_keep_sequence` and `maybe_stored` are those of the batch. `has_unacked_predecessor` is
        True if an earlier batch of the partition is in flight, or waits for its retry.
        """
        if must_keep_sequence or self.has_failed:
            return OutOfOrderAction.FAIL
        if self.must_restart:
            if maybe_stored and self.unresolved_sequence:
                return OutOfOrderAction.FAIL_UNRESOLVED
            return OutOfOrderAction.RESEQUENCE
        if has_unacked_predecessor:
            return OutOfOrderAction.RETRY
        return OutOfOrderAction.APPLY_REMEDY


class ProducerState:
    """The producer id and epoch of one producer.

    `identity` has both; it is None while a producer id has to be requested (InitProducerId). If
    `is_idempotent` is False, the producer has no producer id: `identity` is NO_PRODUCER_ID. If
    `is_transactional` is True, `begin_transaction` sets `identity`.
    """

    __slots__ = ("identity", "is_idempotent", "is_transactional")

    def __init__(self, *, is_idempotent: bool, is_transactional: bool = False) -> None:
        self.is_idempotent = is_idempotent
        self.is_transactional = is_transactional
        self.identity: ProducerIdAndEpoch | None = None if is_idempotent else NO_PRODUCER_ID

    def begin_transaction(self, identity: ProducerIdAndEpoch) -> None:
        """Sets the producer id and epoch for all batches of the next transaction."""
        self.identity = identity

    def disable_idempotence(self) -> None:
        """Sends batches without sequences: the brokers have no producer ids (before Kafka 0.11).

        Call it only before the first batch has a sequence.
        """
        self.is_idempotent = False
        self.identity = NO_PRODUCER_ID

    def assign(
        self, partition_sequence: PartitionSequence, count: int
    ) -> tuple[ProducerIdAndEpoch, int]:
        """Returns producer id and epoch, and the base sequence, of the next batch of a partition.

        The batch has `count` records.
        """
        if self.is_transactional and self.identity != partition_sequence.identity:
            partition_sequence.restart(self.identity or NO_PRODUCER_ID)
        return partition_sequence.assign(count, self.identity or NO_PRODUCER_ID)

    def on_batch_failed(
        self,
        partition_sequence: PartitionSequence,
        identity: ProducerIdAndEpoch,
        error: KprotoError,
        *,
        maybe_stored: bool,
    ) -> None:
        """Restarts the sequence of a partition after its batch under `identity` failed for good.

        `maybe_stored` is True if the broker may have stored the batch, so that it is unknown which
        sequence the broker expects next. Does nothing if the partition has another producer id or
        epoch by now.
        """
        if not self.is_idempotent or identity != partition_sequence.identity:
            return
        if self.is_transactional:
            partition_sequence.has_failed = True
            return
        partition_sequence.must_restart = True
        partition_sequence.unresolved_sequence = (
            partition_sequence.unresolved_sequence or maybe_stored
        )
        partition_sequence.identity = identity_after_failure(identity, error)
        producer_identity = self.identity or NO_PRODUCER_ID
        if (
            partition_sequence.identity is None
            and producer_identity.producer_id == identity.producer_id
        ):
            self.identity = None
