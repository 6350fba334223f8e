"""The interfaces of a processing pool: consumer, acks, and the producer of forwarded records."""

from __future__ import annotations

from typing import Any, Protocol

from ...records import Record
from ..metadata.cluster import TopicPartition

__all__ = ["AckSink", "ConsumerPort", "RecordReceiver", "RecordSink"]


class RecordSink(Protocol):
    """Sends forwarded records, and waits for all in-sync replicas: a producer."""

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
    """Accepts records of the consumer: a pool."""

    @property
    def accepts_records(self) -> bool: ...

    def accept_records(
        self, state: object, assignment_epoch: object, tp: TopicPartition, records: list[Record]
    ) -> None: ...


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
        """Polls a partition again."""
        ...

    def on_drained(self, *, is_lost: bool) -> None:
        """Continues a revocation or a rejoin that waits for records in flight."""
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
