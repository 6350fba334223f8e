"""Files that a property names, where Spark has shipped them: `--files`, `spark.files`, `addFile`.

Owns where such a file is found. Each worker has its own folder, so that a name alone says enough
everywhere; a path from the root is taken as it is. Reads no file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import SparkFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["resolve_shipped_files"]

#: How the names of properties end whose values are the names of files, Java's and librdkafka's.
_NAMES_A_FILE: Final = ".location"


def resolve_shipped_files(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties, with the full path of each file that lies where Spark ships files to.

    A file that lies in the working directory comes first, as without Spark.
    """
    return {
        name: _path(value) if name.endswith(_NAMES_A_FILE) else value
        for name, value in properties.items()
    }


def _path(value: str) -> str:
    if Path(value).is_absolute() or Path(value).exists():
        return value
    shipped = _shipped_to()
    if shipped is None or not (shipped / value).is_file():
        return value
    return str(shipped / value)


def _shipped_to() -> Path | None:
    """Spark's folder for files of this process; None where no Spark runs."""
    if SparkFiles._is_running_on_worker or SparkFiles._sc is not None:
        return Path(SparkFiles.getRootDirectory())
    return None
