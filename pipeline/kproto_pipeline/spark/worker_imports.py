"""Reduces what Python does for imported modules in the processes that Spark starts.

Before each task, PySpark calls `importlib.invalidate_caches`, because Spark may have shipped files.
Up to Python 3.11, each finder then reads the directory of its zip again: one finder per imported
package of `pyspark.zip`, 77 ms per task. PySpark's own archives never change.

After each task, PySpark calls `gc.collect`, which visits the 50,000 to 60,000 objects of the
imported modules: 15 to 30 ms per task. Modules are never garbage.
"""

from __future__ import annotations

import gc
import sys
from functools import cache
from pathlib import PurePath
from zipimport import zipimporter

__all__ = ["drop_archive_finders", "freeze_imported", "freeze_imported_once"]


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
    return (
        name == "pyspark.zip"
        or (name.startswith("py4j-") and name.endswith("-src.zip"))
        or (name.startswith("spark-core_") and name.endswith(".jar"))
    )


def freeze_imported() -> None:
    """Excludes the present objects from garbage collection in a process that Spark started.

    Does nothing in any other process, such as the driver program. A cycle of references that
    becomes garbage later is not freed if its objects existed before this call.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name.startswith("pyspark."):
        gc.freeze()


@cache
def freeze_imported_once() -> None:
    """Calls `freeze_imported` in the first task of a process, which has imported all modules."""
    freeze_imported()
