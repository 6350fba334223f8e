"""A program that is run to its end: its output, and what is told when it fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.setup.programs import FIRST, ProgramError, run_program

TIMEOUT_S = 60.0


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_output_is_kept(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['A']); sys.stderr.write('aside')"
    printed = run_program(
        python(code), timeout_s=TIMEOUT_S, folder=tmp_path, environment={"A": "b"}
    )
    assert printed == f"{tmp_path.resolve()} b\n"


def test_a_failure_repeats_what_was_said() -> None:
    code = "import sys; print(*range(100), sep='\\n'); sys.exit(3)"
    with pytest.raises(ProgramError, match=r"(?s)ended with 3; it said:\n40\n.*99$"):
        run_program(python(code), timeout_s=TIMEOUT_S)
    with pytest.raises(ProgramError, match=r"it said:\n0\n1\n2\n3\n4$"):
        run_program(python(code), timeout_s=TIMEOUT_S, shown=FIRST)


def test_a_program_that_hangs_is_ended() -> None:
    with pytest.raises(ProgramError, match=r"was not done after 0\.1 s"):
        run_program(python("import time; time.sleep(60)"), timeout_s=0.1)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="nothing does not run"):
        run_program([str(tmp_path / "nothing")], timeout_s=TIMEOUT_S)
