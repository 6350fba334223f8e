"""Tests the zip for clusters: it has all kproto packages, and only pure Python files."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from kproto_pipeline.package import PACKAGES, main, write_package

from tests.support.environment import ROOT

#: Removes this checkout from the path, so that kproto is imported from the zip.
FROM_THE_ZIP = """
import sys
ours = [p for p in sys.path if p.startswith(sys.argv[2]) and "site-packages" not in p]
sys.path = [sys.argv[1]] + [p for p in sys.path if p not in ours]
sys.path_importer_cache.clear()
import kproto
assert kproto.__file__.startswith(sys.argv[1]), kproto.__file__
"""

EXPLAINS = """
from kproto.messages import FetchRequest
from kproto.wire.errors import DecodeError
try:
    FetchRequest.decode(b"abc", 13)
except DecodeError as error:
    assert "field replica_id" in str(error), error
else:
    raise AssertionError
"""

IS_FOUND = """
from pyspark_kproto import DefaultSource
source = DefaultSource({"kafka.bootstrap.servers": "h:1", "subscribe": "t"})
assert source.schema().names[:2] == ["key", "value"]
"""

PACKS_ITSELF = """
from kproto_pipeline.package import main
main([sys.argv[3]])
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("package") / "kproto.zip"
    write_package(target)
    return target


def run(package: Path, program: str, *arguments: str) -> None:
    command = [sys.executable, "-c", FROM_THE_ZIP + program, str(package), str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=package.parent, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_zip_has_all_packages_in_pure_python(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == set(PACKAGES)
    assert not [name for name in names if name.endswith((".so", ".pyc")) or "__pycache__" in name]
    assert "kproto/schema/definitions.jsonl" in names


@pytest.mark.slow
def test_errors_are_explained_from_the_zip(package: Path) -> None:
    """To explain an error, the package reads the message definitions, which must be in the zip."""
    run(package, EXPLAINS)


@pytest.mark.slow
def test_data_source_is_imported_from_the_zip(package: Path) -> None:
    run(package, IS_FOUND)


@pytest.mark.slow
def test_zip_written_from_the_zip_is_equal(package: Path, tmp_path: Path) -> None:
    run(package, PACKS_ITSELF, str(tmp_path / "again.zip"))
    assert (tmp_path / "again.zip").read_bytes() == package.read_bytes()


def test_failed_write_keeps_the_existing_zip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "no folder" / "kproto.zip")]) == 1
    assert "was not written" in capsys.readouterr().err


def test_name_without_zip_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path / "kproto.whl")])
    assert not list(tmp_path.iterdir())
