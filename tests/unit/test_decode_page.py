"""The commands of docs/decode.md print what stands below them.

`python -m tests.unit.test_decode_page` writes the page anew.
"""

from __future__ import annotations

import contextlib
import io
import shlex

import pytest

from kproto.cli import main
from tests.support.environment import ROOT
from tests.support.pages import blocks, page_text

PAGE = "docs/decode.md"
COMMANDS = blocks(page_text(PAGE), "console")


def printed(command: str) -> str:
    """What a command of the page prints, its error behind it."""
    words = shlex.split(command)
    assert words[0] == "kproto"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(words[1:])
    return out.getvalue() + err.getvalue()


def command_of(block: str) -> str:
    """The first line of a block, without its prompt."""
    first = block.partition("\n")[0]
    assert first.startswith("$ ")
    return first[2:]


@pytest.mark.parametrize("block", COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_prints_what_stands_below_it(block: str) -> None:
    assert f"$ {command_of(block)}\n{printed(command_of(block))}" == block


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) >= 5


if __name__ == "__main__":
    text = page_text(PAGE)
    for found in COMMANDS:
        made = f"$ {command_of(found)}\n{printed(command_of(found))}"
        text = text.replace(f"```console\n{found}```", f"```console\n{made}```")
    (ROOT / PAGE).write_text(text, encoding="utf-8")
