"""What a worker's Python looks through again for each task, and need not.

Before each task PySpark has Python forget what it knows of folders (`importlib.invalidate_caches`),
as files may have been shipped since. Up to Python 3.11 that reads the whole directory of
`pyspark.zip` again, once for each package in it that was imported: 77 ms for each task. What stands
in PySpark's own archives stays the same.
"""

from __future__ import annotations

import sys
from pathlib import PurePath
from zipimport import zipimporter

__all__ = ["keep_archive_finders"]


def keep_archive_finders() -> None:
    """Let later tasks of this process keep what is known of PySpark's own archives.

    Python makes its finders again where it needs them, from what it holds of each archive.
    """
    for place, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and _is_of_pyspark(finder.archive):
            sys.path_importer_cache.pop(place, None)


def _is_of_pyspark(archive: str) -> bool:
    name = PurePath(archive).name
    return name == "pyspark.zip" or (name.startswith("py4j-") and name.endswith("-src.zip"))
