"""What an increment says of itself: the offsets that it read, its counts, its times.

Owns the file `_kproto.json` in the folder of each increment, version 1, which hides from readers of
the folder. Plain data; writes no file and knows no Spark.
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

#: The name of the file; both Spark and pyarrow pass over what begins with an underscore.
MANIFEST: Final = "_kproto.json"

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class JobCounts:
    """Rows at each stage of the job. `written` are the valid and invalid ones in the files."""

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
    """One increment. `timestamps` are the least and the greatest of its records', in microseconds
    since 1970; None where one of them has none. `dead_letters` is where those were written, if they
    have a folder of their own: they are moved into place when this increment is there."""

    increment: int
    run: str
    ranges: tuple[OffsetRange, ...]
    counts: JobCounts
    timestamps: tuple[int, int] | None = None
    losses: tuple[str, ...] = ()
    dead_letters: str | None = None

    def ends(self) -> dict[TopicPartition, tuple[int, Uuid]]:
        """Where the next increment goes on."""
        return {(each.topic, each.partition): (each.end, each.topic_id) for each in self.ranges}

    def to_json(self) -> str:
        """The text of the file."""
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
    def from_json(cls, text: str, *, place: str) -> Manifest:
        """What `to_json` wrote; `place` says where it stands, for the error.

        Raises:
            OutputDamagedError: it is nothing that this release can have written.
        """
        try:
            found = json.loads(text)
            version = found["kproto_pipeline"]
            if version != _VERSION:
                raise OutputDamagedError(
                    f"{place} is of version {version}, and this release knows {_VERSION} alone; go "
                    "on with the release that wrote it, or a later one"
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
            raise OutputDamagedError(
                f"{place} cannot be read as what an increment says of itself: {error!r}"
            ) from None


def _pair(least: int, greatest: int) -> tuple[int, int]:
    return int(least), int(greatest)
