"""The outcomes that a control function may return: plain data."""

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
    """Delays the request by `ms`; then the next control decides.

    Later requests of the connection wait, too. Raises ConfigurationError for an invalid time.
    """

    ms: int

    def __post_init__(self) -> None:
        check_whole_number("ms of a Delay", self.ms, 0)


class Close(NamedTuple):
    """Closes the connection without a response.

    With `after_handling`, the request is handled first.
    """

    after_handling: bool = False


@dataclass(frozen=True, slots=True)
class Throttle:
    """Handles the request; its response has the throttle time `ms`, as for a quota (KIP-219).

    The response is sent at once (a Fetch response has no records), and then the connection is muted
    for that time. Raises ConfigurationError for an invalid time.
    """

    ms: int

    def __post_init__(self) -> None:
        check_whole_number("ms of a Throttle", self.ms, 1)


@dataclass(frozen=True, slots=True)
class Cut:
    """Handles the request, sends `after_bytes` of the response's frame, and closes the connection.

    The frame begins with the four bytes of its size. None means half of it; at least one byte is
    always missing. Raises ConfigurationError for an invalid number.
    """

    after_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.after_bytes is not None:
            check_whole_number("after_bytes of a Cut", self.after_bytes, 0)

    def of(self, frame: bytes) -> bytes:
        """Returns the part of a frame that is sent."""
        size = len(frame) // 2 if self.after_bytes is None else self.after_bytes
        return frame[: min(size, len(frame) - 1)]


class Silence(NamedTuple):
    """Keeps the connection open, but answers no request on it from now on.

    With `after_handling` the broker still handles this request, but no later one.
    """

    after_handling: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuses the request, or some of its partitions, with an error code.

    `partitions` are the refused partitions by topic. An empty tuple means all partitions of a
    topic, an empty mapping everything that the request contains.
    """

    code: int
    partitions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def includes(self, topic: str, index: int | None = None) -> bool:
        """Returns whether a topic, or one partition of it, is refused."""
        if not self.partitions:
            return True
        meant = self.partitions.get(topic)
        return meant is not None and (not meant or index is None or index in meant)


Decided: TypeAlias = Response | Delay | Close | Throttle | Cut | Silence | Refuse
Outcome: TypeAlias = Decided | None
"""The decision of a control function; a response is sent in the version of its request."""

OUTCOMES: Final = (Response, Delay, Close, Throttle, Cut, Silence, Refuse)


@dataclass(slots=True)
class RequestOutcome:
    """The result for one request after all controls have decided.

    `answer` is a control's response, `refuse` names the refused partitions. The request is handled
    unless `answer` is set or `handled` is False.
    """

    answer: Response | None = None
    refuse: Refuse | None = None
    handled: bool = True
    throttle_ms: int = 0
    cut: Cut | None = None
    close: bool = False
    silent: bool = False

    def apply(self, outcome: Decided) -> bool:
        """Adds an outcome; returns whether it is final, so that no later control is called."""
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
