"""Compares messages whose strings are not UTF-8.

Kafka's classes replace bytes that are not UTF-8 by U+FFFD. A codec that keeps these bytes loses
nothing: it writes the bytes of the case again, or in JSON the characters U+DC80 to U+DCFF, which
Python's error handler `surrogateescape` makes of the bytes 0x80 to 0xFF (PEP 383).
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..schema.layout import StructLayout
from .lenient_reader import DeviationFromKafka, UnreadableMessageError, walk_message

__all__ = ["same_but_lossless", "without_escapes"]

#: Characters that stand for bytes that are not UTF-8. Their number is not compared, because codecs
#: replace a different number of bytes by one U+FFFD: Java replaces an encoded surrogate by one
#: U+FFFD, Python by three.
_REPLACED: Final = re.compile("[\ufffd\udc80-\udcff]+")


def without_escapes(node: Any) -> Any:
    """Returns JSON data in which one U+FFFD stands for any wrong bytes in a row of a string."""
    match node:
        case str():
            return _REPLACED.sub("\ufffd", node)
        case list():
            return [without_escapes(each) for each in node]
        case dict():
            return {key: without_escapes(value) for key, value in node.items()}
    return node


def same_but_lossless(shape: StructLayout, content: bytes, right: bytes, given: bytes) -> bool:
    """Returns True if two messages are equal, except that `given` keeps strings of `content`.

    `content`, `right` and `given` are encodings of a message with the layout `shape`. At least one
    string of `given` is not UTF-8; each such string is a string of `content`, and `right` has the
    same string with U+FFFD for the wrong bytes. Everything else is equal, except the lengths of
    these strings, and the sizes of tagged fields with such strings.
    """
    try:
        kept = {text for is_string, text in _parts(shape, content) if is_string}
        expected, actual = _parts(shape, right), _parts(shape, given)
        if DeviationFromKafka.TAG_SIZE in walk_message(shape, given).deviations:
            return False
    except (UnreadableMessageError, RecursionError):
        return False
    return len(expected) == len(actual) and all(
        one == other
        or (one[0] and other[0] and other[1] in kept and _is_replacement(one[1], other[1]))
        for one, other in zip(expected, actual, strict=True)
    )


def _is_replacement(replaced: bytes | None, kept: bytes | None) -> bool:
    if replaced is None or kept is None:
        return False
    texts = replaced.decode(), kept.decode(errors="replace")
    return len({without_escapes(text) for text in texts}) == 1


def _parts(shape: StructLayout, data: bytes) -> list[tuple[bool, bytes | None]]:
    """Splits a message into its strings (True, None for null) and the bytes between them (False).

    Leaves out the lengths of the strings, and the sizes of tagged fields. The last part has the
    bytes after the message, too.
    """
    read = walk_message(shape, data)
    holes: list[tuple[int, int, list[tuple[bool, bytes | None]]]] = [
        (begin, end, []) for begin, end in read.tag_sizes
    ]
    for field in read.strings:
        text = None if field.value < 0 else data[field.end : field.stop]
        holes.append((field.begin, field.stop, [(True, text)]))
    parts: list[tuple[bool, bytes | None]] = []
    pos = 0
    for begin, end, inserted in sorted(holes, key=lambda it: it[:2]):
        parts += [(False, data[pos:begin]), *inserted]
        pos = end
    return [*parts, (False, data[pos:])]
