"""The offsets that somebody asks for, and what they are in a log: the connector's offset JSON.

Owns the text of `startingOffsets` and `endingOffsets`, as Spark's Kafka connector takes it.
Decisions on plain data: knows nothing of Spark, sockets or ranges.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from kproto.wire.errors import ConfigurationError

from .option_json import read_json_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto.client import TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "OffsetSpec",
    "check_partitions_named",
    "parse_offset_spec",
    "parse_partitions",
    "resolve_offsets",
]

# The sentinels of the connector's offset JSON, and of Kafka's ListOffsets.
LATEST: Final = -1
EARLIEST: Final = -2

# One word for all partitions, or an offset (or sentinel) for each.
OffsetSpec: TypeAlias = "int | Mapping[TopicPartition, int]"

# As JSON writes numbers: with zeros in front one partition would have several names.
_PARTITION: Final = re.compile("0|[1-9][0-9]{0,9}")

_WANTED: Final = '\'earliest\', \'latest\' or JSON such as {"topic": {"0": 23, "1": -2}}'

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


def parse_offset_spec(option: str, text: str, *, refused: str | None) -> OffsetSpec:
    """`earliest`, `latest`, or `{"topic": {"0": 23, "1": -2}}` (-2 earliest, -1 latest).

    `refused` is the word that makes no sense for this option: a batch can neither start at the
    latest offset nor end at the earliest.

    Raises:
        ConfigurationError: naming the option, what is wrong and what would be right.
    """
    word = text.strip().lower()
    sentinel = _WORDS.get(word)
    if sentinel is not None:
        if word == refused:
            raise ConfigurationError(f"{option} cannot be {word!r} in a batch read")
        return sentinel
    spec: dict[TopicPartition, int] = {}
    for (topic, partition), offset in parse_partitions(option, text, wanted=_WANTED).items():
        if type(offset) is not int or offset < EARLIEST:
            raise ConfigurationError(
                f"{option}: {topic}-{partition} has {offset!r}; an offset is a whole number "
                "from 0 on, or -2 for earliest, -1 for latest"
            )
        if refused is not None and offset == _WORDS[refused]:
            raise ConfigurationError(
                f"{option}: {topic}-{partition} cannot be {offset} ({refused}) in a batch read"
            )
        spec[topic, partition] = offset
    return spec


def parse_partitions(option: str, text: str, *, wanted: str) -> dict[TopicPartition, object]:
    """`{"topic": {"0": value}}`: a value for each partition, and at least one.

    Raises:
        ConfigurationError: naming the option and what is wrong.
    """
    found: dict[TopicPartition, object] = {}
    for topic, partitions in read_json_object(option, text, wanted=wanted).items():
        if not isinstance(partitions, dict):
            raise ConfigurationError(
                f'{option}: topic {topic!r} needs its partitions, as {{"{topic}": {{"0": 23}}}}'
            )
        for partition, value in partitions.items():
            if not _PARTITION.fullmatch(partition):
                raise ConfigurationError(
                    f"{option}: {partition!r} of topic {topic!r} is no partition number"
                )
            found[topic, int(partition)] = value
    if not found:
        raise ConfigurationError(f"{option} names no partition")
    return found


def resolve_offsets(
    option: str,
    spec: OffsetSpec,
    partitions: Iterable[TopicPartition],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """The offset that `spec` means for each partition, sentinels replaced by what the log has.

    Raises:
        ConfigurationError: the spec does not name exactly the partitions that are read.
    """
    if isinstance(spec, Mapping):
        check_partitions_named(option, spec, partitions)
        asked = dict(spec)
    else:
        asked = dict.fromkeys(partitions, spec)
    known = {EARLIEST: earliest, LATEST: latest}
    return {
        part: known[offset][part] if offset in known else offset for part, offset in asked.items()
    }


def check_partitions_named(
    option: str, named: Iterable[TopicPartition], read: Iterable[TopicPartition]
) -> None:
    """Raise ConfigurationError unless an option names exactly the partitions that are read."""
    wanted, given = set(read), set(named)
    missing, unknown = sorted(wanted - given), sorted(given - wanted)
    if missing or unknown:
        raise ConfigurationError(
            f"{option} must name every partition that is read and no other: "
            f"{_listed('missing', missing)}{'; ' if missing and unknown else ''}"
            f"{_listed('not read', unknown)}"
        )


def _listed(what: str, partitions: Sequence[TopicPartition]) -> str:
    if not partitions:
        return ""
    names = ", ".join(f"{topic}-{partition}" for topic, partition in partitions[:10])
    return f"{what} {names}{' …' if len(partitions) > 10 else ''}"
