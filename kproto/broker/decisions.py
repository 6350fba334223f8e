"""What a handler decides: the response, that there is none, to wait, or to close the connection.

Plain data. Knows no handler and no connection, and does not wait itself: `waiting` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..messages.base import Response
from .watchable import Watchable

__all__ = ["CloseConnection", "Decision", "Wait"]


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """Not yet: ask `then` again when something in `wake` has changed, or the time is over.

    `until` is in seconds, as the clock's `monotonic` counts them (`Context.deadline`). `then` is
    told whether the time is over. It may return this same Wait, to go on waiting, but not when its
    time is over: then another, with another time. A client that is lost is not waited for: then
    nobody asks again.
    """

    until: float
    wake: Sequence[Watchable]
    then: Callable[[bool], Decision]


Decision: TypeAlias = Response | Wait | None
"""What a handler returns; None for no response."""


class CloseConnection(Exception):  # noqa: N818 - what to do, not what went wrong
    """Raised by a handler when Kafka's answer is to close the connection; the text says why."""
