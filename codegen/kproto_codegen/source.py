"""Lines of Python source: indentation, wrapping at 100 columns, and chains of version tests.

The generated code must be as a formatter would leave it, without a formatter being installed.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from kproto.schema.versions import Versions

__all__ = ["WIDTH", "chain", "chains", "docstring", "fitted", "indent", "version_test"]

WIDTH = 100

#: A string literal on one line.
_LITERAL = re.compile(r"""(["'])(?:\\.|(?!\1)[^\\])*\1""")


#: A line that belongs to the `if` above it.
_CONTINUES = re.compile(r" |elif |else:")


def indent(lines: Iterable[str], by: int = 4) -> list[str]:
    """The lines, moved to the right."""
    return [" " * by + line if line else line for line in lines]


def fitted(lines: Iterable[str]) -> list[str]:
    """The lines, those over the width broken at their outermost brackets as a formatter would."""
    return [part for line in lines for part in (_fit(line) if len(line) > WIDTH else [line])]


def _fit(line: str) -> list[str]:
    """A long line broken, if it has brackets; those in literals are text of a definition."""
    plain = _LITERAL.sub(lambda found: f'"{"_" * (len(found[0]) - 2)}"', line)
    if not any(part in plain for part in ("(", " else ", " and ")):
        return [line]
    literals = (found[0] for found in _LITERAL.finditer(line))
    return [_LITERAL.sub(lambda _: next(literals), part) for part in _broken(plain)]


def _broken(line: str) -> list[str]:
    margin = line[: len(line) - len(line.lstrip())]
    word, _, tests = line.strip().rstrip(":").partition(" ")
    # One test with a call at its end is broken inside that; all others where they are joined.
    if word == "if" and (tests.count(" and ") > 1 or not tests.endswith(")")):
        joint = " and " if " and " in tests else " or "
        conditions = tests.replace(joint, f"\n{margin}   {joint}").split("\n")
        return [f"{margin}if (", f"{margin}    {conditions[0]}", *conditions[1:], f"{margin}):"]
    targets, equals, value = line.strip().partition(" = ")
    if "def " in targets:
        equals = ""
    if equals and ", " in targets and "(" not in targets and "pos" not in targets:
        places = [f"{margin}    {target}," for target in targets.split(", ")]
        return [f"{margin}(", *places, f"{margin}) = {value}"]
    if equals and " if " in value and " else " in value:
        inner = f"{margin}    "
        parts = [inner + value]
        if len(parts[0]) > WIDTH:
            then, test = value.split(" if ")
            test, otherwise = test.split(" else ")
            parts = [f"{inner}{then}", f"{inner}if {test}", f"{inner}else {otherwise}"]
        return [f"{margin}{targets} = (", *parts, f"{margin})"]
    if "(" not in line:
        return [line]  # one comparison, of a name of such length
    opening = line.index("(", line.index(" = ") if equals else 0)
    closing = _matching(line, opening)
    head, inner, tail = line[: opening + 1], line[opening + 1 : closing], margin + line[closing:]
    whole = f"{margin}    {inner}"
    if len(whole) <= WIDTH:
        return [head, whole, tail]
    arguments = _split(inner)
    if len(arguments) == 1:
        return [head, *fitted([whole]), tail]
    return [head, *(f"{margin}    {argument}," for argument in arguments), tail]


def _matching(line: str, opening: int) -> int:
    depth = 0
    for index in range(opening, len(line)):
        depth += (line[index] in "([{") - (line[index] in ")]}")
        if not depth:
            return index
    raise ValueError(f"unbalanced brackets in {line!r}")


def _split(inner: str) -> list[str]:
    """The arguments of a call, split at the commas outside any bracket."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(inner):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            parts.append(inner[start:index].strip())
            start = index + 1
    return [*parts, inner[start:].strip()]


def chain(blocks: Sequence[tuple[Versions, list[str]]], context: Versions) -> list[str]:
    """If, elif and else over versions, newest first; equal neighbours merge, empty ones vanish.

    `blocks` cover `context` in ascending order without gaps.
    """
    return _chain(_merged(blocks), context)


def chains(parts: Iterable[Sequence[tuple[Versions, list[str]]]], context: Versions) -> list[str]:
    """Several such chains, one behind the other; neighbours that ask the same become one.

    What all blocks of a chain begin or end with stands once, in front of it or behind it.
    """
    joined: list[list[tuple[Versions, list[str]]]] = []
    for blocks in parts:
        merged = _merged(blocks)
        before = joined[-1] if joined else []
        if [versions for versions, _ in before] == [versions for versions, _ in merged]:
            pairs = zip(before, merged, strict=True)
            merged = [(versions, [*first, *then]) for (versions, first), (_, then) in pairs]
            joined.pop()
        joined.append(merged)
    out: list[str] = []
    for merged in joined:
        head, differing, tail = _shared(merged)
        out += [*head, *_chain(differing, context), *tail]
    return out


def _shared(
    merged: list[tuple[Versions, list[str]]],
) -> tuple[list[str], list[tuple[Versions, list[str]]], list[str]]:
    """The statements that all blocks begin with, what differs, and those that all end with."""
    if len(merged) == 1:
        return [], merged, []
    blocks = [_statements(lines) for _, lines in merged]
    shortest = min(len(block) for block in blocks)
    first = blocks[0]
    head = 0
    while head < shortest and all(block[head] == first[head] for block in blocks):
        head += 1
    tail = 0
    while tail < shortest - head and all(block[~tail] == first[~tail] for block in blocks):
        tail += 1
    differing = [
        (versions, _lines(block[head : len(block) - tail]))
        for (versions, _), block in zip(merged, blocks, strict=True)
    ]
    return _lines(first[:head]), differing, _lines(first[len(first) - tail :])


def _statements(lines: Sequence[str]) -> list[list[str]]:
    """The lines by statement; those of an `if` stay together."""
    statements: list[list[str]] = []
    for line in lines:
        if statements and _CONTINUES.match(line):
            statements[-1].append(line)
        else:
            statements.append([line])
    return statements


def _lines(statements: Iterable[Sequence[str]]) -> list[str]:
    return [line for statement in statements for line in statement]


def _merged(blocks: Sequence[tuple[Versions, list[str]]]) -> list[tuple[Versions, list[str]]]:
    """The blocks, equal neighbours made one."""
    merged: list[tuple[Versions, list[str]]] = []
    for versions, lines in blocks:
        if merged and merged[-1][1] == lines:
            versions = merged.pop()[0].span(versions)
        merged.append((versions, lines))
    return merged


def _chain(merged: list[tuple[Versions, list[str]]], context: Versions) -> list[str]:
    filled = [(versions, lines) for versions, lines in reversed(merged) if lines]
    if len(merged) == 1:
        return merged[0][1]
    out: list[str] = []
    has_gap = len(filled) < len(merged)
    if has_gap and len(filled) == 1:
        ((versions, lines),) = filled
        word, _, test = lines[0].rstrip(":").partition(" ")
        if word == "if" and all(line.startswith(" ") for line in lines[1:]):
            test = f"({test})" if " or " in test else test
            return [f"if {version_test(versions, context)} and {test}:", *lines[1:]]
    for index, (versions, lines) in enumerate(filled):
        word = "elif" if index else "if"
        if not has_gap and index == len(filled) - 1:
            if lines[0].startswith("if ") and all(_CONTINUES.match(line) for line in lines[1:]):
                out += [f"el{lines[0]}", *lines[1:]]
                break
            out.append("else:")
        elif not has_gap:
            out.append(f"{word} version >= {versions.lowest}:")
        else:
            out.append(f"{word} {version_test(versions, context)}:")
        out.extend(indent(lines))
    return out


def version_test(versions: Versions, context: Versions) -> str:
    """Source of the test that a version in `context` is in `versions`."""
    low, high = versions.lowest, versions.highest
    if low == high:
        return f"version == {low}"
    if low <= context.lowest:
        return f"version <= {high}"
    if high >= context.highest:
        return f"version >= {low}"
    return f"{low} <= version <= {high}"


def docstring(paragraphs: Sequence[str | Sequence[str]], *, margin: int) -> list[str]:
    """A docstring of paragraphs; a sequence is a list of hanging entries.

    Text from definitions is input: quotes and backslashes in it are defused.
    """
    lines: list[str] = []
    width = WIDTH - margin
    for index, paragraph in enumerate(paragraphs):
        if index:
            lines.append("")
        if isinstance(paragraph, str):
            room = width - 6 if not index else width
            lines.extend(textwrap.wrap(_defused(paragraph), room))
        else:
            for entry in paragraph:
                wrapped = textwrap.wrap(_defused(entry), width, subsequent_indent="    ")
                lines.extend(wrapped)
    if len(lines) == 1:
        return [f'"""{lines[0]}"""']
    return [f'"""{lines[0]}', *lines[1:], '"""']


def _defused(text: str) -> str:
    flat = " ".join(text.split())
    plain = "".join(char if char.isprintable() else " " for char in flat)
    return plain.replace("\\", "/").replace('"', "'")
