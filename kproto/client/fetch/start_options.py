"""Validates the topics and the option `start` of a consumer, and evaluates `start`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeGuard

from ...wire.checks import check_whole_number
from ...wire.durations import parse_duration
from ...wire.errors import ConfigurationError
from ..metadata.cluster import TopicPartition
from .fetch_options import OffsetSpec, ResetPolicy

if TYPE_CHECKING:
    from datetime import datetime, timedelta

__all__ = [
    "LAST_OFFSET",
    "GroupStart",
    "Start",
    "check_group_start",
    "check_start",
    "checked_topics",
    "is_duration",
    "is_time",
    "parse_start",
    "reset_policy_of",
    "start_time_ms",
    "strategy_after_end",
    "topic_of",
]

LAST_OFFSET: Final = 0x7FFFFFFFFFFFFFFF

#: Precedes the duration in Kafka's value of auto.offset.reset (KIP-1106).
_BY_DURATION: Final = "by_duration:"

#: The start of a plain consumer: the log start, the log end, an offset for each partition, or the
#: first record at or after a time. A timedelta is a time back from now (KIP-1106).
Start: TypeAlias = (
    'Literal["earliest", "latest"] | Mapping[TopicPartition, int] | datetime | timedelta'
)

#: The start of partitions without a committed offset: the log start, the log end, an error
#: ("none"), or the first record at or after a time. A timedelta is a time back from now (KIP-1106).
GroupStart: TypeAlias = 'Literal["earliest", "latest", "none"] | datetime | timedelta'


def parse_start(start: Any) -> Any:
    """Returns `start`; converts a text such as "by_duration:PT1H" to a timedelta (KIP-1106).

    The duration has the format of Java's `Duration.parse`. Raises ConfigurationError if the
    duration is invalid or negative.
    """
    if not isinstance(start, str) or not start.startswith(_BY_DURATION):
        return start
    try:
        duration = parse_duration(start.removeprefix(_BY_DURATION))
    except ValueError as error:
        raise ConfigurationError(
            f"start is {start!r:.80}: {error}; write an ISO-8601 duration, such as "
            "'by_duration:PT1H' or 'by_duration:P2DT12H'"
        ) from None
    _check_time(duration)
    return duration


def is_time(start: object) -> TypeGuard[datetime | timedelta]:
    """Returns True for a datetime or a timedelta.

    Loads `datetime`, which takes 0.7 MiB, only for a start that may be a time.
    """
    if isinstance(start, str | Mapping):
        return False
    from datetime import datetime, timedelta

    return isinstance(start, datetime | timedelta)


def is_duration(start: object) -> TypeGuard[timedelta]:
    """Returns True for a timedelta: a time back from now."""
    if not is_time(start):
        return False
    from datetime import timedelta

    return isinstance(start, timedelta)


def check_group_start(start: object) -> None:
    """Raises ConfigurationError if `start` is no `GroupStart`, or an invalid time.

    A datetime needs a time zone, and must not be before 1970. A timedelta must not be negative.
    """
    if is_time(start):
        _check_time(start)
    elif not isinstance(start, str) or start not in ("earliest", "latest", "none"):
        raise ConfigurationError(
            f"start is {start!r}; with a group it is 'earliest', 'latest', 'none', a datetime, a "
            "timedelta back from now or 'by_duration:PT1H', for partitions without a committed "
            "offset; set group=None to start at given offsets"
        )


def _check_time(start: datetime | timedelta) -> None:
    """Raises ConfigurationError for a time that is invalid as a start."""
    from datetime import timedelta

    if isinstance(start, timedelta):
        if start.days < 0:
            raise ConfigurationError(
                f"start is {start!r}; a duration back from now is not negative"
            )
    elif start.utcoffset() is None:
        raise ConfigurationError(
            f"start is {start!r}, which has no time zone; set one, as datetime.now(UTC) does"
        )
    elif start.timestamp() < 0:
        raise ConfigurationError(f"start is {start!r}; no record is from before 1970")


def start_time_ms(start: datetime | timedelta, now_ms: int) -> int:
    """Returns the first ms since 1970 at or after the time of `start`.

    A timedelta is a time back from `now_ms`.
    """
    from datetime import UTC, datetime, timedelta

    if isinstance(start, timedelta):
        return max(0, now_ms - start // timedelta(milliseconds=1))
    return -((datetime(1970, 1, 1, tzinfo=UTC) - start) // timedelta(milliseconds=1))


def strategy_after_end(start: Start | GroupStart, now_ms: int) -> OffsetSpec:
    """Returns the offset at which a partition continues if its position is after the log end.

    For the start "latest" this is "latest", for a time it is the time in ms since 1970, and for any
    other start it is "earliest". A timedelta is a time back from `now_ms`, in ms since 1970.
    """
    if is_time(start):
        return start_time_ms(start, now_ms)
    return "latest" if start == "latest" else "earliest"


def check_start(start: object) -> None:
    """Raises ConfigurationError if `start` is no `Start`, or has an invalid offset or time."""
    if is_time(start):
        _check_time(start)
    elif isinstance(start, Mapping):
        for tp, offset in start.items():
            match tp:
                case (str(), int()):
                    pass
                case _:
                    raise ConfigurationError(
                        f"start has the key {tp!r}, which is no partition as (topic, number)"
                    )
            check_whole_number(f"start[{tp!r}]", offset, 0, LAST_OFFSET)
    elif not isinstance(start, str) or start not in ("earliest", "latest"):
        raise ConfigurationError(
            f"start is {start!r}; it is 'earliest', 'latest', an offset for each partition, a "
            "datetime, a timedelta back from now or 'by_duration:PT1H'"
        )


def reset_policy_of(start: Start | GroupStart) -> ResetPolicy:
    """Returns the offset reset policy for `start`: NONE for offsets by partition and for "none"."""
    if isinstance(start, Mapping) or start == "none":
        return ResetPolicy.NONE
    if is_time(start):
        return ResetPolicy.BY_TIME
    return ResetPolicy.LATEST if start == "latest" else ResetPolicy.EARLIEST


def checked_topics(
    topics: str | Iterable[str] | Iterable[TopicPartition],
) -> list[str | TopicPartition]:
    """Returns the topics and partitions as a list.

    Raises ConfigurationError if an element is something else, or if `topics` is empty.
    """
    given: Any = topics
    match given:
        case bytes() | bytearray():
            raise ConfigurationError(f"{topics!r} is bytes; the name of a topic is a str")
        case Mapping():
            raise ConfigurationError(
                f"{topics!r:.80} is a mapping; pass a topic, a list of topics, or partitions as "
                "[(topic, number)]; offsets to start at are those of start"
            )
        case (str(topic), int(partition)):
            raise ConfigurationError(
                f"{topics!r} is a single partition; pass a list: [({topic!r}, {partition})]"
            )
        case _ if not isinstance(given, Iterable):
            raise ConfigurationError(f"{topics!r} is neither a topic nor partitions")
    wanted: list[str | TopicPartition] = []
    for tp in [given] if isinstance(given, str) else given:
        match tp:
            case "" | ("", _):
                raise ConfigurationError(f"{tp!r}: the name of a topic is not empty")
            case str():
                wanted.append(tp)
            case (str(topic), int(partition)):
                wanted.append((topic, partition))
            case _:
                raise ConfigurationError(
                    f"{tp!r} is neither a topic nor a partition as (topic, number)"
                )
    if not wanted:
        raise ConfigurationError("a consumer needs a topic, or partitions as (topic, number)")
    return wanted


def topic_of(wanted: str | TopicPartition) -> str:
    """Returns the topic of `wanted`, which is a topic or a partition."""
    return wanted if isinstance(wanted, str) else wanted[0]
