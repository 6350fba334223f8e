"""Parses the options for timestamps, such as `startingTimestamp` and `endingOffsetsByTimestamp`.

The options have the syntax of Spark's JVM connector. This module works on plain data, without Spark
or a client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .errors import OptionError
from .offset_spec import parse_partitions
from .option_values import parse_whole_number

if TYPE_CHECKING:
    from kproto.client import TopicPartition

__all__ = ["TimestampSpec", "parse_timestamp", "parse_timestamps"]

_EXPECTED: Final = 'JSON such as {"topic": {"0": 1700000000000}}, in milliseconds'

_MAX_INT64: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TimestampSpec:
    """Selects, in each partition, the offset of the first record at or after a timestamp (ms).

    `timestamps` is one timestamp for all partitions, or a timestamp for each partition. `option` is
    the option's name for errors.
    """

    option: str
    timestamps: int | Mapping[TopicPartition, int]


def parse_timestamp(name: str, text: str) -> TimestampSpec:
    """Parses one timestamp in ms for all partitions. Raises OptionError."""
    return TimestampSpec(name, parse_whole_number(name, text, 0, _MAX_INT64))


def parse_timestamps(name: str, text: str) -> TimestampSpec:
    """Parses a timestamp in ms for each partition. Raises OptionError."""
    timestamps: dict[TopicPartition, int] = {}
    for part, value in parse_partitions(f"option {name}", text, expected=_EXPECTED).items():
        if type(value) is not int or not 0 <= value <= _MAX_INT64:
            raise OptionError(
                f"option {name}: {part[0]}-{part[1]} has {value!r}; a timestamp is a whole number "
                "of milliseconds, at least 0"
            )
        timestamps[part] = value
    return TimestampSpec(name, timestamps)
