"""Tests that the explorer reads pasted text as Python does; Node.js runs the page's JavaScript."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from typing import Any

import pytest

from kproto.study import read_bytes
from kproto.wire.errors import ConfigurationError
from tests.support.availability import skip_untested
from tests.support.environment import ROOT
from tests.support.selection import rest_slow
from tests.unit.study.test_input_formats import CASES
from tests.unit.study.text_writers import DATA, LETTERS, OTHER_WRITERS, WRITERS

SCRIPT = "".join(
    (ROOT / "kproto" / "explorer" / name).read_text(encoding="utf-8")
    for name in ("pasted.js", "dumps.js")
)

ASK = """
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const shown = given.map(([text, form]) => {
  try {
    return Buffer.from(bytesOfText(text, form)).toString("hex");
  } catch (error) {
    if (!(error instanceof PastedTextError) && error.constructor !== Error) throw error;
    return error.message;
  }
});
console.log(JSON.stringify(shown));
"""

NODE = shutil.which("node")


COUNT = """
const compare = isTextOf;
let compared = 0;
isTextOf = (shown, rest) => {
  compared += shown.length + rest.length;
  return compare(shown, rest);
};
const counts = JSON.parse(require("fs").readFileSync(0, "utf8")).map((text) => {
  compared = 0;
  try {
    bytesOfText(text);
  } catch (error) {
    if (error.constructor !== Error) throw error;
  }
  return compared;
});
console.log(JSON.stringify(counts));
"""


def answers(cases: list[tuple[str, str]]) -> list[str]:
    """Returns the bytes in hex that the page reads from each text, or the place of the refusal."""
    found: list[str] = run_by_node(ASK, cases)
    return [place_of(answer) for answer in found]


def run_by_node(script: str, given: object) -> Any:
    """Returns the answer of a script that follows the page's scripts."""
    if NODE is None:
        skip_untested("the explorer's reader of text", "node is not on the PATH", "Node.js")
    done = subprocess.run(
        [NODE, "-e", SCRIPT + script],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def place_of(answer: str) -> str:
    """Returns the line and the column of a refusal, without its reason; bytes unchanged."""
    place = re.match(r"line (\d+), column (\d+): ", answer)
    return answer if place is None else f"{place[1]}:{place[2]}"


def python_answer(text: str, form: str) -> str:
    try:
        return read_bytes(text, form).hex()
    except ConfigurationError as error:
        return place_of(str(error))


def test_cases_of_python_and_javascript() -> None:
    given = [(case["text"], case["form"]) for case in CASES]
    for case, found in zip(CASES, answers(given), strict=True):
        if case["hex"] is None:
            assert re.fullmatch(r"\d+:\d+", found), case
            assert case.get("at", found) == found, case
        else:
            assert found == case["hex"], case


def test_long_line_of_a_dump_is_compared_in_linear_steps() -> None:
    texts = [
        "00000000  " + group * 16_000 + ending
        for group in ("00 ", "20 ", "41 ")
        for ending in ("", "  |................|", " 41")
    ]
    for text, characters in zip(texts, run_by_node(COUNT, texts), strict=True):
        assert characters <= 20 * len(text), text[-20:]


def data_of(chance: random.Random) -> bytes:
    data = chance.randbytes(chance.randrange(1, 70))
    return chance.choice([data, data.translate(LETTERS), DATA[: len(data)]])


@pytest.mark.parametrize("seed", rest_slow(range(3), few=1, everyday=1))
def test_texts_of_all_programs_are_read_as_python_reads_them(seed: int) -> None:
    """A third of the texts is changed by one character, or wrapped."""
    chance = random.Random(seed)
    texts = []
    for write in [*WRITERS.values(), *OTHER_WRITERS.values()]:
        for _ in range(20):
            text = write(data_of(chance))
            change = chance.randrange(6)
            at = chance.randrange(len(text))
            if change == 0:
                text = text[:at] + chance.choice("0a g|.\n:,\\'[]=-$\r\f\u200b") + text[at + 1 :]
            elif change == 1:
                text = text[:at] + "\n" + text[at:]
            texts.append(text)
    forms = ["auto", "hex", "dump", "words", "decimal", "literal", "base64"]
    given = [(text, form) for text in texts for form in forms]
    for case, found in zip(given, answers(given), strict=True):
        assert found == python_answer(*case), case
