"""The settings of a job, as plain data: what is read, what becomes of it, how much at once.

Every limit stands here by name, with its default and the reason. Reads no file and knows no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

__all__ = ["FILE_FORMATS", "MODES", "DeadLetters", "JobSettings", "Mode", "Output"]

Mode: TypeAlias = Literal["once", "incremental", "stream"]

MODES: Final[tuple[Mode, ...]] = ("once", "incremental", "stream")

#: Spark's formats that are files in a folder. All others are written to, row by row, by whoever
#: keeps them, and cannot be put into place by a move.
FILE_FORMATS: Final = frozenset({"parquet", "orc", "json", "csv", "xml", "avro"})


@dataclass(frozen=True, slots=True)
class Output:
    """Where the events go.

    `path` is a folder, or what the format takes for a path; None where its `options` say it all.
    `state` is the folder in which a format that is no files keeps where the job stands.
    """

    path: str | None
    format: str = "parquet"
    partition_by: tuple[str, ...] = ("status", "type")
    overwrite: bool = False
    columns: tuple[str, ...] = ()
    state: str | None = None
    # May hold passwords, as those of a database do.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_files(self) -> bool:
        """Whether the format is files in a folder."""
        return self.format.lower() in FILE_FORMATS


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A folder of their own for records that are no right events."""

    path: str
    format: str = "parquet"


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Everything that a job needs to know."""

    # Options of the data source, secrets among them.
    source: Mapping[str, str] = field(repr=False)
    output: Output
    mode: Mode = "once"
    # None: dead letters stand among the events, with the status `invalid`.
    dead_letters: DeadLetters | None = None
    # How far apart, by the time of their records, two events of one source and id may be and still
    # count as the same. A day: producers repeat within minutes, people within hours, and what was
    # written in this time is looked at again in every increment. 0: within an increment alone.
    window_s: float = 86_400.0
    # How long a stream waits from the beginning of one increment to that of the next. A minute:
    # each is a folder with a file or more of its own, and a day has 1,440 of them then.
    interval_s: float = 60.0
    # Offsets in one increment. Ten million: some minutes of two cores, which are the most that a
    # kill undoes. A read of everything, `once`, is one increment however long it is.
    max_records: int | None = 10_000_000
    # Conf of the session.
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
