"""Defines what a pool needs of the consumer, and of the producer that forwards records."""

from __future__ import annotations

from typing import Any, Protocol

from ...records import Record
from ..metadata.cluster import TopicPartition

__all__ = ["ConsumerPort", "RecordReceiver", "RecordSink"]


class RecordSink(Protocol):
    """Forwards records: a producer, which waits for all in-sync replicas."""

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
    """Takes records from the consumer: a pool."""

    @property
    def is_taking(self) -> bool: ...

    def take(
        self, state: object, claim: object, tp: TopicPartition, records: list[Record]
    ) -> None: ...


class ConsumerPort(Protocol):
    """What a processing pool needs of its consumer."""

    async def take_next(self, receiver: RecordReceiver) -> bool:
        """Has the receiver take what is polled next; returns False at the end."""
        ...

    @property
    def is_out_of_session(self) -> bool:
        """True if other members may have the partitions."""
        ...

    async def until_in_session(self) -> None:
        """Waits until it is known whether they have."""
        ...

    def apply_backpressure(self, tp: TopicPartition) -> None:
        """Polls no more of a partition for now."""
        ...

    def release_backpressure(self, tp: TopicPartition) -> None:
        """Polls a partition again."""
        ...

    def on_drained(self, *, is_lost: bool) -> None:
        """Records of a partition that is being revoked, or is lost, are no longer in flight."""
        ...

    def commit_soon(self) -> None:
        """Commits what is processed."""
        ...
