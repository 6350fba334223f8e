"""Tests the exit codes of the demo command."""

from __future__ import annotations

import subprocess
import sys

import pytest
from kproto_pipeline.demo import command
from kproto_pipeline.demo.report import Check

from kproto import __version__
from kproto.wire.errors import BrokerConnectionError


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"kproto_pipeline.demo {__version__}\n"


BARE = """
import runpy, sys
sys.modules.update(dict.fromkeys(["pyspark", "pyarrow", "numpy"]))  # as if not installed
runpy.run_module("kproto_pipeline.demo", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("arguments", "code", "out", "words"),
    [
        (["--version"], 0, f"kproto_pipeline.demo {__version__}\n", ""),
        ([], 1, "", "error: not installed: pyspark, pyarrow, numpy; the demo needs"),
    ],
)
def test_without_the_extra(arguments: list[str], code: int, out: str, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BARE, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    assert done.stderr.startswith(words)
    assert "Traceback" not in done.stderr
    assert ("pip install '.[spark]'" in done.stderr) is bool(words)


@pytest.mark.parametrize(("found", "code"), [(3, 0), (2, 1)])
def test_a_wrong_count_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, found: int, code: int
) -> None:
    monkeypatch.setattr(
        command, "run", lambda *_, **__: [Check("valid", 3, 3), Check("read", 3, found)]
    )
    assert command.main([]) == code


def test_an_error_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> list[Check]:
        raise BrokerConnectionError("refused", address="h:1")

    monkeypatch.setattr(command, "run", fail)
    assert command.main([]) == 1
    assert capsys.readouterr().err == "error: h:1: refused\n"


def test_an_interrupt_is_one_line_and_exit_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> list[Check]:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", interrupted)
    assert command.main([]) == 130
    assert capsys.readouterr().err == "interrupted\n"
