"""Tests which import finders are removed from Python's cache: those of PySpark's own archives.

Finders of other archives stay in the cache, so that Python reads changed archives again.
"""

from __future__ import annotations

import sys
import zipfile
from importlib import import_module, invalidate_caches
from pathlib import Path
from zipimport import zipimporter

import pytest
from kproto_pipeline.spark.worker_imports import drop_archive_finders


def archive(path: Path, module: str, text: str) -> str:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{module}.py", text)
        made.writestr(f"{module}_more.py", text)
    return str(path)


def test_only_finders_of_pyspark_archives_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("pyspark.zip", "py4j-0.10.9.9-src.zip", "shipped.zip")
    for number, name in enumerate(names):
        place = archive(tmp_path / name, f"of_archive_{number}", "here = __file__")
        monkeypatch.syspath_prepend(place)
        assert import_module(f"of_archive_{number}").here.startswith(place)
    drop_archive_finders()
    left = {
        Path(finder.archive).name
        for finder in sys.path_importer_cache.values()
        if isinstance(finder, zipimporter) and Path(finder.archive).parent == tmp_path
    }
    assert left == {"shipped.zip"}
    invalidate_caches()
    for number, name in enumerate(names):
        found = import_module(f"of_archive_{number}_more").here
        assert found.startswith(str(tmp_path / name))
