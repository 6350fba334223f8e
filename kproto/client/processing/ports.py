"""What a `Run` asks of who reads, and of who sends records on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from ...records import Record
from ..metadata.cluster import TopicPartition

__all__ = ["ConsumerPort", "RecordReceiver", "RecordSink"]


class RecordSink(Protocol):
    """Sends records on: a producer, which waits for all in-sync replicas."""

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
    """Who takes what has come: a run."""

    @property
    def is_taking(self) -> bool: ...

    def take(
        self, state: object, claim: object, place: TopicPartition, records: list[Record]
    ) -> None: ...


class ConsumerPort(NamedTuple):
    """What is asked of who reads."""

    #: Have a run take what comes next, once there is something; False at the end.
    take_next: Callable[[RecordReceiver], Awaitable[bool]]
    #: Whether others may read what is assigned here; and to wait until that is known.
    is_out_of_session: Callable[[], bool]
    until_in_session: Callable[[], Awaitable[None]]
    #: Take no more of a partition for now; and again.
    hold_back: Callable[[TopicPartition], None]
    let_go: Callable[[TopicPartition], None]
    #: Something is no more in hand of a partition that goes, or, with True, is lost already.
    has_finished: Callable[[bool], None]
    #: Commit what is done.
    commit_soon: Callable[[], None]
