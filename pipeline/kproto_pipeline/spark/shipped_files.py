"""Finds the files that properties name, in the folder of files that Spark ships to this process.

Spark ships files with `--files`, `spark.files` and `addFile`, to a different folder in each worker.
A plain file name therefore works on every node; an absolute path is not changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import SparkFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["resolve_shipped_files"]

#: The suffix of the properties, of Java and of librdkafka, whose value is a file.
_FILE_SUFFIX: Final = ".location"


def resolve_shipped_files(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties with full paths for the files that Spark has shipped.

    Does not replace the name of a file that also exists in the working directory.
    """
    return {
        name: _path(value) if name.endswith(_FILE_SUFFIX) else value
        for name, value in properties.items()
    }


def _path(value: str) -> str:
    if Path(value).is_absolute() or Path(value).exists():
        return value
    shipped = _shipped_folder()
    if shipped is None or not (shipped / value).is_file():
        return value
    return str(shipped / value)


def _shipped_folder() -> Path | None:
    """Returns Spark's folder of shipped files in this process; None outside of Spark."""
    if SparkFiles._is_running_on_worker or SparkFiles._sc is not None:
        return Path(SparkFiles.getRootDirectory())
    return None
