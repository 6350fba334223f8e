"""Offsets that somebody asks for by time: the connector's timestamp options.

Owns the text of `startingTimestamp` and `startingOffsetsByTimestamp`, and of those for the end.
Decisions on plain data: knows nothing of Spark, sockets or ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kproto.wire.errors import ConfigurationError

from .errors import OptionError
from .offset_spec import parse_partitions
from .option_values import whole_number

if TYPE_CHECKING:
    from kproto.client import TopicPartition

__all__ = ["TimestampSpec", "parse_timestamp", "parse_timestamps"]

_WANTED: Final = 'JSON such as {"topic": {"0": 1700000000000}}, in milliseconds'

_MAX_INT64: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TimestampSpec:
    """The first offset whose record is of this time (ms since 1970) or later.

    One time for all partitions, or one for each. `option` is the name to be told in errors.
    """

    option: str
    times: int | Mapping[TopicPartition, int]


def parse_timestamp(name: str, text: str) -> TimestampSpec:
    """One time in ms for all partitions. Raises OptionError."""
    return TimestampSpec(name, whole_number(name, text, 0, _MAX_INT64))


def parse_timestamps(name: str, text: str) -> TimestampSpec:
    """A time in ms for each partition. Raises OptionError."""
    try:
        times = parse_partitions(f"option {name}", text, wanted=_WANTED)
    except ConfigurationError as error:
        raise OptionError(str(error)) from None
    for (topic, partition), time in times.items():
        if type(time) is not int or not 0 <= time <= _MAX_INT64:
            raise OptionError(
                f"option {name}: {topic}-{partition} has {time!r}; a time is a whole number of "
                "milliseconds from 0 on"
            )
    return TimestampSpec(
        name, {part: time for part, time in times.items() if isinstance(time, int)}
    )
