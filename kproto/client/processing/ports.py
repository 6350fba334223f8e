"""The interfaces of a processing pool: consumer, acks, and the producer of forwarded records."""

from __future__ import annotations

from typing import Any, Protocol

from ...records import Record
from ...wire.errors import UnreadableRecordError
from ..metadata.cluster import TopicPartition

__all__ = ["AckSink", "ConsumerPort", "RecordReceiver", "RecordSink"]


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

    `consumer.offset_acks` commits their offsets. Another sink may end a transaction, or acknowledge
    records of a share group.
    """

    def acknowledge_soon(self) -> None:
        """Acknowledges all processed records soon; returns at once."""
        ...

    async def acknowledge(self, limit_ms: int) -> None:
        """Acknowledges all processed records, within `limit_ms`; logs a failure."""
        ...
