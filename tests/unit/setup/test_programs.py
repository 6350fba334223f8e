"""Tests running a program to its end, supervising a program, and printing a search result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.setup.programs import FIRST, ProgramError, print_found, run_program, supervised

TIMEOUT_S = 60.0


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_output_is_returned(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['A']); sys.stderr.write('aside')"
    printed = run_program(
        python(code), timeout_s=TIMEOUT_S, folder=tmp_path, environment={"A": "b"}
    )
    assert printed == f"{tmp_path.resolve()} b\n"


def test_a_failure_repeats_the_output() -> None:
    code = "import sys; print(*range(100), sep='\\n'); sys.exit(3)"
    with pytest.raises(ProgramError, match=r"(?s)ended with 3; it said:\n40\n.*99$"):
        run_program(python(code), timeout_s=TIMEOUT_S)
    with pytest.raises(ProgramError, match=r"it said:\n0\n1\n2\n3\n4$"):
        run_program(python(code), timeout_s=TIMEOUT_S, shown=FIRST)


def test_a_hanging_program_is_stopped() -> None:
    with pytest.raises(ProgramError, match=r"was not done after 0\.1 s"):
        run_program(python("import time; time.sleep(60)"), timeout_s=0.1)


def test_a_missing_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="nothing does not run"):
        run_program([str(tmp_path / "nothing")], timeout_s=TIMEOUT_S)


def test_a_supervised_program_does_not_outlive_the_pipe() -> None:
    command = supervised(python("import time; print('up', flush=True); time.sleep(600)"), grace_s=5)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert process.stdin is not None
        process.stdin.close()
        process.wait(120)


def test_a_supervised_program_keeps_its_exit_code() -> None:
    with subprocess.Popen(
        supervised(python("import sys; sys.exit(3)"), grace_s=5), stdin=subprocess.PIPE
    ) as process:
        assert process.wait(120) == 3


def test_the_result_of_a_search_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_found("java", lambda: Path("home"), ProgramError)
    assert capsys.readouterr().out == "home\n"


def test_a_failed_search_ends_the_program_with_one_line() -> None:
    def find() -> Path:
        raise ProgramError("install one")

    with pytest.raises(SystemExit) as ended:
        print_found("java", find, ProgramError)
    assert ended.value.code == "java: install one"
