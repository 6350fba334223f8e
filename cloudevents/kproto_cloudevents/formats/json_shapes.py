"""Reading the members of a JSON event by a shape that was met before, without the JSON decoder.

The documents of a topic differ in the values of their members, and in nothing else: names, their
order and the blanks between them repeat. A shape is a regular expression of all that repeats, up to
the value of `data`, which comes last and which the JSON decoder reads. It is learnt from a document
that was read as an event. Whatever it does not match, or is not right, is for the careful way,
which says what is wrong. Shapes come from outside, so that they are few and short.

An expression takes time in proportion to the text: it is literal text and values of all characters
up to the next quote, which are never tried shorter (`*+`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..errors import CloudEventError
from ..values.json_text import BLANKS, JSON_DECODER, skip_blanks
from ..versions.plans import MAX_NAMES
from ..versions.rules import Check, SpecVersion

__all__ = ["MAX_LENGTH", "MAX_SHAPES", "PATIENCE", "ShapedMembers", "learn_shape", "shaped_members"]

#: Past this many shapes of so many members none is learnt: each is tried, one after the other.
MAX_SHAPES: Final = 4
#: In characters, without the values; longer shapes are not learnt.
MAX_LENGTH: Final = 2048

#: Behind so many documents in a row that have no known shape, one of so many is looked at: there
#: may be topics of which none has.
PATIENCE: Final = 16

#: What a document has in front of its data. No string of JSON holds it but one with a backslash.
_DATA: Final = '"data":'


class _Shape(NamedTuple):
    match: Callable[[str], re.Match[str] | None]
    #: What the expression itself does not say of the values, in their order.
    checks: tuple[Check, ...]
    version: SpecVersion
    has_data: bool


#: By the number of quotes in front of the data, of which each member has four.
_SHAPES: Final[dict[int, tuple[_Shape, ...]]] = {}

#: The version, the attributes, the value of `data` and where it begins; -1 where there is none.
ShapedMembers = tuple[SpecVersion, dict[str, Any], Any, int]


def shaped_members(
    text: str, closely_checked: Callable[[str, Any, SpecVersion], Any]
) -> ShapedMembers | None:
    """Returns the members of an event whose document has a known shape; None for any other.

    All are as the JSON decoder reads them, and the attributes are right. `closely_checked(name,
    value, version)` looks at a value that is not quickly found right, and raises CloudEventError.
    """
    missed = _missed[0]
    if missed and _passed_over(missed):
        _missed[0] = missed + 1
        return None
    latest = shape = _latest[0]
    found = None if shape is None else shape.match(text)
    if found is None:
        for shape in _SHAPES.get(_quotes(text), ()):
            found = None if shape is latest else shape.match(text)
            if found is not None:
                _latest[0] = shape
                break
    if shape is None or found is None:
        _missed[0] = missed + 1
        return None
    if missed:
        _missed[0] = 0
    _, checks, version, has_data = shape
    start = found.end()
    if text.find("\\", 0, start) >= 0:
        return None
    attributes = {}
    try:
        # As many of one as of the other; `strict` would cost a tenth. What JSON does not have in a
        # string, control characters, no attribute may have either.
        for value, (name, found_right, quick) in zip(found.groups(), checks):  # noqa: B905
            if not (value in found_right or (value and quick(value))):
                closely_checked(name, value, version)
            attributes[name] = value
        if not has_data:
            return version, attributes, None, -1
        data, end = _read_value(text, start)
    except (CloudEventError, ValueError, StopIteration, RecursionError):
        return None
    if text[end:] != "}" and text[end:].strip(BLANKS) != "}":
        return None
    return version, attributes, data, start


#: The shape that was met last: most documents have the shape of the one before.
_latest: Final[list[_Shape | None]] = [None]

#: How many documents in a row had no known shape.
_missed: Final = [0]

_read_value: Final = JSON_DECODER.scan_once  # type: ignore[attr-defined]  # the stubs leave it out


def _passed_over(missed: int) -> bool:
    """Returns whether a document is not looked at behind so many that had no known shape."""
    return missed > PATIENCE and missed % PATIENCE != 0


def _quotes(text: str) -> int:
    """Returns how many quotes stand in front of the data, or in all where there is none."""
    return text.count('"', 0, text.find(_DATA))


def learn_shape(text: str, attributes: dict[str, Any], version: SpecVersion) -> None:
    """Learn the shape of a document that was read, if all its attributes are plain strings.

    `data` must stand behind them, or not at all. To be called when `shaped_members` found none.
    """
    if _passed_over(_missed[0] - 1):
        return
    end = text.find(_DATA)
    quotes = _quotes(text)
    shapes = _SHAPES.get(quotes, ())
    if quotes != 4 * len(attributes) or len(attributes) > MAX_NAMES or len(shapes) >= MAX_SHAPES:
        return
    has_data = end >= 0
    head = text[: skip_blanks(text, end + len(_DATA))] if has_data else text
    names = tuple(attributes)
    checks = version.plans.get(names)
    if checks is None:
        return
    # Four quotes for each attribute: so there is no other member, and each is a string. Where these
    # are what stands between the quotes, none is escaped.
    pieces = head.split('"')
    if pieces[1::4] != [*names, "data"][: len(names) + has_data]:
        return
    if pieces[3::4] != [*attributes.values()]:
        return
    if sum(map(len, pieces)) - sum(map(len, pieces[3::4])) > MAX_LENGTH:
        return
    pieces = [re.escape(piece) for piece in pieces]
    pieces[3::4] = [
        f"({pieces[3 + 4 * at]})" if name == version.specversion else '([^"]*+)'
        for at, name in enumerate(names)
    ]
    pattern = '"'.join(pieces)
    match = re.compile(pattern if has_data else pattern + r"\Z").match
    _SHAPES[quotes] = (*shapes, _Shape(match, checks, version, has_data))
