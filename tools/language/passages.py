"""Extracts prose from Python and Markdown files.

A passage is a paragraph, list item, table cell or heading, of Markdown or of a docstring; or a
block of comments; or a string of a program with at least three words. Inline code is masked, so
that rules match only prose.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = ["Function", "Passage", "PassageSource", "of_markdown", "of_python"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


class PassageSource(Enum):
    """The place of a passage: a docstring, a comment, another string, or a Markdown file."""

    DOCSTRING = "docstring"
    COMMENT = "comment"
    STRING = "string"
    MARKDOWN = "markdown"


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of prose; `line` is the number of its first line, from 1.

    `text` has the length of `raw`, but its inline code and link targets are masked.
    """

    kind: PassageSource
    line: int
    text: str
    raw: str

    def line_at(self, position: int) -> int:
        """Returns the line number of the character at `position`."""
        return self.line + self.text.count("\n", 0, position)


#: Directives of linters and of the type checker, which are not prose.
_DIRECTIVE: Final = re.compile(r"#:?\s*(noqa|type:|pragma|pyright:|mypy:|fmt:|!)")
_INLINE_CODE: Final = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_LINK_TARGET: Final = re.compile(r"(?<=\])\([^)\s]*\)|<https?://[^>]*>|https?://\S+")
_FENCE: Final = re.compile(r"\s*(```|~~~)")
_LIST_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_TABLE_RULE: Final = re.compile(r"\s*\|?[\s:|-]+\|?\s*$")
_HEADING: Final = re.compile(r"#{1,6}\s+")


def of_python(source: str) -> tuple[list[Passage], list[Function]]:
    """Returns the passages and the functions of Python `source`. Raises SyntaxError."""
    passages: list[Passage] = []
    functions: list[Function] = []
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr):
            parts = (
                str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in node.values
            )
            passages += _string(node.lineno, "".join(parts))
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                passages += _string(node.lineno, node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                passages += _blocks(PassageSource.DOCSTRING, node.lineno, node.value.value)
        else:
            if isinstance(node, Function):
                functions.append(node)
            for child in vars(node).values():
                if isinstance(child, ast.AST):
                    waiting.append(child)
                elif isinstance(child, list):
                    waiting += [each for each in child if isinstance(each, ast.AST)]
    passages += _comments(source)
    return passages, functions


def _string(line: int, text: str) -> Iterator[Passage]:
    if len(text.split()) >= 3:
        yield _passage(PassageSource.STRING, line, text.replace("\n", " "))


def _comments(source: str) -> Iterator[Passage]:
    block: list[str] = []
    column = last = first = 0
    if "#" not in source:
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        row, start = token.start
        alone = not token.line[:start].strip()
        if block and not (alone and row == last + 1 and start == column):
            yield from _blocks(PassageSource.COMMENT, first, "\n".join(block))
            block = []
        if not block:
            first, column = row, start
        block.append(token.string.lstrip("#: "))
        last = row
    if block:
        yield from _blocks(PassageSource.COMMENT, first, "\n".join(block))


def of_markdown(source: str) -> list[Passage]:
    """Returns the passages of Markdown `source`, except code blocks and HTML comments."""
    return list(
        _blocks(PassageSource.MARKDOWN, 1, re.sub(r"<!--.*?-->", _blank, source, flags=re.DOTALL))
    )


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _blocks(kind: PassageSource, first: int, source: str) -> Iterator[Passage]:
    """Yields the paragraphs, list items, headings and table cells of `source`."""
    block: list[str] = []
    began = first
    fenced = False
    indented = kind is PassageSource.MARKDOWN  # True if an indented line would begin a code block
    listed = False

    def end() -> Iterator[Passage]:
        if block:
            yield _passage(kind, began, "\n".join(block))
            block.clear()

    for number, line in enumerate(source.split("\n"), first):
        if _FENCE.match(line):
            yield from end()
            fenced = not fenced
            continue
        if fenced:
            continue
        if not line.strip():
            yield from end()
            indented = kind is PassageSource.MARKDOWN and not listed
            continue
        if indented and line.startswith("    "):
            continue
        indented = False
        item = _LIST_ITEM.match(line)
        if kind is PassageSource.MARKDOWN and not line.startswith(" "):
            listed = item is not None
        if kind is PassageSource.MARKDOWN and line.lstrip().startswith("|"):
            yield from end()
            if not _TABLE_RULE.match(line):
                for cell in _cells(line):
                    yield _passage(kind, number, cell)
            continue
        heading = _HEADING.match(line) if kind is PassageSource.MARKDOWN else None
        if item or heading or not block:
            yield from end()
            began = number
        block.append(line[item.end() :] if item else line[heading.end() :] if heading else line)
        if heading:
            yield from end()
    yield from end()


def _cells(line: str) -> Iterator[str]:
    """Yields the cells of a table row; a bar within inline code does not separate cells."""
    begin = 0
    for bar in re.finditer(r"(?<!\\)\||\Z", _masked(line)):
        cell = line[begin : bar.start()].strip()
        if cell:
            yield cell
        begin = bar.end()


def _passage(kind: PassageSource, line: int, raw: str) -> Passage:
    return Passage(kind, line, _masked(raw), raw)


def _masked(text: str) -> str:
    """Returns `text` with inline code and link targets replaced by x; the length stays the same."""
    return _LINK_TARGET.sub(_masking, _INLINE_CODE.sub(_masking, text))


def _masking(match: re.Match[str]) -> str:
    inner = re.sub(r"\S", "x", match[0][1:-1])
    return f"{match[0][0]}{inner}{match[0][-1]}"
