"""The manifest of an increment: the offsets that it read, its counts and its timestamps.

Defines version 1 of the file `_kproto.json` in the folder of each increment, and of the file with
the plan of an increment that has not been written yet. Works on plain data: reads and writes no
file, and imports no Spark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kproto.wire.errors import ConfigurationError
from kproto.wire.uuid import Uuid

from ..spark.planning.offset_ranges import OffsetRange
from .errors import OutputDamagedError
from .increment_plan import ReadPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto.client import TopicPartition

__all__ = ["MANIFEST", "JobCounts", "Manifest", "StoredPlan"]

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
    `losses` are descriptions of data loss. `application` identifies the job in the commits of a
    table; None if the output is no table, or an earlier release wrote the manifest. `first` is the
    first of the increments that were joined into this one; None if none were joined.
    """

    increment: int
    run: str
    ranges: tuple[OffsetRange, ...]
    counts: JobCounts
    timestamps: tuple[int, int] | None = None
    losses: tuple[str, ...] = ()
    dead_letters: str | None = None
    application: str | None = None
    first: int | None = None

    @property
    def first_increment(self) -> int:
        """Returns the number of the first increment that was joined, or of the only one."""
        return self.increment if self.first is None else self.first

    def ends(self) -> dict[TopicPartition, tuple[int, Uuid]]:
        """Returns the offsets and topic ids from which the next increment reads."""
        return {(each.topic, each.partition): (each.end, each.topic_id) for each in self.ranges}

    def to_json(self) -> str:
        """Returns the content of the file `_kproto.json`."""
        counts = {name: getattr(self.counts, name) for name in JobCounts.__slots__}
        content = {
            "kproto_pipeline": _VERSION,
            "increment": self.increment,
            "run": self.run,
            "counts": counts,
            "timestamps": self.timestamps,
            "losses": self.losses,
            "dead_letters": self.dead_letters,
            "topics": _topics(self.ranges),
        }
        if self.application is not None:
            content["application"] = self.application
        if self.first is not None:
            content["first"] = self.first
        return json.dumps(content, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, *, path: str) -> Manifest:
        """Parses the content of a file `_kproto.json`; errors name its `path`.

        Raises:
            OutputDamagedError: the text is not a manifest of this version.
        """
        try:
            found = _content(text, path)
            return cls(
                increment=int(found["increment"]),
                run=str(found["run"]),
                ranges=_ranges(found),
                counts=JobCounts(**found["counts"]),
                timestamps=None if found["timestamps"] is None else _pair(*found["timestamps"]),
                losses=tuple(found["losses"]),
                dead_letters=found["dead_letters"],
                application=found.get("application"),
                first=None if found.get("first") is None else int(found["first"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError, ConfigurationError) as error:
            raise OutputDamagedError(f"{path} is no manifest of an increment: {error!r}") from None


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """The plan of an increment of a table, which is stored before the increment is written.

    A run that continues after a kill writes the same increment again. `application` and `increment`
    identify the commit of the increment in the table. `version` is the version of the table before
    the increment; None if there was no table, or its format has no versions.
    """

    increment: int
    application: str
    plan: ReadPlan
    version: int | None = None

    def to_json(self) -> str:
        """Returns the content of the file with the plan."""
        content = {
            "kproto_pipeline": _VERSION,
            "increment": self.increment,
            "application": self.application,
            "version": self.version,
            "losses": self.plan.losses,
            "topics": _topics(self.plan.ranges),
        }
        return json.dumps(content, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, *, path: str) -> StoredPlan:
        """Parses the content of a file with a plan; errors name its `path`.

        Raises:
            OutputDamagedError: the text is not a plan of this version.
        """
        try:
            found = _content(text, path)
            return cls(
                increment=int(found["increment"]),
                application=str(found["application"]),
                plan=ReadPlan(_ranges(found), tuple(found["losses"])),
                version=None if found["version"] is None else int(found["version"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError, ConfigurationError) as error:
            raise OutputDamagedError(f"{path} is no plan of an increment: {error!r}") from None


def _content(text: str, path: str) -> dict[str, Any]:
    """Parses a file of this package; raises OutputDamagedError for another version."""
    found: dict[str, Any] = json.loads(text)
    version = found["kproto_pipeline"]
    if version != _VERSION:
        raise OutputDamagedError(
            f"{path} has version {version}, and this release supports only {_VERSION}; "
            "continue with the release that wrote the file, or a later one"
        )
    return found


def _topics(ranges: Sequence[OffsetRange]) -> dict[str, dict[str, Any]]:
    topics: dict[str, dict[str, Any]] = {}
    for each in ranges:
        topic = topics.setdefault(each.topic, {"id": str(each.topic_id), "offsets": {}})
        topic["offsets"][str(each.partition)] = [each.start, each.end]
    return topics


def _ranges(content: dict[str, Any]) -> tuple[OffsetRange, ...]:
    return tuple(
        OffsetRange(name, int(partition), int(start), int(end), Uuid.parse(topic["id"]))
        for name, topic in content["topics"].items()
        for partition, (start, end) in topic["offsets"].items()
    )


def _pair(least: int, greatest: int) -> tuple[int, int]:
    return int(least), int(greatest)
