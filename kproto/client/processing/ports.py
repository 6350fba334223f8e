"""Defines what a pool needs of the consumer, and of the producer that forwards records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

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
        self, state: object, claim: object, place: TopicPartition, records: list[Record]
    ) -> None: ...


class ConsumerPort(NamedTuple):
    """The calls of a pool to its consumer."""

    #: Passes the next records to the receiver, once there are some; returns False at the end.
    take_next: Callable[[RecordReceiver], Awaitable[bool]]
    #: True if other members may own the assigned partitions; and waits until that is known.
    is_out_of_session: Callable[[], bool]
    until_in_session: Callable[[], Awaitable[None]]
    #: Applies backpressure to a partition; and releases it.
    hold_back: Callable[[TopicPartition], None]
    let_go: Callable[[TopicPartition], None]
    #: A record of a partition that is being revoked has ended; True if it is lost already.
    has_finished: Callable[[bool], None]
    #: Requests a commit.
    commit_soon: Callable[[], None]
