"""Tests docs/troubleshooting.md: the quoted texts are in the code, the error codes are Kafka's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kproto.protocol.error_codes import ERRORS
from tests.support.environment import ROOT
from tests.support.pages import page_text

SOURCES = ("kproto/client", "kproto/security", "kproto/records", "kproto/protocol", "pipeline")
PAGE = page_text("docs/troubleshooting.md").partition("## Connections")[2]
CELLS = re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)
TEXTS = [text for cell in CELLS for text in re.findall(r"`([^`]+)`", cell)]
CODES = [code for cell in CELLS for code in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", cell)]

#: Stands for a value that is filled in, and for an expression that is not a literal.
GAP = "\0"


def texts(node: ast.expr) -> str:
    """Returns a text expression's text: a literal, an f-string or a sum, with `GAP` for values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[sdr]|%\.\df", GAP, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(texts(each) for each in node.values)
    if isinstance(node, ast.BinOp):
        return texts(node.left) + texts(node.right)
    return GAP


@cache
def said() -> str:
    """Returns the text of all string literals and f-strings in the code, one per line."""

    def of_file(path: Path) -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
                yield texts(node)

    return "\n".join(
        text
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*.py")
        for text in of_file(path)
    )


@pytest.mark.parametrize("text", TEXTS)
def test_a_quoted_text_is_in_the_code(text: str) -> None:
    for part in text.split("…"):
        assert part.strip(" ()") in said()


def test_codes_are_those_of_kafka() -> None:
    assert len(CODES) > 5
    assert set(CODES) <= {each.name for each in ERRORS.values()}
