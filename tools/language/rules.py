"""Finds sentences, words and names that break the rules of `rules.toml`.

Checks passages and source text. Reads no file except the rules, and does not apply exceptions.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .passages import Function, Passage, PassageSource, of_markdown, of_python

__all__ = ["Finding", "Rules", "check_file", "load_rules"]

RULES: Final = Path(__file__).with_name("rules.toml")


@dataclass(frozen=True, slots=True)
class Finding:
    """A text that breaks a rule: `text` has the faulty words and some words after them.

    `line` is the line in the file, counted from 1. `advice` says what to write instead.
    """

    path: str
    line: int
    rule: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: “{self.text}”: {self.advice}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, and the words to write instead of its matches."""

    expression: re.Pattern[str]
    better: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of `rules.toml`, with compiled expressions."""

    openings: tuple[Pattern, ...]
    words: tuple[Pattern, ...]
    no_verbs: frozenset[str]
    test_names: re.Pattern[str]
    retired: Mapping[str, str]
    generated: tuple[str, ...]
    commits: Mapping[str, Any]


def load_rules(path: Path = RULES) -> Rules:
    """Returns the rules in the file at `path`."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return Rules(
        openings=tuple(
            # In a table cell or a comment, the first word may be lower-case.
            Pattern(re.compile(rf"(?:{row['pattern']})\b"), row["better"])
            for row in table["opening"]
        ),
        words=tuple(
            Pattern(re.compile(rf"\b(?:{row['pattern']})", re.IGNORECASE), row["better"])
            for row in table["word"]
        ),
        no_verbs=frozenset(table["docstring"]["no_verbs"].split()),
        test_names=re.compile(table["test_name"]["pattern"]),
        retired=dict(table["retired"]),
        generated=tuple(table["files"]["generated"]),
        commits=table["commits"],
    )


def check_file(rules: Rules, path: str, source: str) -> list[Finding]:
    """Returns the findings in `source`, the text of the file at `path`, in order of lines."""
    tests = path.startswith("tests/")
    if path.endswith(".md"):
        found = list(_check_passages(rules, path, of_markdown(source)))
    else:
        passages, functions = of_python(source)
        if tests:  # strings in tests are data, not prose
            passages = [each for each in passages if each.kind is not PassageSource.STRING]
        found = list(_check_passages(rules, path, passages))
        found += _check_functions(rules, path, functions, tests=tests)
    found += _check_retired(rules, path, source)
    return sorted(found, key=lambda finding: (finding.line, finding.rule))


_BEFORE_SENTENCE: Final = re.compile(r"""[.!?…][")\]'*_]*\s+[("'\[*_]*""")
_BEFORE_BLOCK: Final = re.compile(r"""[\s("'\[*_]*""")
_SENTENCE_END: Final = re.compile(r"""[.!?…](?=[")\]'*_]*(?:\s|$))|\Z""")


def _check_passages(rules: Rules, path: str, passages: Iterable[Passage]) -> Iterator[Finding]:
    for passage in passages:
        yield from _check_openings(rules, path, passage)
        for word in rules.words:
            for match in word.expression.finditer(passage.text):
                yield Finding(
                    path,
                    passage.line_at(match.start()),
                    "word",
                    _around(passage.raw, match.start(), match.end()),
                    f"write {word.better}",
                )


def _check_openings(rules: Rules, path: str, passage: Passage) -> Iterator[Finding]:
    text = passage.text
    start = _BEFORE_BLOCK.match(text)
    begins = [] if start is None else [start.end()]
    begins += [match.end() for match in _BEFORE_SENTENCE.finditer(text)]
    for index, begin in enumerate(begins):
        end = _SENTENCE_END.search(text, begin)
        if end and end[0] == "?":
            continue
        words = text[begin:]
        if index == 0:
            words = words[:1].upper() + words[1:]
        for opening in rules.openings:
            match = opening.expression.match(words)
            if match:
                shown = _around(passage.raw, begin, begin + match.end())
                line = passage.line_at(begin)
                yield Finding(path, line, "opening", shown, opening.better)
                break


def _check_functions(
    rules: Rules, path: str, functions: Iterable[Function], *, tests: bool
) -> Iterator[Finding]:
    for node in functions:
        if tests:
            if rules.test_names.match(node.name):
                advice = "say the subject and the outcome"
                yield Finding(path, node.lineno, "test-name", node.name, advice)
            continue
        docstring = ast.get_docstring(node)
        if docstring is None or node.name.startswith("_"):
            continue
        if any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
            continue
        first = docstring.split()[0].strip(",;:.")
        if first in rules.no_verbs:
            shown = _around(docstring, 0, len(first))
            line = node.body[0].lineno
            advice = "begin with a verb: Returns, Raises, Sends, Tracks …"
            yield Finding(path, line, "docstring", shown, advice)


def _check_retired(rules: Rules, path: str, source: str) -> Iterator[Finding]:
    if not rules.retired:
        return
    names = "|".join(map(re.escape, rules.retired))
    for match in re.finditer(rf"(?<!\w)(?:{names})(?![\w])", source):
        line = source.count("\n", 0, match.start()) + 1
        yield Finding(path, line, "retired", match[0], f"is now {rules.retired[match[0]]}")


def _around(text: str, start: int, end: int) -> str:
    """Returns the words from `start` to `end` of `text`, and up to 40 characters after them."""
    more = text[end : end + 40]
    cut = more.rsplit(None, 1)[0] if len(more) == 40 else more
    return " ".join((text[start:end] + cut).split())
