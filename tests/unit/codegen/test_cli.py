"""The command kproto-codegen: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kproto_codegen.cli import main
from kproto_codegen.release import load_release

from .samples import ROOT, write_jar
from .test_importer import SAMPLE, clients_jar, metadata_jar

Captured = pytest.CaptureFixture[str]


def test_import_says_what_it_took(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "schemas"
    sources = [str(clients_jar(tmp_path)), str(metadata_jar(tmp_path))]
    assert main(["import", "--out", str(out), *sources]) == 0
    captured = capsys.readouterr()
    assert [line.split() for line in captured.out.splitlines()] == [
        ["Kafka", "9.1.0:", "2", "definitions"],
        ["clients", "1"],
        ["metadata", "1"],
        ["error", "codes", "6"],
        [f"{out}/9.1.0:", "written"],
    ]
    assert captured.err == ""
    assert len(load_release(out / "9.1.0").messages) == 2


def test_import_again_changes_nothing(tmp_path: Path, capsys: Captured) -> None:
    arguments = ["import", "--out", str(tmp_path / "schemas"), str(clients_jar(tmp_path))]
    assert main(arguments) == 0
    capsys.readouterr()
    assert main(arguments) == 0
    assert capsys.readouterr().out.endswith("9.1.0: is up to date\n")


def test_import_without_error_codes_says_so(tmp_path: Path, capsys: Captured) -> None:
    assert main(["import", "--out", str(tmp_path), str(metadata_jar(tmp_path))]) == 0
    assert "no error codes: they come with kafka-clients" in capsys.readouterr().out
    assert not (tmp_path / "9.1.0" / "errors.json").exists()


def broken_jar(folder: Path) -> Path:
    return write_jar(
        folder / "kafka-raft-9.1.0.jar",
        {"common/message/Bad.json": "{\n'x'}", "common/message/Sample.json": SAMPLE},
    )


def test_import_writes_nothing_when_something_cannot_be_read(
    tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "schemas"
    assert main(["import", "--out", str(out), str(broken_jar(tmp_path))]) == 1
    captured = capsys.readouterr()
    assert "kproto-codegen: kafka-raft-9.1.0.jar!common/message/Bad.json:2: " in captured.err
    assert "nothing was written; --keep-going" in captured.err
    assert not out.exists()


def test_import_can_keep_going(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "schemas"
    assert main(["import", "--keep-going", "--out", str(out), str(broken_jar(tmp_path))]) == 1
    assert "Bad.json:2" in capsys.readouterr().err
    assert [path.name for path in out.rglob("*.json")] == ["SampleRequest.json"]


def test_import_into_a_place_that_cannot_be_written(tmp_path: Path, capsys: Captured) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["import", "--out", str(blocked / "schemas"), str(clients_jar(tmp_path))]) == 1
    assert "could not write" in capsys.readouterr().err


def test_import_says_what_held_nothing(tmp_path: Path, capsys: Captured) -> None:
    empty = write_jar(tmp_path / "kafka-server-9.1.0.jar", {"some.class": b""})
    assert main(["import", "--out", str(tmp_path), str(empty), str(clients_jar(tmp_path))]) == 0
    assert f"{empty}: holds no message definitions" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["import"], ["fly"], ["check", "one"], ["generate", "x"]]
)
def test_wrong_arguments_end_with_2(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: kproto-codegen" in capsys.readouterr().err


def test_generate_tells_a_faulty_definition(tmp_path: Path, capsys: Captured) -> None:
    schemas = tmp_path / "own"
    schemas.mkdir()
    (schemas / "Bad.json").write_text("{}")
    out = tmp_path / "package"
    arguments = ["generate", "--schemas", str(schemas), "--package", "own", "--out", str(out)]
    assert main(arguments) == 1
    assert "Bad.json:1: a message has no 'name'" in capsys.readouterr().err
    assert not out.exists()


def test_the_command_runs_as_a_module(tmp_path: Path) -> None:
    jar = clients_jar(tmp_path)
    run = subprocess.run(
        [sys.executable, "-m", "kproto_codegen.cli", "import", "--out", str(tmp_path), str(jar)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'codegen'}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "Kafka 9.1.0: 1 definitions" in run.stdout
