"""The manifest of an increment: the offsets that it read, its counts and its timestamps.

Defines version 1 of the file `_kproto.json` in the folder of each increment. Works on plain data:
reads and writes no file, and imports no Spark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kproto.wire.errors import ConfigurationError
from kproto.wire.uuid import Uuid

from ..spark.planning.offset_ranges import OffsetRange
from .errors import OutputDamagedError

if TYPE_CHECKING:
    from kproto.client import TopicPartition

__all__ = ["MANIFEST", "JobCounts", "Manifest"]

#: The file name of a manifest; Spark and pyarrow skip files that begin with an underscore.
MANIFEST: Final = "_kproto.json"

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class JobCounts:
    """Counts the records of a job.

    `written` counts the written rows of valid and invalid records.
    """

    read: int = 0
    valid: int = 0
    invalid: int = 0
    duplicates: int = 0
    written: int = 0

    def __add__(self, other: JobCounts) -> JobCounts:
        return JobCounts(
            self.read + other.read,
            self.valid + other.valid,
            self.invalid + other.invalid,
            self.duplicates + other.duplicates,
            self.written + other.written,
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of one increment.

    `timestamps` are the lowest and the highest record timestamp, in microseconds since 1970; None
    if there is no record, or a record has no timestamp. `dead_letters` is the staging folder of the
    dead letters, which are published after the increment; None if there are no dead letters.
    `losses` are descriptions of data loss.
    """

    increment: int
    run: str
    ranges: tuple[OffsetRange, ...]
    counts: JobCounts
    timestamps: tuple[int, int] | None = None
    losses: tuple[str, ...] = ()
    dead_letters: str | None = None

    def ends(self) -> dict[TopicPartition, tuple[int, Uuid]]:
        """Returns the offsets and topic ids from which the next increment reads."""
        return {(each.topic, each.partition): (each.end, each.topic_id) for each in self.ranges}

    def to_json(self) -> str:
        """Returns the content of the file `_kproto.json`."""
        topics: dict[str, dict[str, Any]] = {}
        for each in self.ranges:
            topic = topics.setdefault(each.topic, {"id": str(each.topic_id), "offsets": {}})
            topic["offsets"][str(each.partition)] = [each.start, each.end]
        counts = {name: getattr(self.counts, name) for name in JobCounts.__slots__}
        content = {
            "kproto_pipeline": _VERSION,
            "increment": self.increment,
            "run": self.run,
            "counts": counts,
            "timestamps": self.timestamps,
            "losses": self.losses,
            "dead_letters": self.dead_letters,
            "topics": topics,
        }
        return json.dumps(content, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, *, path: str) -> Manifest:
        """Parses the content of a file `_kproto.json`; errors name its `path`.

        Raises:
            OutputDamagedError: the text is not a manifest of this version.
        """
        try:
            found = json.loads(text)
            version = found["kproto_pipeline"]
            if version != _VERSION:
                raise OutputDamagedError(
                    f"{path} has version {version}, and this release supports only {_VERSION}; "
                    "continue with the release that wrote the file, or a later one"
                )
            return cls(
                increment=int(found["increment"]),
                run=str(found["run"]),
                ranges=tuple(
                    OffsetRange(name, int(partition), int(start), int(end), Uuid.parse(topic["id"]))
                    for name, topic in found["topics"].items()
                    for partition, (start, end) in topic["offsets"].items()
                ),
                counts=JobCounts(**found["counts"]),
                timestamps=None if found["timestamps"] is None else _pair(*found["timestamps"]),
                losses=tuple(found["losses"]),
                dead_letters=found["dead_letters"],
            )
        except (ValueError, KeyError, TypeError, AttributeError, ConfigurationError) as error:
            raise OutputDamagedError(f"{path} is no manifest of an increment: {error!r}") from None


def _pair(least: int, greatest: int) -> tuple[int, int]:
    return int(least), int(greatest)
