"""What a control function may decide about a request: plain data."""

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
    """Wait for `ms` before the request goes on, to the next control and then to the broker.

    Later requests of the connection wait too. Raises ConfigurationError for what is no time.
    """

    ms: int

    def __post_init__(self) -> None:
        check_whole_number("ms of a Delay", self.ms, 0)


class Close(NamedTuple):
    """Close the connection without an answer; with `after_handling` the broker does its work."""

    after_handling: bool = False


@dataclass(frozen=True, slots=True)
class Throttle:
    """The request goes on; its answer says `ms` as throttle time, as over a quota (KIP-219).

    The answer goes out at once, a Fetch without records, and then nothing of the connection is
    worked on for so long. Raises ConfigurationError for what is no time.
    """

    ms: int

    def __post_init__(self) -> None:
        check_whole_number("ms of a Throttle", self.ms, 1)


@dataclass(frozen=True, slots=True)
class Cut:
    """The request goes on; of the frame of its answer `after_bytes` are sent, then it is closed.

    The frame begins with the four bytes of its size. None stands for half of it; at least one byte
    is always missing. Raises ConfigurationError for what is no number.
    """

    after_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.after_bytes is not None:
            check_whole_number("after_bytes of a Cut", self.after_bytes, 0)

    def of(self, frame: bytes) -> bytes:
        """What is sent of a frame."""
        wanted = len(frame) // 2 if self.after_bytes is None else self.after_bytes
        return frame[: min(wanted, len(frame) - 1)]


class Silence(NamedTuple):
    """From now on nothing of the connection is answered, which stays open.

    With `after_handling` the broker does its work on this request, though not on later ones.
    """

    after_handling: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """The broker refuses the request, or the partitions of it that are meant, with an error code.

    `partitions` are those that are meant by topic; an empty tuple stands for all of a topic, and
    without topics all that the request is about is refused.
    """

    code: int
    partitions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def includes(self, topic: str, index: int | None = None) -> bool:
        """Whether a topic, or one partition of it, is refused."""
        if not self.partitions:
            return True
        meant = self.partitions.get(topic)
        return meant is not None and (not meant or index is None or index in meant)


Decided: TypeAlias = Response | Delay | Close | Throttle | Cut | Silence | Refuse
Outcome: TypeAlias = Decided | None
"""What a control function decides; a response is sent in the version of its request."""

OUTCOMES: Final = (Response, Delay, Close, Throttle, Cut, Silence, Refuse)


@dataclass(slots=True)
class RequestOutcome:
    """What becomes of one request, after all controls have decided.

    `answer` is what a control says in place of the broker, `refuse` what the broker refuses; it
    handles the request unless `answer` is set or `handled` is not.
    """

    answer: Response | None = None
    refuse: Refuse | None = None
    handled: bool = True
    throttle_ms: int = 0
    cut: Cut | None = None
    close: bool = False
    silent: bool = False

    def take(self, outcome: Decided) -> bool:
        """Whether that was the last word: the controls that follow are not asked."""
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
