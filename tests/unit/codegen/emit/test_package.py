"""Tests the `__init__` module of generated packages, also if no message has a version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..packages import classes, generate, imported, write_definitions
from ..samples import data, field, message

GONE = [
    message(validVersions="none"),
    message(field("A"), name="SampleResponse", type="response", validVersions="none"),
    data(validVersions="none", flexibleVersions=None),
]


@pytest.mark.parametrize("count", [1, 3])
def test_a_package_of_messages_without_versions_is_imported(tmp_path: Path, count: int) -> None:
    out = tmp_path / "gone"
    assert generate(write_definitions(tmp_path / "own", GONE[:count]), out) == 0
    with imported(out) as package:
        assert classes(package) == []
        assert (package.MODULES, package.FORMER_NAMES, package.API_KEYS) == ({}, {}, {})
        with pytest.raises(AttributeError, match="has no message 'SampleRequest'"):
            _ = package.SampleRequest


def test_a_package_that_becomes_empty_and_full_again(tmp_path: Path) -> None:
    out = tmp_path / "gone"
    for source, count in ((message(), 1), (GONE[0], 0), (message(), 1)):
        assert generate(write_definitions(tmp_path / "own", [source]), out) == 0
        with imported(out) as package:
            assert len(classes(package)) == count


@pytest.mark.parametrize("source", [message(), data(), GONE[0]])
def test_tables_are_formatted_also_where_they_are_empty(tmp_path: Path, source: object) -> None:
    out = tmp_path / "own_package"
    assert isinstance(source, dict)
    assert generate(write_definitions(tmp_path / "own", [source]), out) == 0
    command = [sys.executable, "-m", "ruff", "format", "--diff", "--isolated"]
    command += ["--line-length", "100", str(out / "__init__.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (0, "")
