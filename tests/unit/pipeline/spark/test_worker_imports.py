"""Tests what Python does less for imported modules in the processes that Spark starts.

Only import finders of PySpark's own archives are removed from Python's cache. Finders of other
archives stay in the cache, so that Python reads changed archives again.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import zipfile
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import SimpleNamespace
from zipimport import zipimporter

import pytest
from kproto_pipeline.spark.worker_imports import drop_archive_finders, freeze_imported


def archive(path: Path, module: str, text: str) -> str:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{module}.py", text)
        made.writestr(f"{module}_more.py", text)
    return str(path)


def test_only_finders_of_pyspark_archives_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("pyspark.zip", "py4j-0.10.9.9-src.zip", "spark-core_2.13-4.2.0.jar", "shipped.zip")
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


@pytest.mark.parametrize(
    ("program", "frozen"),
    [("pyspark.daemon", True), ("pyspark.sql.worker.create_data_source", True), ("mine", False)],
)
def test_only_processes_of_spark_freeze_objects(
    monkeypatch: pytest.MonkeyPatch, program: str, frozen: bool
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name=program))
    try:
        freeze_imported()
        assert (gc.get_freeze_count() > 0) is frozen
    finally:
        gc.unfreeze()


def test_a_script_freezes_no_objects() -> None:
    code = "import gc, kproto_pipeline.spark.data_source; print(gc.get_freeze_count())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "0\n"


def test_planner_of_a_stream_imports_no_decoder_of_records() -> None:
    code = (
        "import sys, kproto_pipeline.spark.data_source, "
        "kproto_pipeline.spark.streaming.stream_reader; "
        "print(*(name for name in sys.modules if name.startswith(('kproto_pipeline.columns.', "
        "'kproto.records.magic2', 'kproto_pipeline.spark.options.java_regex'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert set(done.stdout.split()) == {
        f"kproto_pipeline.columns.{name}"
        for name in ("arrow_numpy", "arrow_records", "event_schema")
    }
