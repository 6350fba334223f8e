"""Tests the commands and the program of docs/how-to/definitions.md that study an own protocol.

`python -m tests.unit.test_own_protocol_page` writes the printed texts into the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kproto_codegen.cli import main as codegen

from tests.support.environment import ROOT
from tests.support.own_protocol import imported_package
from tests.support.pages import blocks, page_text, run_program
from tests.unit.test_console_pages import command_of, printed

PAGE = "docs/how-to/definitions.md"
DEFINITION = re.compile(r"^`(\w+/\w+\.json)`\n\n```json\n(.*?)^```", re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def prepared(folder: Path) -> Iterator[None]:
    """Writes the definitions of the page to `folder`, and imports the package made from them."""
    definitions = DEFINITION.findall(page_text(PAGE))
    assert {name.partition("/")[0] for name, _ in definitions} == {"greetings", "older"}
    for name, text in definitions:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        arguments = ["--schemas", "greetings", "--package", "hello", "--out", "hello"]
        assert codegen(["generate", *arguments, "--secret", "GreetRequest.Token"]) == 0
        with imported_package(folder / "hello"):
            yield


def printed_by_program() -> str:
    """Returns the output of the page's second program, which also writes a recording."""
    _, program = blocks(page_text(PAGE), "python")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run_program(program, PAGE)
    return out.getvalue()


def test_the_page_prints_what_stands_on_it(tmp_path: Path) -> None:
    with prepared(tmp_path):
        assert printed_by_program() == blocks(page_text(PAGE), "text")[1]
        commands = blocks(page_text(PAGE), "console")
        assert len(commands) >= 3
        for block in commands:
            assert f"$ {command_of(block)}\n{printed(command_of(block))}" == block


if __name__ == "__main__":
    text = page_text(PAGE)
    with tempfile.TemporaryDirectory() as name, prepared(Path(name)):
        shown = blocks(text, "text")[1]
        made = printed_by_program()
        for found in blocks(text, "console"):
            block = f"$ {command_of(found)}\n{printed(command_of(found))}"
            text = text.replace(f"```console\n{found}```", f"```console\n{block}```")
    at = text.rindex(f"```text\n{shown}```")
    text = f"{text[:at]}```text\n{made}{text[at + len('```text') + 1 + len(shown) :]}"
    (ROOT / PAGE).write_text(text, encoding="utf-8")
