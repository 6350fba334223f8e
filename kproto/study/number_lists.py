"""Reads lists of numbers: brackets or braces, as Python, Go, Java, C, JavaScript print them.

A declaration may precede the brackets. Other text before the brackets, a size (`new byte[8]`) or an
index (`a[1]`) make no list. The explorer has the same rules in JavaScript (`pasted.js`).
"""

from __future__ import annotations

import re
from typing import Final

from .pasted_text import AmbiguousTextError, PastedTextError, check_padding

__all__ = ["read_decimal", "read_list"]

_COMMENT: Final = re.compile(r"/\*|//")
#: An array: its type or name, its elements, and what follows.
_ARRAY: Final = re.compile(
    r"(?P<head>[\w\s\[\]<>=&*.:,?()!]{0,200}?)"
    r"(?:\[(?P<list>[^\[\]{}]*)\]|\{(?P<block>[^\[\]{}]*)\})(?P<tail>[\w\s);=]*)",
    re.ASCII,
)
#: The end of an array, such as the length that `xxd -i` declares.
_TAIL: Final = re.compile(
    r"(?:\)\s*)?(?:;\s*)?(?:(?:(?:static|const|unsigned|int|long|size_t)\s+)*"
    r"[A-Za-z_]\w*_len\s*=\s*(?P<count>\d+)\s*;)?",
    re.ASCII,
)
_HEAD_MARK: Final = re.compile(
    r"\bbyte|\bu?int8|\bchar\b|\bu8\b|Uint8Array|\w\s*\[\d*\]\s*=", re.ASCII
)
#: The parts of a declaration. Numbers are only in brackets, and declare the length.
_HEAD_PART: Final = re.compile(
    r"\s+|\[\s*(?:(?P<count>\d+)|\.\.\.|u8)?\s*\]|\bUint8Array\s*\(\s*(?P<js>\d+)\s*\)"
    r"|<\s*[A-Za-z_][\w:]*\s*(?:,\s*(?P<template>\d+)\s*)?>"
    r"|(?P<word>[A-Za-z_]\w*)|:=|::|[=&*:.(]",
    re.ASCII,
)
#: Hex digits in a declaration are its name, which a length or a value follows.
_HEX_WORD: Final = re.compile(r"[0-9a-fA-F]+")
_AFTER_NAME: Final = re.compile(r"\s*(?:[\[=]|:)")
#: The end of what may precede `[`: a type of JavaScript, or no name at all.
_BEFORE_LIST: Final = re.compile(
    r"(?:\bUint8Array(?:\s*\(\s*\d+\s*\))?|(?:^|[=(&:]))\s*\Z", re.ASCII
)
_FRAME_BYTES: Final = re.compile(r"/\*[^*]*\((?P<count>\d+) bytes\)\s*\*/", re.ASCII)
#: In a list with commas: two numbers without a comma, or a comma without a number before it.
_NO_COMMA: Final = re.compile(r"[^,\s]\s+[^,\s]")
_NO_NUMBER: Final = re.compile(r"(?:,|^)\s*,")
_CAST: Final = re.compile(r"\(\s*byte\s*\)\s*")
_NUMBER: Final = re.compile(r"(?:0|-?[1-9]\d{0,2})", re.ASCII)
_PREFIXED: Final = re.compile(r"0[xX][0-9a-fA-F]{1,2}")
_PAIR: Final = re.compile(r"[0-9a-fA-F]{2}")
#: Numbers at the end of a line and at the start of the next line, and numbers in one line.
_WRAPPED: Final = re.compile(r"(?<![^\s,\[\](){}])(?P<first>-?\d+)\n(?P<second>\d+)", re.ASCII)
_IN_A_LINE: Final = re.compile(r"\d[ \t,]+-?\d", re.ASCII)


def read_list(text: str) -> bytes | None:
    """Reads numbers between brackets or braces, as Python, Go, Java, C and JavaScript print them.

    The numbers are decimal, from -128 to 255, or hex with `0x`. Numbers of two digits without `0x`
    that are separated by spaces alone are ambiguous, unless one of them can only be hex.
    """
    plain = _without_comments(text)
    match = _ARRAY.fullmatch(plain)
    if match is None:
        return None
    tail = _TAIL.fullmatch(match["tail"].strip())
    if tail is None:
        return None
    kind = "block" if match["list"] is None else "list"
    counts = _declared(match["head"], is_list=kind == "list")
    if counts is None:
        return None
    start = match.start(kind)
    elements = _CAST.sub(lambda found: " " * len(found[0]), match[kind])
    tokens = [(found[0], start + found.start()) for found in re.finditer(r"[^,\s]+", elements)]
    if not tokens and elements.strip():
        return None
    _check_commas(elements, start)
    data = _numbers(
        tokens,
        has_commas="," in elements,
        has_head=bool(match["head"].strip()),
        text=elements,
        start=start,
    )
    frame = _FRAME_BYTES.search(text)
    if frame is not None:
        counts.append((frame["count"], frame.start("count")))
    if tail["count"] is not None:
        before = match.end("tail") - len(match["tail"].lstrip())
        counts.append((tail["count"], before + tail.start("count")))
    for count, at in counts:
        if int(count) != len(data):
            raise PastedTextError(f"the array has {len(data)} bytes, and declares {count:.20}", at)
    return data


