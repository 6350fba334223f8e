"""Spares a worker's Python from reading the directory of `pyspark.zip` again for each task.

Before each task PySpark calls `importlib.invalidate_caches`, because files may have been shipped
since. Up to Python 3.11 that reads the directory of `pyspark.zip` again, once for each imported
package of it: 77 ms a task. PySpark's own archives do not change.
"""

from __future__ import annotations

import sys
from pathlib import PurePath
from zipimport import zipimporter

__all__ = ["keep_archive_finders"]


def keep_archive_finders() -> None:
    """Removes the finders of PySpark's own archives from the caches that are invalidated.

    Python creates a finder again when it needs one, from the archive's cached directory.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and _is_of_pyspark(finder.archive):
            sys.path_importer_cache.pop(path, None)


def _is_of_pyspark(archive: str) -> bool:
    name = PurePath(archive).name
    return name == "pyspark.zip" or (name.startswith("py4j-") and name.endswith("-src.zip"))
