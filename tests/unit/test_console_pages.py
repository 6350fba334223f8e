"""Tests that each command in docs/how-to/decode.md and tutorial.md prints the text below it.

`python -m tests.unit.test_console_pages` writes the printed texts into the pages.
"""

from __future__ import annotations

import contextlib
import io
import shlex

import pytest

from kproto.cli import main
from tests.support.environment import ROOT
from tests.support.pages import blocks, page_text, run_program

PAGES = ("docs/how-to/decode.md", "docs/how-to/tutorial.md")
COMMANDS = [
    pytest.param(block, id=f"{page}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page_text(page), "console"))
]


def printed(line: str) -> str:
    """Returns standard output and then standard error of a `kproto` command line.

    If the line ends with `| grep TEXT`, returns only the lines with TEXT.
    """
    command, piped, wanted = line.partition(" | grep ")
    words = shlex.split(command)
    assert words[0] == "kproto"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(words[1:])
    text = out.getvalue() + err.getvalue()
    if not piped:
        return text
    (word,) = shlex.split(wanted)
    return "".join(each for each in text.splitlines(keepends=True) if word in each)


def command_of(block: str) -> str:
    """Returns the first line of a block, without its prompt."""
    first = block.partition("\n")[0]
    assert first.startswith("$ ")
    return first[2:]


@pytest.mark.parametrize("block", COMMANDS)
def test_a_command_prints_what_stands_below_it(block: str) -> None:
    assert f"$ {command_of(block)}\n{printed(command_of(block))}" == block


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_commands(page: str) -> None:
    assert len(blocks(page_text(page), "console")) >= 5


def test_the_program_of_the_tutorial() -> None:
    (program,) = blocks(page_text("docs/how-to/tutorial.md"), "python")
    run_program(program, "docs/how-to/tutorial.md")


if __name__ == "__main__":
    for page in PAGES:
        text = page_text(page)
        for found in blocks(text, "console"):
            made = f"$ {command_of(found)}\n{printed(command_of(found))}"
            text = text.replace(f"```console\n{found}```", f"```console\n{made}```")
        (ROOT / page).write_text(text, encoding="utf-8")
