"""The settings of a job, as plain data, with the default of each and its reason.

Reads no file and starts no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ..spark.options.option_table import ReadOptions, parse_read_options

__all__ = ["FILE_FORMATS", "MODES", "DeadLetters", "JobSettings", "Mode", "Output"]

Mode: TypeAlias = Literal["once", "incremental", "stream"]

MODES: Final[tuple[Mode, ...]] = ("once", "incremental", "stream")

#: Spark's formats that are files in a folder. Other formats write to a system of their own, so that
#: no rename can publish their rows.
FILE_FORMATS: Final = frozenset({"parquet", "orc", "json", "csv", "xml", "avro"})


@dataclass(frozen=True, slots=True)
class Output:
    """The output of the job: the format, the path and the options for the events.

    `path` is a folder or another path of the format; None if its `options` are enough. `state` is
    the folder for the manifests of a format that does not write files.
    """

    path: str | None
    format: str = "parquet"
    partition_by: tuple[str, ...] = ("status", "type")
    overwrite: bool = False
    columns: tuple[str, ...] = ()
    state: str | None = None
    # May contain passwords, for example those of a database.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_files(self) -> bool:
        """Returns whether the format writes files in a folder."""
        return self.format.lower() in FILE_FORMATS


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The folder for records that are not valid CloudEvents."""

    path: str
    format: str = "parquet"


@dataclass(frozen=True, slots=True)
class JobSettings:
    """The settings of a job: its source, its output and the size of an increment.

    Raises:
        OptionError: an option in `source` is unknown, missing or wrong.
    """

    # Options of the data source, secrets among them.
    source: Mapping[str, str] = field(repr=False)
    output: Output
    mode: Mode = "once"
    # None: invalid records are written among the events, with the status `invalid`.
    dead_letters: DeadLetters | None = None
    # The maximum time between the timestamps of two records whose events, with equal source and id,
    # count as duplicates. A day, because producers repeat an event within minutes, people within
    # hours, and each increment reads again the events written in this time. 0: only events of the
    # same increment are compared.
    window_s: float = 86_400.0
    # The time from the start of one increment of a stream to the start of the next. A minute: an
    # increment is a folder with at least one file, and a day has 1,440 of them.
    interval_s: float = 60.0
    # The maximum number of offsets of one increment. Ten million take two cores some minutes, which
    # is the most work that a kill can undo. In the mode `once` all offsets are one increment.
    max_records: int | None = 10_000_000
    # Spark properties of the session.
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: `source`, parsed.
    read_options: ReadOptions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        options = parse_read_options({**self.source, "cloudEvents": "true"})
        object.__setattr__(self, "read_options", options)
