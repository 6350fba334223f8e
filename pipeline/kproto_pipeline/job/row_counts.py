"""Counts the rows of an output's files by status.

The footers of local Parquet files have the numbers of rows, and the partition folders have the
status. Reading the footers takes less time than a job of Spark. Spark counts the rows of all other
files.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from .output_reader import output_reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .output_files import OutputFiles
    from .settings import OutputSettings

__all__ = ["rows_by_status"]

_STATUS_FOLDER: Final = "status="


def rows_by_status(
    spark: SparkSession, files: OutputFiles, output: OutputSettings, path: str
) -> dict[str, int]:
    """Returns the number of rows in the files of the folder `path`, by status."""
    if not files.holds_data(path):
        return {}
    local = files.local_path(path)
    if local is not None and output.format.lower() == "parquet" and "status" in output.partition_by:
        found = _rows_in_footers(local)
        if found is not None:
            return found
    counted = output_reader(spark, output, "status").load(path)
    return {row["status"]: row["count"] for row in counted.groupBy("status").count().collect()}


def _rows_in_footers(folder: Path) -> dict[str, int] | None:
    """Returns the number of rows by status; None if a footer or a status cannot be read.

    As Spark does, skips files and folders with a name that begins with "." or "_", except partition
    folders.
    """
    # Imported here, because the import takes time, and some outputs are not Parquet.
    from pyarrow.parquet import read_metadata

    rows: Counter[str] = Counter()
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        parts = Path(parent).relative_to(folder).parts
        status = next((it for it in parts if it.startswith(_STATUS_FOLDER)), None)
        for name in names:
            if _is_hidden(name):
                continue
            if status is None:
                return None
            try:
                footer = read_metadata(Path(parent, name))
            except (pa.ArrowException, OSError):  # an encrypted footer, for example
                return None
            rows[status.removeprefix(_STATUS_FOLDER)] += footer.num_rows
    return {status: count for status, count in rows.items() if count}


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
