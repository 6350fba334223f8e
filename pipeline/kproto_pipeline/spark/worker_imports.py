"""Prevents a worker's Python from reading the directory of `pyspark.zip` again for each task.

Before each task, PySpark calls `importlib.invalidate_caches`, because Spark may have shipped files.
Up to Python 3.11, each finder then reads the directory of its zip again: one finder per imported
package of `pyspark.zip`, 77 ms per task. PySpark's own archives never change.
"""

from __future__ import annotations

import sys
from pathlib import PurePath
from zipimport import zipimporter

__all__ = ["drop_archive_finders"]


def drop_archive_finders() -> None:
    """Removes the import finders of PySpark's own archives from Python's cache of finders.

    Otherwise `importlib.invalidate_caches` would make these finders read the directories of their
    archives again. At the next import from an archive, Python creates a new finder, which uses the
    cached directory.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and _is_of_pyspark(finder.archive):
            sys.path_importer_cache.pop(path, None)


def _is_of_pyspark(archive: str) -> bool:
    name = PurePath(archive).name
    return name == "pyspark.zip" or (name.startswith("py4j-") and name.endswith("-src.zip"))