def _without_comments(text: str) -> str:
    """Returns the text with spaces for the comments of C, Go, Java and JavaScript."""
    parts = []
    position = copied = 0
    while (match := _COMMENT.search(text, position)) is not None:
        if match[0] == "//":
            end = text.find("\n", match.end())
            end = len(text) if end < 0 else end
        else:
            end = text.find("*/", match.end()) + 2
            if end < 2:
                break  # no comment ends from here on
        parts += [text[copied : match.start()], " " * (end - match.start())]
        position = copied = end
    return "".join([*parts, text[copied:]])


def _declared(head: str, *, is_list: bool) -> list[tuple[str, int]] | None:
    """Returns the lengths that a declaration has, with their indexes; None for other text."""
    if not head.strip():
        return []
    if _HEAD_MARK.search(head) is None or (is_list and _BEFORE_LIST.search(head) is None):
        return None
    counts = []
    position = 0
    while position < len(head):
        part = _HEAD_PART.match(head, position)
        if part is None:
            return None
        position = part.end()
        word = part["word"]
        if word and _HEX_WORD.fullmatch(word) and _AFTER_NAME.match(head, position) is None:
            return None
        counts += [
            (part[name], part.start(name)) for name in ("count", "js", "template") if part[name]
        ]
    return counts


def _check_wrapped(text: str, start: int) -> None:
    """Raises AmbiguousTextError if a line may end inside a number.

    `start` is the index of `text` in the whole text. Numbers that have a line each are whole.
    """
    if _IN_A_LINE.search(text) is None:
        return
    for found in _WRAPPED.finditer(text):
        joined = found["first"] + found["second"]
        if _NUMBER.fullmatch(joined) and int(joined) <= 255:
            raise AmbiguousTextError(
                f"{found['first']} and {found['second']} may be one number, which the end of the "
                "line parts: join the lines",
                start + found.start(),
            )


def _check_commas(elements: str, start: int) -> None:
    """Raises PastedTextError if some numbers are separated by a comma, and others are not.

    A number that is wrapped in its middle would be two numbers. The last one may have a comma.
    """
    if "," not in elements:
        return
    wrong = _NO_COMMA.search(elements) or _NO_NUMBER.search(elements)
    if wrong is not None:
        raise PastedTextError(
            "the numbers of a list are not separated by one comma each", start + wrong.end() - 1
        )


def _numbers(
    tokens: list[tuple[str, int]], *, has_commas: bool, has_head: bool, text: str, start: int
) -> bytes:
    """Returns the bytes of numbers in brackets; `text` are the numbers at the index `start`."""
    prefixed = [token for token, _ in tokens if _PREFIXED.fullmatch(token)]
    if len(prefixed) == len(tokens):
        check_padding(tokens)
        return bytes(int(token, 16) for token in prefixed)
    is_decimal = all(_NUMBER.fullmatch(token) for token, _ in tokens)
    are_pairs = all(_PAIR.fullmatch(token) for token, _ in tokens)
    if are_pairs and not is_decimal and not has_head:
        return bytes(int(token, 16) for token, _ in tokens)
    if not (has_commas or has_head) and ((are_pairs and is_decimal) or prefixed):
        raise AmbiguousTextError(
            "the numbers in brackets may be hex or decimal: choose the form hex or decimal",
            tokens[0][1],
        )
    _check_wrapped(text, start)
    return bytes(_decimal(token, at) for token, at in tokens)


def _decimal(token: str, at: int) -> int:
    if _PREFIXED.fullmatch(token):
        return int(token, 16)
    if _NUMBER.fullmatch(token) is None or not -128 <= int(token) <= 255:
        raise PastedTextError(f"{token!r:.20} is no byte, from -128 to 255", at)
    return int(token) % 256


def read_decimal(text: str) -> bytes:
    """Reads decimal numbers that are separated by spaces or commas."""
    _check_wrapped(text, 0)
    tokens = re.finditer(r"[^,\s\[\]{}()]+", text)
    return bytes(_decimal(token[0], token.start()) for token in tokens)
