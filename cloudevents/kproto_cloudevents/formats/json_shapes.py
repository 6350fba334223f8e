"""Reads the attributes of a JSON event by a known document shape, without the JSON decoder.

The documents of a topic mostly differ only in the values of their members: names, order and
whitespace repeat. A shape is a regular expression for this repeating text, up to the value of
`data`. The member `data` comes last, and the JSON decoder reads its value. A shape is learned from
a document that was read as an event. If a document matches no shape or is invalid, `json_format`
reads it with the JSON decoder and reports the fault. Because producers choose the shapes, their
number and length are bounded.

Matching takes time proportional to the text: a shape consists of literal text and of values up to
the next quote, which never backtrack (`*+`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..errors import CloudEventError
from ..values.json_text import BLANKS, JSON_DECODER, skip_blanks
from ..versions.check_plans import MAX_NAMES
from ..versions.spec_version import Check, SpecVersion

__all__ = ["MAX_LENGTH", "MAX_SHAPES", "PATIENCE", "ShapedMembers", "learn_shape", "shaped_members"]

#: The maximum number of shapes with the same number of members; a document is matched against each
#: of these shapes.
MAX_SHAPES: Final = 4
#: The maximum number of characters of a shape, without the values; a longer shape is not learned.
MAX_LENGTH: Final = 2048

#: If more than this many documents in a row have no known shape, only every 16th document is
#: matched after that.
PATIENCE: Final = 16

#: The name before the data. Inside a JSON string its quotes would have backslashes.
_DATA: Final = '"data":'


class _Shape(NamedTuple):
    """A known shape: its regular expression, and the checks of the values in a document."""

    match: Callable[[str], re.Match[str] | None]
    #: The checks of the values, in order of the groups of the expression.
    checks: tuple[Check, ...]
    version: SpecVersion
    has_data: bool


#: The known shapes, by the number of quotes before the data: four for each member.
_SHAPES: Final[dict[int, tuple[_Shape, ...]]] = {}

#: The version, the attributes, the value of `data` and its position; (None, -1) without data.
ShapedMembers = tuple[SpecVersion, dict[str, Any], Any, int]


def shaped_members(
    text: str, closely_checked: Callable[[str, Any, SpecVersion], Any]
) -> ShapedMembers | None:
    """Returns the members of an event; None if the JSON decoder must read the document.

    Returns None if the document has no known shape, has a backslash before its data, or is invalid.
    After many documents without a known shape, also returns None for most documents without testing
    their shape (see `PATIENCE`). The members equal those that the JSON decoder returns, and the
    attributes are valid. `closely_checked(name, value, version)` checks a value that no quick check
    accepts; it raises CloudEventError for an invalid value.
    """
    missed = _missed[0]
    if missed and _is_skipped(missed):
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
        # Both have the same length; `strict` would add a tenth of the time. The checks of the
        # attributes refuse control characters, which a JSON string cannot contain.
        for value, (name, valid_values, quick) in zip(found.groups(), checks):  # noqa: B905
            if not (value in valid_values or (value and quick(value))):
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


#: The shape that matched last; most documents have the shape of the previous document.
_latest: Final[list[_Shape | None]] = [None]

#: The number of documents in a row without a known shape.
_missed: Final = [0]

_read_value: Final = JSON_DECODER.scan_once  # type: ignore[attr-defined]  # the stubs leave it out


def _is_skipped(missed: int) -> bool:
    """Returns True if the next document is not compared with any shape.

    `missed` is the number of documents in a row without a known shape.
    """
    return missed > PATIENCE and missed % PATIENCE != 0


def _quotes(text: str) -> int:
    """Returns the number of `"` in a document before its member `data`.

    If the document has no member `data`, returns the number of all `"`.
    """
    return text.count('"', 0, text.find(_DATA))


def learn_shape(text: str, attributes: dict[str, Any], version: SpecVersion) -> None:
    """Learns the shape of a document whose members are strings without escapes, except `data`.

    Learns nothing if another member follows `data`, if the document has `data_base64`, or if a
    bound is reached. Call it after `shaped_members` has returned None and the JSON decoder has read
    the document.
    """
    if _is_skipped(_missed[0] - 1):
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
    # Four quotes per attribute mean that there is no other member, and that each is a string. If
    # the texts between the quotes equal the attributes, no character is escaped.
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
