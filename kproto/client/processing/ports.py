"""The interfaces of a processing pool: consumer, acks, and the producer of forwarded records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from ...records import Record
from ...wire.errors import KprotoError, UnreadableRecordError
from ..commits.transactional_commit import TransactionalCommit
from ..metadata.cluster import TopicPartition
from ..producer_record import ProducerRecord
from .shard import Shard

__all__ = [
    "AckSink",
    "ConsumerPort",
    "RecordReceiver",
    "RecordSink",
    "RestartablePool",
    "TransactionalConsumer",
    "TransactionalProducer",
]


class RecordSink(Protocol):
    """Sends forwarded records, and waits until all in-sync replicas have stored them.

    A `Producer` is such an object.
    """

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = ...,
        headers: Any = ...,
    ) -> object: ...

    async def close(self, *, timeout_ms: int | None = ...) -> None: ...


class RecordReceiver(Protocol):
    """Accepts the records that a consumer polls; a processing pool implements this protocol."""

    @property
    def accepts_records(self) -> bool:
        """True if a poll may pass records to the receiver."""
        ...

    @property
    def max_list_bytes(self) -> int:
        """The approximate maximum size of a polled list of records, in bytes."""
        ...

    def on_poll_refused(self) -> None:
        """Notes that a poll was refused because `accepts_records` is False.

        The receiver calls `wake_poll` when it accepts records again.
        """
        ...

    def accept_records(
        self, state: object, assignment_epoch: object, tp: TopicPartition, records: list[Record]
    ) -> None: ...

    def accept_unreadable(
        self,
        state: object,
        assignment_epoch: object,
        tp: TopicPartition,
        error: UnreadableRecordError,
    ) -> None:
        """Queues an unreadable record: it fails with `error`, and no handler is called for it."""
        ...


class ConsumerPort(Protocol):
    """The methods of a consumer that a processing pool calls."""

    async def poll_records(self, receiver: RecordReceiver) -> bool:
        """Polls records, and passes them to `receiver`; returns False if the consumer is closed."""
        ...

    @property
    def is_out_of_session(self) -> bool:
        """True if the session may have expired, so that other members may own the partitions."""
        ...

    async def until_in_session(self) -> None:
        """Waits until a heartbeat has extended the session, or the partitions are lost."""
        ...

    def apply_backpressure(self, tp: TopicPartition) -> None:
        """Stops polling a partition until `release_backpressure`."""
        ...

    def release_backpressure(self, tp: TopicPartition) -> None:
        """Ends the backpressure: records of the partition are polled again."""
        ...

    def wake_poll(self) -> None:
        """Wakes `poll_records`, which then checks again whether the receiver accepts records."""
        ...

    def on_drained(self, *, is_lost: bool) -> None:
        """Makes a revocation check again whether handlers still process records of its partitions.

        A rejoin may wait for handlers that process records of lost partitions. If `is_lost` is True
        and no such record is left, wakes this rejoin.
        """
        ...


class AckSink(Protocol):
    """Acknowledges the records that the tracker of the pool lists as processed.

    `consumer.offset_acks` commits the offsets of these records, and `run_transactions` commits a
    transaction. Another sink may acknowledge records of a share group.
    """

    def acknowledge_soon(self) -> None:
        """Acknowledges all processed records soon; returns at once."""
        ...

    async def acknowledge(self, limit_ms: int) -> None:
        """Acknowledges all processed records, within `limit_ms`; logs a failure."""
        ...

    def on_lost(self, epochs: Collection[object]) -> None:
        """Handles the loss or revocation of partitions with these assignment epochs."""
        ...


class TransactionalProducer(Protocol):
    """A producer with a transactional id; `producer.run_producer` implements it.

    A KprotoError of `start`, `begin`, `commit` or `abort` means that the producer cannot continue.
    """

    async def start(self) -> None:
        """Requests a producer id, and so fences other producers with the transactional id."""
        ...

    async def begin(self) -> None:
        """Begins a transaction."""
        ...

    async def append(
        self, topic: str, record: ProducerRecord, on_failed: Callable[[KprotoError, bool], object]
    ) -> Awaitable[object]:
        """Appends a record; the caller awaits the result to wait for the record's ack.

        If the record fails later, calls `on_failed` with the error, and with the result of
        `is_refusal`. Raises EncodeError or ConfigurationError for an invalid record, without effect
        on the transaction. After other errors the transaction must be aborted.
        """
        ...

    async def ensure_topic(self, topic: str) -> None:
        """Waits for the metadata of a topic; raises the error of a topic that does not exist."""
        ...

    def is_refusal(self, error: BaseException) -> bool:
        """Returns True if a broker has refused the record itself, and would refuse it again.

        Returns False if the record has failed only because the transaction or the producer has
        failed.
        """
        ...

    async def commit(self, commit: TransactionalCommit) -> KprotoError | None:
        """Commits the transaction with offsets; returns None, or the error that has aborted it."""
        ...

    async def abort(self) -> None:
        """Aborts the open transaction, if there is one."""
        ...

    async def close(self, *, timeout_ms: int | None = ...) -> None:
        """Aborts the open transaction, if there is one, and closes the producer."""
        ...


class TransactionalConsumer(Protocol):
    """The methods of a group consumer for `run` with a transactional id."""

    @property
    def can_commit(self) -> bool:
        """True if the coordinator accepts offsets: the member is in a generation."""
        ...

    @property
    def has_failed(self) -> bool:
        """True if the member has failed, so that no offset can be committed any more."""
        ...

    async def stop_commits(self) -> None:
        """Commits processed offsets if `auto_commit` is True; then stops the consumer's commits."""
        ...

    def processed_commit(self) -> TransactionalCommit:
        """Returns the offsets of processed records that are not committed.

        Raises CommitFailedError if the member is in no generation.
        """
        ...

    def owns(self, epochs: Collection[object]) -> bool:
        """Returns True if the offsets of all these assignment epochs can still be committed."""
        ...

    async def seek_to_committed(self) -> None:
        """Moves the positions of the assigned partitions back to the committed offsets."""
        ...

    def seek_later(self) -> None:
        """Makes the next poll move the positions back to the committed offsets."""
        ...


class RestartablePool(Protocol):
    """The methods of the pool with which `run_transactions` restarts the processing."""

    @property
    def current_shard(self) -> Shard:
        """The shard of the record that the current task processes."""
        ...

    def suspend(self) -> None:
        """Drops all records, ignores the results of running handlers, and accepts no record."""
        ...

    def continue_polling(self) -> None:
        """Accepts records again."""
        ...

    def fail(self, error: BaseException) -> None:
        """Stops the pool with `error`."""
        ...
