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

__all__ = ["resolve_shipped_files", "shipped_folder"]

#: The suffix of the properties, of Java and of librdkafka, whose value is a file.
_FILE_SUFFIX: Final = ".location"


def resolve_shipped_files(
    properties: Mapping[str, str], driver_folder: str | None = None
) -> dict[str, str]:
    """Returns the properties with full paths for the files that Spark has shipped.

    Does not replace the name of a file that also exists in the working directory. `driver_folder`
    is the folder of shipped files on the driver. The process that plans a stream needs it, because
    Spark gives this process an empty folder.
    """
    folders = [Path(folder) for folder in (shipped_folder(), driver_folder) if folder is not None]
    return {
        name: _path(value, folders) if name.endswith(_FILE_SUFFIX) else value
        for name, value in properties.items()
    }


def _path(value: str, folders: list[Path]) -> str:
    if Path(value).is_absolute() or Path(value).exists():
        return value
    for folder in folders:
        if (folder / value).is_file():
            return str(folder / value)
    return value


def shipped_folder() -> str | None:
    """Returns Spark's folder of shipped files in this process; None outside of Spark."""
    if not SparkFiles._is_running_on_worker and SparkFiles._sc is None:
        return None
    return SparkFiles.getRootDirectory()
