"""The settings of a job as plain data: each with its default and the reason for this default.

Imports no Spark, and reads no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ..spark.options.option_table import ReadOptions, parse_read_options
from .lake_packages import LAKE_FORMATS

__all__ = ["FILE_FORMATS", "MODES", "DeadLetterSettings", "JobSettings", "Mode", "OutputSettings"]

Mode: TypeAlias = Literal["once", "incremental", "stream"]

MODES: Final[tuple[Mode, ...]] = ("once", "incremental", "stream")

#: Spark's formats that write files to a folder, which a rename can publish. Other formats write to
#: another system, for example a database.
FILE_FORMATS: Final = frozenset({"parquet", "orc", "json", "csv", "xml", "avro"})

#: The folder of the manifests in a table's folder. Readers and clean-ups of tables skip names that
#: begin with an underscore.
TABLE_STATE: Final = "_kproto_state"


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """The output of a job: its format, its path, and the options for Spark's writer.

    `path` is the folder of the events, or None if the format needs no path. `state` is the folder
    of the manifests if the format does not write files; a Delta or Iceberg table with a path needs
    none, because the folder is in the table's folder. `overwrite` lets a run in the mode `once`
    replace an existing output. `columns` are the columns to write; if `columns` is empty, all
    columns are written.
    """

    path: str | None
    format: str = "parquet"
    partition_by: tuple[str, ...] = ("status", "type")
    overwrite: bool = False
    columns: tuple[str, ...] = ()
    state: str | None = None
    # May contain passwords, for example those of a database.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    # Adds the columns that an existing Delta or Iceberg table lacks. Off, because a column that is
    # added by mistake stays in the table.
    merge_schema: bool = False

    @property
    def is_files(self) -> bool:
        """Returns True if the format writes files to a folder."""
        return self.format.lower() in FILE_FORMATS

    @property
    def is_lake_table(self) -> bool:
        """Returns True if the output is a Delta or Iceberg table."""
        return self.format.lower() in LAKE_FORMATS

    @property
    def state_path(self) -> str | None:
        """Returns the folder of the manifests; None if the settings do not name one."""
        if self.is_files:
            return self.path
        has_folder = self.format.lower() == "delta" or "/" in (self.path or "")
        if self.state is None and self.path is not None and self.is_lake_table and has_folder:
            return f"{self.path.rstrip('/')}/{TABLE_STATE}"
        return self.state


@dataclass(frozen=True, slots=True)
class DeadLetterSettings:
    """The folder for records that are not valid CloudEvents."""

    path: str
    format: str = "parquet"


@dataclass(frozen=True, slots=True)
class JobSettings:
    """The settings of a job: its source, its output and the size of its increments.

    Raises:
        OptionError: an option in `source` is unknown, missing or wrong.
    """

    # The options of the data source; some are secrets.
    source: Mapping[str, str] = field(repr=False)
    output: OutputSettings
    mode: Mode = "once"
    # None: invalid records are written to the output, with the status `invalid`.
    dead_letters: DeadLetterSettings | None = None
    # An event is a duplicate if an earlier increment has an event with the same source and id whose
    # record timestamp differs by at most this time. A day, because a producer repeats an event
    # within minutes and an operator within hours. Each increment reads the earlier increments of
    # this time again. 0: only events of the same increment are compared.
    window_s: float = 86_400.0
    # True: an increment is added to a Delta or Iceberg table by MERGE, so that an event is a
    # duplicate of any earlier event with the same source and id. Off, because the window is enough
    # for repeated sends.
    merge: bool = False
    # The time from the start of one increment to the start of the next, in the mode `stream`. A
    # minute: an increment is a folder with at least one file, and 1,440 a day are few enough.
    interval_s: float = 60.0
    # The maximum number of offsets of an increment. Ten million take two cores some minutes: a kill
    # undoes at most this work. In the mode `once` all offsets are one increment.
    max_records: int | None = 10_000_000
    # The Spark properties of the session.
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: `source` as parsed options.
    read_options: ReadOptions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        options = parse_read_options({**self.source, "cloudEvents": "true"})
        object.__setattr__(self, "read_options", options)
