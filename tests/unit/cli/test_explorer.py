"""Tests `kproto explorer`: the page as a file, on standard output, or in the browser."""

from __future__ import annotations

import subprocess
import sys
import webbrowser
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import pytest

from kproto.cli import main
from kproto.explorer.build import kafka_page


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "explorer.html"
    assert main(["explorer", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == kafka_page()
    assert capsys.readouterr().out == f"{out}\n"


def test_the_standard_output() -> None:
    command = [sys.executable, "-m", "kproto", "explorer", "--out", "-"]
    made = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert made.stdout.decode() == kafka_page()
    assert made.stderr == b""


@pytest.mark.slow
def test_a_closed_pipe_ends_quietly() -> None:
    command = [sys.executable, "-m", "kproto", "explorer", "--out", "-"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stderr:
        assert process.stdout.read(15) == b"<!DOCTYPE html>"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.wait(60) == 0


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "no" / "folder.html"
    assert main(["explorer", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert (
        said == f"kproto: error: cannot write {out}: No such file or directory; name another file\n"
    )


@pytest.mark.parametrize("opens", [True, False])
def test_the_browser(
    opens: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def open_(uri: str) -> bool:
        asked.append(uri)
        return opens

    monkeypatch.setattr(webbrowser, "open", open_)
    assert main(["explorer"]) == (0 if opens else 1)
    (uri,) = asked
    file = Path(url2pathname(urlparse(uri).path))
    try:
        assert file.read_text(encoding="utf-8") == kafka_page()
        captured = capsys.readouterr()
        assert captured.out == f"{file}\n"
        assert ("no browser could be started" in captured.err) is not opens
    finally:
        file.unlink()
