"""Parses `startingOffsets` and `endingOffsets`.

The JSON is that of Spark's JVM connector. This module works on plain data, without Spark or a
client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from .errors import OptionError
from .option_json import read_json_object

if TYPE_CHECKING:
    from kproto.client import TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "OffsetSpec",
    "check_no_sentinel",
    "parse_offset_spec",
    "parse_partitions",
]

# The connector's JSON and Kafka's ListOffsets use these numbers.
LATEST: Final = -1
EARLIEST: Final = -2

# A sentinel for all partitions, or an offset or sentinel for each.
OffsetSpec: TypeAlias = "int | Mapping[TopicPartition, int]"

# No leading zeros: otherwise two names would mean the same partition.
_PARTITION: Final = re.compile("0|[1-9][0-9]{0,9}")

_EXPECTED: Final = '\'earliest\', \'latest\' or JSON such as {"topic": {"0": 23, "1": -2}}'

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


def parse_offset_spec(option: str, text: str, *, refused: str | None = None) -> OffsetSpec:
    """Parses `earliest`, `latest`, or `{"topic": {"0": 23, "1": -2}}` (-2 earliest, -1 latest).

    Raises:
        OptionError: the text is wrong, or has the sentinel `refused`; the message names the option.
    """
    spec: OffsetSpec
    sentinel = _WORDS.get(text.strip().lower())
    if sentinel is not None:
        spec = sentinel
    else:
        spec = {
            partition: _checked_offset(option, partition, offset)
            for partition, offset in parse_partitions(option, text, expected=_EXPECTED).items()
        }
    if refused is not None:
        check_no_sentinel(option, spec, refused)
    return spec


def check_no_sentinel(option: str, spec: OffsetSpec, refused: str) -> None:
    """Raises OptionError if `spec` has the sentinel `refused`, such as `latest`.

    A batch read cannot start at the latest offset, and cannot end at the earliest offset.
    """
    sentinel = _WORDS[refused]
    if spec == sentinel:
        raise OptionError(f"{option} cannot be {refused!r} in a batch read")
    if isinstance(spec, Mapping):
        for (topic, partition), offset in spec.items():
            if offset == sentinel:
                raise OptionError(
                    f"{option}: {topic}-{partition} cannot be {offset} ({refused}) in a batch read"
                )


def _checked_offset(option: str, partition: TopicPartition, offset: object) -> int:
    if type(offset) is not int or offset < EARLIEST:
        raise OptionError(
            f"{option}: {partition[0]}-{partition[1]} has {offset!r}; an offset is a whole number "
            "of at least 0, -2 for earliest, or -1 for latest"
        )
    return offset


def parse_partitions(option: str, text: str, *, expected: str) -> dict[TopicPartition, object]:
    """Parses `{"topic": {"0": value}}` into a value for each partition.

    Raises:
        OptionError: the text is wrong or names no partition; the message names the option.
    """
    found: dict[TopicPartition, object] = {}
    for topic, partitions in read_json_object(option, text, expected=expected).items():
        if not isinstance(partitions, dict):
            raise OptionError(
                f'{option}: topic {topic!r} needs its partitions, as {{"{topic}": {{"0": 23}}}}'
            )
        for partition, value in partitions.items():
            if not _PARTITION.fullmatch(partition):
                raise OptionError(
                    f"{option}: {partition!r} of topic {topic!r} is no partition number"
                )
            found[topic, int(partition)] = value
    if not found:
        raise OptionError(f"{option} names no partition")
    return found
