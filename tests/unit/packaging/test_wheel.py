"""Tests that the wheel has every file of kproto's packages.

The wheel must have no file that conflicts with another package in site-packages.
"""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tests.support.environment import ROOT

pytestmark = pytest.mark.slow

PACKAGES = {
    "kproto": ROOT / "kproto",
    "kproto_codegen": ROOT / "codegen" / "kproto_codegen",
    "kproto_cloudevents": ROOT / "cloudevents" / "kproto_cloudevents",
    "kproto_pipeline": ROOT / "pipeline" / "kproto_pipeline",
    "pyspark_kproto": ROOT / "pipeline" / "pyspark_kproto",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel with `python -m build`."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT],
        check=True,
        capture_output=True,
        text=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[PurePosixPath]:
    """Returns the file names in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return [PurePosixPath(name) for name in archive.namelist()]


def test_the_wheel_has_only_kprotos_packages(names: list[PurePosixPath]) -> None:
    # A top-level package `cloudevents` would overwrite the official SDK.
    tops = {name.parts[0] for name in names if not name.parts[0].endswith(".dist-info")}
    assert tops == set(PACKAGES)


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_the_wheel_has_every_tracked_file(package: str, names: list[PurePosixPath]) -> None:
    folder = PACKAGES[package]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "."], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    tracked = {f"{package}/{name}" for name in listed.split("\0") if name}
    present = {name for name in tracked if (folder.parent / name).exists()}
    assert f"{package}/__init__.py" in present
    assert f"{package}/py.typed" in present
    assert not present - {str(name) for name in names}


def test_the_wheel_has_the_data_files(names: list[PurePosixPath]) -> None:
    suffixes = {(name.parts[0], "".join(name.suffixes)) for name in names}
    assert ("kproto_codegen", ".py.j2") in suffixes
    assert ("kproto", ".toml") in suffixes
    assert "kproto/schema/versions.json" in map(str, names)
    assert any(top == "kproto" and suffix.startswith(".jsonl") for top, suffix in suffixes)


def test_the_wheel_has_the_licence(names: list[PurePosixPath]) -> None:
    assert {"LICENSE", "NOTICE"} <= {name.name for name in names}


def test_the_wheel_names_its_pytest_plugin_and_needs_no_pytest(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (points,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        text = archive.read(points).decode()
        metadata = archive.read(points.replace("entry_points.txt", "METADATA")).decode()
    assert "[pytest11]\nkproto.pytest_plugin = kproto.pytest_plugin\n" in text
    assert "Requires-Dist: pytest" not in metadata


def test_the_wheel_needs_no_other_package(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    program = (
        f"import sys; sys.path.insert(0, {str(wheel)!r})\n"
        "import kproto, kproto_cloudevents\n"
        "from kproto.messages import ApiVersionsRequest\n"
        "request = ApiVersionsRequest(client_software_name='a', client_software_version='1')\n"
        "print(request.encode(3).hex(), kproto.__file__)\n"
        "from kproto.schema import glossary, study\n"
        "print(study.added_in('Fetch', 13), glossary.load_glossary().message('FetchRequest'))\n"
    )
    python = tmp_path / "bare" / "bin" / "python"
    done = subprocess.run(
        [python, "-I", "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    first, second = done.stdout.splitlines()
    encoded, imported_from = first.split()
    assert encoded == "02610231" + "00"
    assert imported_from.startswith(str(wheel))
    assert second.startswith("3.1.0 ")
    assert second.endswith(".")
