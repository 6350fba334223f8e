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

#: The name of the folder of the process that plans a stream (PythonStreamingSourceRunner in Spark).
_PLANNER_FOLDER: Final = "streaming_job"


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
    for folder in _shipped_folders():
        if (folder / value).is_file():
            return str(folder / value)
    return value


def _shipped_folders() -> list[Path]:
    """Returns Spark's folders of shipped files in this process; none outside of Spark.

    The process that plans a stream has an empty folder; the folder above it has the files of
    `--files` and `spark.files`.
    """
    if not SparkFiles._is_running_on_worker and SparkFiles._sc is None:
        return []
    folder = Path(SparkFiles.getRootDirectory())
    return [folder, folder.parent] if folder.name == _PLANNER_FOLDER else [folder]
