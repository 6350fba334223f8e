"""Tests that the folder `kproto` can be copied into another code base, and works under any name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment import ROOT

IMPORT_ALL = """
import importlib, pkgutil, sys
import vendored_kafka as package
names = [module.name for module in pkgutil.walk_packages(package.__path__, "vendored_kafka.")]
names = [name for name in names if not name.endswith("__main__")]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":  # the extra `testing`
            raise
assert "kproto" not in sys.modules, "something imports kproto by name"
print(len(names))
"""


@pytest.mark.exhaustive
def test_all_of_it_imports_under_another_name(tmp_path: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "kproto", tmp_path / "vendored_kafka", ignore=ignore)
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = [{str(tmp_path)!r}]{IMPORT_ALL}"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300  # the generated messages alone are more files
