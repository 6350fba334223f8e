"""Resolves files that a property names to the folder of files that Spark ships to this process.

Spark ships files by `--files`, `spark.files` and `addFile`. Each worker has a folder of its own, so
a name without a path works everywhere; an absolute path stays as it is. Reads no file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import SparkFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["resolve_shipped_files"]

#: The end of the names of properties whose value is a file, Java's and librdkafka's.
_FILE_SUFFIX: Final = ".location"


def resolve_shipped_files(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties, with the full path of each file that Spark has shipped.

    A file in the working directory has precedence, as without Spark.
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
    """Returns Spark's folder for the files of this process; None outside of Spark."""
    if SparkFiles._is_running_on_worker or SparkFiles._sc is not None:
        return Path(SparkFiles.getRootDirectory())
    return None
