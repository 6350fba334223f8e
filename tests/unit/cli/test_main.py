"""Tests the command line: one line for an error, the exit code, and lazy imports."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from kproto import __version__
from kproto.cli import main, whole_parser
from tests.support.environment import ROOT


@pytest.mark.parametrize("command", [[], ["broker"]])
def test_the_version(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"kproto {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["broker", "--port", "x"],
        ["broker", "--topic", "t:many"],
        ["broker", "--topic", "t:1:2"],
        ["broker", "--partitions"],
    ],
    ids=" ".join,
)
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "99999"], "port is 99999"),
        (["--port", "-1"], "port is -1"),
        (["--partitions", "0"], "num_partitions is 0"),
        (["--host", "0.0.0.0"], "advertised_host"),
        (["--port", "0", "--topic", "a b"], "INVALID_TOPIC_EXCEPTION"),
        (["--port", "0", "--topic", "a:0"], "INVALID_PARTITIONS"),
        (["--port", "0", "--topic", "a", "--topic", "a"], "TOPIC_ALREADY_EXISTS"),
        (["--host", "no.such.host.invalid"], "cannot listen"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_are_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    is_wrong = " is " in said or said == "advertised_host"
    assert main(["broker", *arguments]) == (2 if is_wrong else 1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("kproto: error: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_the_command_line_imports_little() -> None:
    script = (
        "import sys, kproto.cli\n"
        "heavy = ('asyncio', 'kproto.broker', 'kproto.client', 'kproto.messages')\n"
        "sys.exit(' '.join(name for name in heavy if name in sys.modules) or None)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_arguments_of_a_command_load_no_event_loop_and_no_compression() -> None:
    script = (
        f"import sys; sys.path[0:0] = [{str(ROOT)!r}]\n"
        "from kproto.cli.whole_parser import parse\n"
        "parse(['consume', 'orders', '--timeout', '3s'])\n"
        "heavy = ('asyncio', 'bz2', 'datetime', 'kproto.client', 'lzma', 'shutil', 'ssl')\n"
        "sys.exit(' '.join(name for name in heavy if name in sys.modules) or None)"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True, timeout=60)


@pytest.mark.parametrize("columns", ["57", "0", "-3", "wide", ""])
def test_the_help_is_as_wide_as_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert whole_parser._terminal_width() == shutil.get_terminal_size().columns


@pytest.mark.slow
def test_closed_standard_output_is_no_fault() -> None:
    command = [sys.executable, "-m", "kproto", "inspect", "Heartbeat"]
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize(
    "module", ["kproto.cli", "kproto.cli.admin.topics", "kproto.client.client"]
)
def test_ctrl_c_during_an_import_is_quiet(module: str) -> None:
    program = f"""
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupts(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
from kproto.__main__ import process
sys.argv = ["kproto", "topics", "-b", "localhost:1"]
sys.exit(process())
"""
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")
