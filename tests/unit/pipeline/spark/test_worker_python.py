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
            "{lib}/pyspark.zip:{lib}/py4j-0.10.9.9-src.zip:/a b:/c.jar",
            "/a b:/c.jar",
        ),
        ("/a:{lib}/pyspark.zip:/b", "/a:/b"),
        ("{lib}/pyspark.zip", ""),
        ("/other/pyspark.zip:/*", "/other/pyspark.zip:/*"),
        ("", ""),
    ],
)
def test_script_removes_the_archives(tmp_path: Path, path: str, expected: str) -> None:
    archives = tmp_path / "it's a folder" / "lib"
    script = tmp_path / "python"
    script.write_text(script_for(sys.executable, archives))
    script.chmod(0o700)
    done = subprocess.run(
        [script, "-c", PROGRAM, "-m", "a b", ""],
        env={**os.environ, "PYTHONPATH": path.format(lib=archives)},
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
    assert str(home / "python" / "lib") in (tmp_path / "kproto-python").read_text()
    assert python_for_workers(context(None)) == sys.executable
    assert python_for_workers(context(tmp_path / "absent")) == sys.executable
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))  # another Spark
    assert python_for_workers(context(tmp_path)) == sys.executable
    monkeypatch.delenv("SPARK_HOME")
    assert python_for_workers(context(tmp_path)) == str(tmp_path / "kproto-python")
