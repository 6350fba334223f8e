"""Tests that the explorer reads pasted text as Python does; Node.js runs the page's JavaScript."""

from __future__ import annotations

import json
import random
import shutil
import subprocess

import pytest

from kproto.study import read_bytes
from kproto.wire.errors import ConfigurationError
from tests.support.availability import skip_untested
from tests.support.environment import ROOT
from tests.unit.study.test_input_formats import CASES, DATA, LETTERS, OTHER_WRITERS, WRITERS

SCRIPT = ROOT / "kproto" / "explorer" / "pasted.js"

ASK = """
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const shown = given.map(([text, form]) => {
  try {
    return Buffer.from(bytesOfText(text, form)).toString("hex");
  } catch (error) {
    if (!(error instanceof PastedTextError) && error.constructor !== Error) throw error;
    return null;
  }
});
console.log(JSON.stringify(shown));
"""

NODE = shutil.which("node")


def answers(cases: list[tuple[str, str]]) -> list[str | None]:
    """Returns the bytes in hex that the page reads from each text; None for a refused text."""
    if NODE is None:
        skip_untested("the explorer's reader of text", "node is not on the PATH", "Node.js")
    done = subprocess.run(
        [NODE, "-e", SCRIPT.read_text(encoding="utf-8") + ASK],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[str | None] = json.loads(done.stdout)
    return found


def python_answer(text: str, form: str) -> str | None:
    try:
        return read_bytes(text.encode(), form).hex()
    except ConfigurationError:
        return None


def test_cases_of_python_and_javascript() -> None:
    given = [(case["text"], case["form"]) for case in CASES]
    expected = [case["hex"] for case in CASES]
    for case, found, wanted in zip(given, answers(given), expected, strict=True):
        assert found == wanted, case


def data_of(chance: random.Random) -> bytes:
    data = chance.randbytes(chance.randrange(1, 70))
    return chance.choice([data, data.translate(LETTERS), DATA[: len(data)]])


@pytest.mark.parametrize("seed", range(3))
def test_texts_of_all_programs_are_read_as_python_reads_them(seed: int) -> None:
    """A third of the texts is changed by one character, or wrapped."""
    chance = random.Random(seed)
    texts = []
    for write in [*WRITERS.values(), *OTHER_WRITERS.values()]:
        for _ in range(40):
            text = write(data_of(chance))
            change = chance.randrange(6)
            at = chance.randrange(len(text))
            if change == 0:
                text = text[:at] + chance.choice("0a g|.\n:,\\'[]") + text[at + 1 :]
            elif change == 1:
                text = text[:at] + "\n" + text[at:]
            texts.append(text)
    forms = ["auto", "hex", "dump", "words", "decimal", "literal", "base64"]
    given = [(text, form) for text in texts for form in forms]
    for case, found in zip(given, answers(given), strict=True):
        assert found == python_answer(*case), case
