"""Represents Python code as data: conditions, statements, and chains of version tests.

The emitters build and compare these data; `lines` converts them to source. `wrapping` breaks long
lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from kproto.schema.versions import Versions

__all__ = [
    "Branch",
    "Code",
    "Condition",
    "For",
    "If",
    "Layouts",
    "Statement",
    "chain",
    "chains",
    "choose",
    "function",
    "indent",
    "lines",
    "opposites",
    "version_test",
    "when",
]


@dataclass(frozen=True, slots=True)
class Condition:
    """The source of a condition: `parts`, joined with `and`, or with `or` if `either` is True.

    `comment` is written at the end of the line.
    """

    parts: tuple[str, ...]
    either: bool = False
    comment: str = ""

    def __str__(self) -> str:
        return (" or " if self.either else " and ").join(self.parts)

    @property
    def alone(self) -> str:
        """Returns the source as an operand of `and`; in parentheses if it contains an `or`."""
        return f"({self})" if self.either and len(self.parts) > 1 else str(self)


def opposites(*pairs: tuple[str, str], either: bool = False) -> tuple[Condition, Condition]:
    """Returns the condition that joins the first tests of all pairs, and the opposite condition.

    Each pair is the source of a test and the source of the opposite test. Joins the first tests by
    `and`, or by `or` if `either` is set.
    """
    holds, fails = zip(*pairs, strict=True)
    return Condition(holds, either), Condition(fails, not either)


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition, and the statements to run if it is true."""

    test: Condition
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If:
    """An `if` statement: `branches` are `if` and `elif`, `otherwise` is `else`."""

    branches: tuple[Branch, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class For:
    """A `for` statement; `each` is its head, such as `entry in entries`."""

    each: str
    body: tuple[Statement, ...]


#: A line of code, or a statement that contains statements.
Statement: TypeAlias = str | If | For
Code: TypeAlias = Sequence[Statement]
#: Version ranges, ascending and without gaps, each with its code.
Layouts: TypeAlias = Sequence[tuple[Versions, Code]]


def when(test: str | Condition, then: Code, otherwise: Code = ()) -> If:
    """Returns an `if` statement, with `else` unless `otherwise` is empty."""
    return choose([(test, then)], otherwise)


def choose(branches: Iterable[tuple[str | Condition, Code]], otherwise: Code = ()) -> If:
    """Returns an `if` statement with an `elif` for each further branch.

    The statement has an `else` unless `otherwise` is empty.
    """
    made = (
        Branch(Condition((test,)) if isinstance(test, str) else test, tuple(body))
        for test, body in branches
    )
    return If(tuple(made), tuple(otherwise))


def lines(code: Code) -> list[str]:
    """Returns the source lines of the code."""
    out: list[str] = []
    for statement in code:
        if isinstance(statement, str):
            out.append(statement)
        elif isinstance(statement, For):
            out += [f"for {statement.each}:", *indent(lines(statement.body or ("pass",)))]
        else:
            word = "if"
            for branch in statement.branches:
                comment = f"  # {branch.test.comment}" if branch.test.comment else ""
                out += [f"{word} {branch.test}:{comment}", *indent(lines(branch.body))]
                word = "elif"
            if statement.otherwise:
                out += ["else:", *indent(lines(statement.otherwise))]
    return out


def indent(texts: Iterable[str], by: int = 4) -> list[str]:
    """Returns the lines indented by `by` spaces; empty lines stay empty."""
    return [" " * by + text if text else text for text in texts]


def function(name: str, parameters: str, result: str, body: Code) -> list[str]:
    """Returns the source lines of a function."""
    return [f"def {name}({parameters}) -> {result}:", *indent(lines(body))]


def chain(layouts: Layouts, context: Versions) -> Code:
    """Returns `if`, `elif` and `else` over versions, the newest first.

    `layouts` must cover the versions `context`. Neighboring layouts with equal code are merged, and
    empty branches are left out.
    """
    return _chain(_merged(layouts), context)


def chains(parts: Iterable[Layouts], context: Versions) -> Code:
    """Returns an `if` chain over the versions for each of `parts`; see `chain`.

    Merges neighboring chains with the same version ranges. Statements with which all branches of a
    chain begin are emitted once, before the chain. Statements with which all branches end are
    emitted once, after the chain.
    """
    joined: list[list[_VersionRangeCode]] = []
    for layouts in parts:
        merged = _merged(layouts)
        before = joined[-1] if joined else []
        if [layout.versions for layout in before] == [layout.versions for layout in merged]:
            merged = [
                _VersionRangeCode(first.versions, first.code + then.code)
                for first, then in zip(before, merged, strict=True)
            ]
            joined.pop()
        joined.append(merged)
    out: list[Statement] = []
    for merged in joined:
        head, differing, tail = _shared(merged)
        out += [*head, *_chain(differing, context), *tail]
    return out


class _VersionRangeCode(NamedTuple):
    """The code for a range of versions."""

    versions: Versions
    code: tuple[Statement, ...]


def _merged(layouts: Layouts) -> list[_VersionRangeCode]:
    """Returns the code by version range; merges neighboring ranges with equal code."""
    merged: list[_VersionRangeCode] = []
    for versions, code in layouts:
        body = tuple(code)
        if merged and merged[-1].code == body:
            versions = merged.pop().versions.span(versions)
        merged.append(_VersionRangeCode(versions, body))
    return merged


def _shared(merged: list[_VersionRangeCode]) -> tuple[Code, list[_VersionRangeCode], Code]:
    """Returns the common first statements, the differing statements, and the common last ones.

    The differing statements are by layout. A single layout has no common statements.
    """
    if len(merged) == 1:
        return (), merged, ()
    bodies = [layout.code for layout in merged]
    shortest = min(len(body) for body in bodies)
    first = bodies[0]
    head = _count(shortest, lambda at: all(body[at] == first[at] for body in bodies))
    tail = _count(shortest - head, lambda at: all(body[~at] == first[~at] for body in bodies))
    differing = [
        _VersionRangeCode(layout.versions, layout.code[head : len(layout.code) - tail])
        for layout in merged
    ]
    return first[:head], differing, first[len(first) - tail :]


def _count(most: int, holds: Callable[[int], bool]) -> int:
    """Returns the lowest number from 0 on for which `holds` is false; at most `most`."""
    return next((at for at in range(most) if not holds(at)), most)


def _chain(merged: list[_VersionRangeCode], context: Versions) -> Code:
    if len(merged) == 1:
        return merged[0].code
    filled = [layout for layout in reversed(merged) if layout.code]
    if len(filled) == len(merged):
        return _split(filled)
    if len(filled) == 1:
        return [_only_in(filled[0], context)]
    return [choose((version_test(versions, context), code) for versions, code in filled)]


def _split(layouts: list[_VersionRangeCode]) -> Code:
    """Returns version tests, each with the code of one layout; `layouts` begins with the newest.

    Every layout must have code.
    """
    *newer, oldest = layouts
    branches = tuple(
        Branch(Condition((f"version >= {versions.lowest}",)), code) for versions, code in newer
    )
    match oldest.code:
        case (If() as inner,):  # appends the inner branches instead of nesting them in `else`
            return [If(branches + inner.branches, inner.otherwise)]
    return [If(branches, oldest.code)]


def _only_in(layout: _VersionRangeCode, context: Versions) -> If:
    """Returns the code of `layout` inside an `if` that tests the versions of `layout`.

    If the code of `layout` is a single `if` with one branch, returns this `if` with both
    conditions, joined with `and`.
    """
    versions = version_test(layout.versions, context)
    match layout.code:
        case (If((branch,), ()),):
            parts = (branch.test.alone,) if branch.test.either else branch.test.parts
            return If((Branch(Condition((versions, *parts)), branch.body),))
    return when(versions, layout.code)


def version_test(versions: Versions, context: Versions) -> str:
    """Returns the source that tests if `version` is in `versions`; `version` is in `context`."""
    low, high = versions.lowest, versions.highest
    if low == high:
        return f"version == {low}"
    if low <= context.lowest:
        return f"version <= {high}"
    if high >= context.highest:
        return f"version >= {low}"
    return f"{low} <= version <= {high}"
