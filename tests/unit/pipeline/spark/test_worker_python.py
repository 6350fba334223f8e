"""Tests the script that starts Python without PySpark's archives on its path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from kproto_pipeline.spark.worker_python import python_for_workers, script_for

PROGRAM = "import json, os, sys; print(json.dumps([os.environ['PYTHONPATH'], sys.argv[1:]]))"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "{home}/python/lib/pyspark.zip:{home}/python/lib/py4j-0.10.9.9-src.zip:/a b:/c.jar",
            "/a b:/c.jar",
        ),
        ("/a:{home}/python/lib/pyspark.zip:/b", "/a:/b"),
        ("{home}/python/lib/pyspark.zip", ""),
        ("{home}/jars/spark-core_2.13-4.2.0.jar:/jars/mine.jar", "/jars/mine.jar"),
        ("/other/pyspark.zip:/*", "/other/pyspark.zip:/*"),
        ("", ""),
    ],
)
def test_script_removes_the_archives(tmp_path: Path, path: str, expected: str) -> None:
    home = tmp_path / "it's a folder"
    script = tmp_path / "python"
    script.write_text(script_for(sys.executable, home))
    script.chmod(0o700)
    done = subprocess.run(
        [script, "-c", PROGRAM, "-m", "a b", ""],
        env={**os.environ, "PYTHONPATH": path.format(home=home)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(done.stdout) == [expected, ["-m", "a b", ""]]


def context(folder: Path | None) -> Any:
    return SimpleNamespace(_temp_dir=None if folder is None else str(folder))


def test_only_a_pyspark_of_pip_gets_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(pyspark.__file__).parent
    monkeypatch.setenv("SPARK_HOME", str(home))
    assert python_for_workers(context(tmp_path)) == str(tmp_path / "kproto-python")
    assert f"{home}/python/lib/" in (tmp_path / "kproto-python").read_text()
    assert python_for_workers(context(None)) == sys.executable
    assert python_for_workers(context(tmp_path / "absent")) == sys.executable
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))  # another Spark
    assert python_for_workers(context(tmp_path)) == sys.executable
    monkeypatch.delenv("SPARK_HOME")
    assert python_for_workers(context(tmp_path)) == str(tmp_path / "kproto-python")


def test_pyspark_behind_a_symbolic_link_gets_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(Path(pyspark.__file__).parent)
    monkeypatch.setenv("SPARK_HOME", str(link))
    assert python_for_workers(context(tmp_path)) == str(tmp_path / "kproto-python")
    assert f"{link}/python/lib/" in (tmp_path / "kproto-python").read_text()
