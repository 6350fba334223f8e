"""Defines the outcomes that a control function may return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from ...messages.base import Response
from ...wire.checks import check_whole_number

__all__ = [
    "OUTCOMES",
    "Close",
    "Cut",
    "Decided",
    "Delay",
    "Outcome",
    "Refuse",
    "RequestOutcome",
    "Silence",
    "Throttle",
]


@dataclass(frozen=True, slots=True)
class Delay:
    """Delays the request by `ms`, and then calls the next control function.

    Later requests of the connection wait, too. Raises ConfigurationError for a negative time.
    """

    ms: int

    def __post_init__(self) -> None:
        check_whole_number("ms of a Delay", self.ms, 0)


class Close(NamedTuple):
    """Closes the connection without a response.

    If `after_handling` is set, the broker handles the request before it closes the connection.
    """

    after_handling: bool = False


@dataclass(frozen=True, slots=True)
class Throttle:
    """Handles the request, and throttles the client for `ms` as a quota does (KIP-219).

    The handler's response is sent at once, with the throttle time `ms` or a longer throttle time of
    a quota. A Fetch response has no records. Until the throttle time has passed, no request of the
    connection is processed. If a later control function returns a response, that response is sent
    with this throttle time. Raises ConfigurationError for a time of 0 or less.
    """

    ms: int

    def __post_init__(self) -> None:
        check_whole_number("ms of a Throttle", self.ms, 1)


@dataclass(frozen=True, slots=True)
class Cut:
    """Handles the request, sends `after_bytes` of the response frame, and closes the connection.

    The frame begins with its size field of four bytes. If `after_bytes` is None, half of the frame
    is sent. At least the last byte is not sent. A request that has no response is only handled.
    Raises ConfigurationError for a negative number.
    """

    after_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.after_bytes is not None:
            check_whole_number("after_bytes of a Cut", self.after_bytes, 0)

    def of(self, frame: bytes) -> bytes:
        """Returns the bytes of `frame` that the broker sends before it closes the connection."""
        size = len(frame) // 2 if self.after_bytes is None else self.after_bytes
        return frame[: min(size, len(frame) - 1)]


class Silence(NamedTuple):
    """Keeps the connection open, but sends no response on it from now on.

    With `after_handling` the broker still handles this request, but no later request.
    """

    after_handling: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuses the request, or some of its partitions, with the error `code`.

    `partitions` are the refused partitions by topic. An empty tuple refuses all partitions of the
    topic. An empty mapping refuses the whole request.
    """

    code: int
    partitions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def includes(self, topic: str, index: int | None = None) -> bool:
        """Returns True if the partition `index` of a topic is refused.

        If `index` is None, returns True if at least one partition of the topic is refused.
        """
        if not self.partitions:
            return True
        meant = self.partitions.get(topic)
        return meant is not None and (not meant or index is None or index in meant)


Decided: TypeAlias = Response | Delay | Close | Throttle | Cut | Silence | Refuse
Outcome: TypeAlias = Decided | None
"""The return value of a control function. A response is sent in the version of the request."""

OUTCOMES: Final = (Response, Delay, Close, Throttle, Cut, Silence, Refuse)


@dataclass(slots=True)
class RequestOutcome:
    """Combines the outcomes of all control functions for one request.

    `answer` is a response to send instead of the handler's response. The request is handled if
    `handled` is True and `answer` is None. If `close` is True, the connection is closed afterwards.
    If `silent` is True, no further response is sent on the connection.
    """

    answer: Response | None = None
    refuse: Refuse | None = None
    handled: bool = True
    throttle_ms: int = 0
    cut: Cut | None = None
    close: bool = False
    silent: bool = False

    def apply(self, outcome: Decided) -> bool:
        """Adds an outcome; returns True if it is final, so that no later function is called."""
        match outcome:
            case Throttle():
                self.throttle_ms = max(self.throttle_ms, outcome.ms)
            case Cut():
                self.cut = outcome
            case Close():
                self.close, self.handled = True, outcome.after_handling
                return True
            case Silence():
                self.silent, self.handled = True, outcome.after_handling
                return True
            case Refuse():
                self.refuse = outcome
                return True
            case Delay():
                pass
            case _:
                self.answer = outcome
                return True
        return False
