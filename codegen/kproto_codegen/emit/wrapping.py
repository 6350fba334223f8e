"""Breaks lines of generated Python at 100 columns.

The lines are broken as ruff would break them, because generating must not need ruff.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["WIDTH", "fitted"]

WIDTH = 100

#: Matches a string literal.
_LITERAL = re.compile(r"""(["'])(?:\\.|(?!\1)[^\\])*\1""")


def fitted(lines: Iterable[str]) -> list[str]:
    """Returns the lines; breaks long lines at their outermost brackets or at operators."""
    return [part for line in lines for part in (_fit(line) if len(line) > WIDTH else [line])]


def _fit(line: str) -> list[str]:
    """Breaks a long line, but not inside string literals, which may contain brackets."""
    plain = _LITERAL.sub(lambda found: f'"{"_" * (len(found[0]) - 2)}"', line)
    if not any(part in plain for part in ("(", " else ", " and ", ", ")):
        return [line]
    literals = (found[0] for found in _LITERAL.finditer(line))
    return [_LITERAL.sub(lambda _: next(literals), part) for part in _broken(plain)]


def _broken(line: str) -> list[str]:
    margin = line[: len(line) - len(line.lstrip())]
    word, _, tests = line.strip().rstrip(":").partition(" ")
    # A single test that ends with a call is broken inside the call, other tests at `and` or `or`.
    if word == "if" and (tests.count(" and ") > 1 or not tests.endswith(")")):
        joint = " and " if " and " in tests else " or "
        conditions = tests.replace(joint, f"\n{margin}   {joint}").split("\n")
        return [f"{margin}if (", f"{margin}    {conditions[0]}", *conditions[1:], f"{margin}):"]
    targets, equals, value = line.strip().partition(" = ")
    if "def " in targets:
        equals = ""
    if equals and ", " in targets and "(" not in targets and "pos" not in targets:
        target_lines = [f"{margin}    {target}," for target in targets.split(", ")]
        return [f"{margin}(", *target_lines, f"{margin}) = {value}"]
    if equals and " if " in value and " else " in value:
        inner = f"{margin}    "
        parts = [inner + value]
        if len(parts[0]) > WIDTH:
            then, test = value.split(" if ")
            test, otherwise = test.split(" else ")
            parts = [f"{inner}{then}", f"{inner}if {test}", f"{inner}else {otherwise}"]
        return [f"{margin}{targets} = (", *parts, f"{margin})"]
    if "(" not in line:
        return [line]  # a comparison of long names, which cannot be broken
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
    """Returns the arguments of a call, split at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(inner):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            parts.append(inner[start:index].strip())
            start = index + 1
    return [*parts, inner[start:].strip()]
