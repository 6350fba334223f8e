"""Which offsets to read, and in how many pieces: plain functions on plain data.

Owns the offset JSON of Spark's Kafka connector, the check of wanted against available offsets,
and the cut into ranges. Knows nothing of Spark, sockets or clients.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kproto.wire.errors import ConfigurationError, KprotoError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "EARLIEST",
    "LATEST",
    "DataLossError",
    "OffsetRange",
    "OffsetSpec",
    "TopicPartition",
    "concrete_offsets",
    "parse_offset_spec",
    "plan_ranges",
    "split_ranges",
]

TopicPartition = tuple[str, int]

# The sentinels of the connector's offset JSON, and of Kafka's ListOffsets.
LATEST: Final = -1
EARLIEST: Final = -2

# One word for all partitions, or an offset (or sentinel) for each.
OffsetSpec = int | Mapping[TopicPartition, int]

_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


class DataLossError(KprotoError):
    """Offsets that were asked for are not, or no longer, in the log."""


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Offsets `start` up to, not with, `end` of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets; compaction and control batches may leave fewer records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"


def parse_offset_spec(option: str, text: str, *, refused: str) -> OffsetSpec:
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
    for topic, partitions in _json_object(option, text).items():
        if not isinstance(partitions, dict):
            raise ConfigurationError(
                f'{option}: topic {topic!r} needs its partitions, as {{"{topic}": {{"0": 23}}}}'
            )
        for partition, offset in partitions.items():
            if not partition.isascii() or not partition.isdigit():
                raise ConfigurationError(
                    f"{option}: {partition!r} of topic {topic!r} is no partition number"
                )
            if type(offset) is not int or offset < EARLIEST:
                raise ConfigurationError(
                    f"{option}: {topic}-{partition} has {offset!r}; an offset is a whole number "
                    "from 0 on, or -2 for earliest, -1 for latest"
                )
            if offset == _WORDS[refused]:
                raise ConfigurationError(
                    f"{option}: {topic}-{partition} cannot be {offset} ({refused}) in a batch read"
                )
            spec[topic, int(partition)] = offset
    if not spec:
        raise ConfigurationError(f"{option} names no partition")
    return spec


def _json_object(option: str, text: str) -> dict[str, object]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise ConfigurationError(
            f"{option} is {text!r}; it must be 'earliest', 'latest' or JSON such as "
            '{"topic": {"0": 23, "1": -2}}'
        )
    return parsed


def concrete_offsets(
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
    wanted = sorted(partitions)
    if isinstance(spec, Mapping):
        missing = [part for part in wanted if part not in spec]
        unknown = sorted(part for part in spec if part not in set(wanted))
        if missing or unknown:
            raise ConfigurationError(
                f"{option} must name every partition that is read and no other: "
                f"{_listed('missing', missing)}{'; ' if missing and unknown else ''}"
                f"{_listed('not read', unknown)}"
            )
        asked = dict(spec)
    else:
        asked = dict.fromkeys(wanted, spec)
    known = {EARLIEST: earliest, LATEST: latest}
    return {
        part: known[offset][part] if offset in known else offset for part, offset in asked.items()
    }


def _listed(what: str, partitions: Sequence[TopicPartition]) -> str:
    if not partitions:
        return ""
    names = ", ".join(f"{topic}-{partition}" for topic, partition in partitions[:10])
    return f"{what} {names}{' …' if len(partitions) > 10 else ''}"


def plan_ranges(
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    *,
    fail_on_data_loss: bool,
) -> list[OffsetRange]:
    """One range for each partition that has something to read, in order of topic and partition.

    Raises:
        DataLossError: with `fail_on_data_loss`, when a range reaches out of the log. Without,
            the range is cut to what the log has.
        ConfigurationError: a start that lies after its end.
    """
    ranges = []
    for topic, partition in sorted(starts):
        part = (topic, partition)
        start, end = starts[part], ends[part]
        first, last = earliest[part], latest[part]
        if start > end:
            raise ConfigurationError(
                f"{topic}-{partition}: the starting offset {start} lies after the ending offset "
                f"{end}; the log holds {first} up to {last}"
            )
        if start < first or end > last:
            if fail_on_data_loss:
                raise DataLossError(
                    f"{topic}-{partition}: offsets {start} up to {end} were asked for, the log "
                    f"holds {first} up to {last}; set failOnDataLoss to false to read what is there"
                )
            start, end = min(max(start, first), last), min(max(end, first), last)
        if start < end:
            ranges.append(OffsetRange(topic, partition, start, end))
    return ranges


def split_ranges(
    ranges: Sequence[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[OffsetRange]:
    """Cut ranges so that there are at least `min_partitions`, none above `max_records` offsets.

    Pieces of one range differ by at most one offset. The next cut always goes to the range whose
    pieces are the largest; a piece never gets below one offset.
    """
    pieces = [1 if max_records is None else -(-r.size // max_records) for r in ranges]
    total = sum(pieces)
    if min_partitions is not None and total < min_partitions:
        largest = [
            (-r.size / n, index) for index, (r, n) in enumerate(zip(ranges, pieces, strict=True))
        ]
        heapq.heapify(largest)
        while largest and total < min_partitions:
            _, index = heapq.heappop(largest)
            if pieces[index] < ranges[index].size:
                pieces[index] += 1
                total += 1
                heapq.heappush(largest, (-ranges[index].size / pieces[index], index))
    return [
        OffsetRange(
            r.topic,
            r.partition,
            r.start + r.size * piece // count,
            r.start + r.size * (piece + 1) // count,
        )
        for r, count in zip(ranges, pieces, strict=True)
        for piece in range(count)
    ]
