"""Reads text that programs print for bytes: literals, lists, hex digits, base64.

`hex_dumps` reads dumps with offsets; `input_formats` decides which form a text has. Every function
returns None for text of another form, and raises `PastedTextError` for text that has its form and
is broken or ambiguous. The explorer has the same rules in JavaScript (`pasted.js`).
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

__all__ = [
    "PastedTextError",
    "read_base64",
    "read_decimal",
    "read_hex",
    "read_list",
    "read_literal",
    "without_surroundings",
]


class PastedTextError(ValueError):
    """A text cannot be read; `at` is the index of the wrong character, None for the whole text."""

    def __init__(self, reason: str, at: int | None = None) -> None:
        super().__init__(reason)
        self.at = at


#: The prompt of a shell, of Python or of IPython.
_PROMPT: Final = re.compile(
    r"[ \t]*(?:[\w@:~/.()\[\]\-]*\$|>>>|In \[\d+\]:|Out\[\d+\]:)(?:[ \t]+|$)"
)
#: A Buffer of Node, and a binary of Erlang.
_NODE_BUFFER: Final = re.compile(r"(?<=<)Buffer(?=[ >])")
_ERLANG: Final = re.compile(r"\s*<<(?P<inside>.*)>>\.?\s*", re.DOTALL)

#: The bytes of the escapes with one letter, in C, Go, Java, Python and Rust.
_ESCAPES: Final = {
    "a": 7,
    "b": 8,
    "t": 9,
    "n": 10,
    "v": 11,
    "f": 12,
    "r": 13,
    "e": 27,
    **{mark: ord(mark) for mark in "\\'\"?"},
}
#: The text around a literal: `bytearray(…)` and the like, parentheses (pprint), and `;`.
_BEFORE_LITERAL: Final = re.compile(r"\s*(?:(?:bytearray|bytes|memoryview|\[\]byte)?\s*\(\s*)?")
_AFTER_LITERAL: Final = re.compile(r"\s*\)?\s*;?\s*")
_QUOTE: Final = re.compile(r"(?:[bB][rR]?)?(['\"])")
#: Between two literals, a newline that C and Wireshark escape, and a comment with offsets.
_BETWEEN: Final = re.compile(r"(?:\s|\\\r?\n|/\*.*?\*/)*", re.DOTALL)
_ESCAPED_ONLY: Final = re.compile(r"\s*(?:\\x[0-9a-fA-F]{2}\s*)+")

#: A bytea of Postgres, as JSON and CSV quote it: one escape in front of all digits.
_BYTEA: Final = re.compile(r"\s*(['\"])\\{1,2}x(?P<digits>(?:[0-9a-fA-F]{2}){2,})\1\s*")

_COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
#: An array: its type or name, its elements, and the length that `xxd -i` declares after it.
_ARRAY: Final = re.compile(
    r"(?P<head>[\w\s\[\]<>=&*.:,?()!]{0,200}?)(?P<open>[\[{])(?P<elements>[^\[\]{}]*)[\]}]\s*\)?\s*;?\s*"
    r"(?:[\w\s]*_len\s*=\s*(?P<count>\d+)\s*;)?\s*",
)
_HEAD_MARK: Final = re.compile(r"\bbyte|\bu?int8|\bchar\b|\bu8\b|Uint8Array|\w\s*\[\d*\]\s*=")
#: The length that an array declares before its elements, or Wireshark in a comment.
_DECLARED: Final = re.compile(r"(?:\[|Uint8Array\()\s*(?P<count>\d+)\s*[\])]")
_FRAME_BYTES: Final = re.compile(r"/\*[^*]*\((?P<count>\d+) bytes\)\s*\*/")
#: In a list with commas: two numbers without a comma, or a comma without a number before it.
_NO_COMMA: Final = re.compile(r"[^,\s]\s+[^,\s]")
_NO_NUMBER: Final = re.compile(r"(?:,|^)\s*,")
_CAST: Final = re.compile(r"\(\s*byte\s*\)\s*")
_NUMBER: Final = re.compile(r"(?:0|-?[1-9]\d{0,2})")
_PREFIXED: Final = re.compile(r"0[xX][0-9a-fA-F]{1,2}")
_PAIR: Final = re.compile(r"[0-9a-fA-F]{2}")
_SEPARATOR: Final = re.compile(r"[,\s]+")

#: The marks around hex digits: C's prefix, and quotes and brackets with the prefixes of SQL.
_WRAPPERS: Final = (
    re.compile(r"\s*[xXhH]?'(?P<inside>[^']*)'\s*"),
    re.compile(r'\s*[xXhH]?"(?P<inside>[^"]*)"\s*'),
    re.compile(r"\s*<(?P<inside>[^<>]*)>\s*"),
)
_HEX_TOKEN: Final = re.compile(r"(?:0[xX]|\\x)?(?P<digits>[0-9a-fA-F]+)")
_PAIRS: Final = re.compile(r"(?:[0-9a-fA-F]{2})+")
#: A line that may begin with an offset: a colon follows, or a group of one byte.
_OFFSET_LINE: Final = re.compile(
    r"^[ \t]*(?P<offset>(?:0[xX])?[0-9a-fA-F]{4,16})(?::\s|[ \t]+[0-9a-fA-F]{2}(?=\s|\Z))",
    re.MULTILINE,
)
_HEX_SEPARATOR: Final = re.compile(r"[\s:,;_\-]*")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\-]+={0,2}")


def without_surroundings(text: str) -> str:
    """Returns the text without prompts, and with the brackets of Python for those of others.

    A line with a prompt before other lines is a command, and is left out. Every character keeps its
    place.
    """
    lines = text.splitlines(keepends=True)
    last = max((at for at, line in enumerate(lines) if line.strip()), default=0)
    while (
        last and (prompt := _PROMPT.match(lines[last])) and not lines[last][prompt.end() :].strip()
    ):
        lines[last] = _blank(lines[last])  # the shell waits for the next command
        last = max((at for at, line in enumerate(lines) if line.strip()), default=0)
    for at, line in enumerate(lines):
        prompt = _PROMPT.match(line)
        if prompt is not None:
            end = len(line) if at < last else prompt.end()
            lines[at] = _blank(line[:end]) + line[end:]
    text = _NODE_BUFFER.sub(" " * len("Buffer"), "".join(lines))
    erlang = _ERLANG.fullmatch(text)
    if erlang is None:
        return text
    begin, end = erlang.span("inside")
    opened, closed = (" b", "  ") if erlang["inside"].lstrip()[:1] == '"' else (" [", "] ")
    return f"{text[: begin - 2]}{opened}{erlang['inside']}{closed}{_blank(text[end + 2 :])}"


def _blank(text: str) -> str:
    """Returns spaces for all characters except newlines."""
    return re.sub(r"[^\r\n]", " ", text)


def read_literal(text: str) -> bytes | None:
    """Reads string literals with escapes: `b'\\x00\\x01a'`, `"\\x00a"`, several in a row.

    A literal without escapes and without the prefix `b` is not read, because its characters may be
    hex digits. Escapes without quotes are read if nothing else is in the text.
    """
    bytea = _BYTEA.fullmatch(text)
    if bytea is not None:
        return bytes.fromhex(bytea["digits"])
    if _ESCAPED_ONLY.fullmatch(text):
        return bytes.fromhex(re.sub(r"\\x|\s", "", text))
    before = _BEFORE_LITERAL.match(text)
    position = before.end() if before else 0
    found = bytearray()
    is_literal = False
    while (quote := _QUOTE.match(text, position)) is not None:
        has_prefix = len(quote[0]) > 1
        data, end, has_escapes = _unescaped(text, quote.end(), quote[1])
        if not (has_prefix or has_escapes or is_literal):
            return None
        is_literal = True
        found += data
        between = _BETWEEN.match(text, end)
        position = between.end() if between else end
    if not is_literal:
        return None
    if _AFTER_LITERAL.fullmatch(text, position) is None:
        raise PastedTextError(f"{text[position]!r} follows a literal", position)
    return bytes(found)


def _unescaped(text: str, position: int, quote: str) -> tuple[bytes, int, bool]:
    """Returns the bytes of a literal, the index after its quote, and True if it has escapes."""
    found = bytearray()
    has_escapes = False
    while position < len(text):
        mark = text[position]
        if mark == quote:
            return bytes(found), position + 1, has_escapes
        if mark != "\\":
            if not " " <= mark <= "~":
                raise PastedTextError(f"{mark!r} is not ASCII", position)
            found.append(ord(mark))
            position += 1
            continue
        has_escapes = True
        value, position = _escape(text, position)
        found.append(value)
    raise PastedTextError("a literal has no closing quote", len(text) - 1)


def _escape(text: str, position: int) -> tuple[int, int]:
    """Returns the byte of the escape at `position`, and the index after it."""
    rest = text[position + 1 : position + 6]
    for pattern, base in (
        (r"x([0-9a-fA-F]{2})", 16),
        (r"u(00[0-7][0-9a-fA-F])", 16),
        (r"([0-3][0-7]{2})", 8),
        (r"(0)(?![0-9])", 8),
    ):
        match = re.match(pattern, rest)
        if match is not None:
            return int(match[1], base), position + 1 + match.end()
    if rest[:1] in _ESCAPES and rest:
        return _ESCAPES[rest[0]], position + 2
    raise PastedTextError(f"\\{rest[:1]} is no escape of one byte", position)


def read_list(text: str) -> bytes | None:
    """Reads numbers between brackets or braces, as Python, Go, Java, C and JavaScript print them.

    The numbers are decimal, from -128 to 255, or hex with `0x`. Numbers of two digits without `0x`
    that are separated by spaces alone are ambiguous, unless one of them can only be hex.
    """
    plain = _COMMENT.sub(lambda found: " " * len(found[0]), text)
    match = _ARRAY.fullmatch(plain)
    if match is None:
        return None
    head = match["head"].strip()
    if head and _HEAD_MARK.search(match["head"] + match["open"]) is None:
        return None
    start = match.start("elements")
    elements = _CAST.sub(lambda found: " " * len(found[0]), match["elements"])
    tokens = [(found[0], start + found.start()) for found in re.finditer(r"[^,\s]+", elements)]
    if not tokens:
        return b"" if not elements.strip() else None
    _check_commas(elements, start)
    data = _numbers(tokens, has_commas="," in elements, has_head=bool(head))
    for pattern, source in ((_DECLARED, match["head"]), (_FRAME_BYTES, text)):
        declared = pattern.search(source)
        if declared is not None and int(declared["count"]) != len(data):
            raise PastedTextError(
                f"the array has {len(data)} bytes, and declares {declared['count']}",
                declared.start("count"),
            )
    if match["count"] is not None and int(match["count"]) != len(data):
        raise PastedTextError(
            f"the array has {len(data)} bytes, and declares {match['count']}", match.start("count")
        )
    return data


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


def _check_padding(tokens: list[tuple[str, int]]) -> None:
    """Raises PastedTextError if one number has a single digit, and others are padded to two."""
    digits = [(token.lower().removeprefix("0x"), at) for token, at in tokens]
    if any(len(each) == 2 and each.startswith("0") for each, _ in digits):
        short = next((at for each, at in digits if len(each) == 1), None)
        if short is not None:
            raise PastedTextError("a number has one digit, and others have two", short)


def _numbers(tokens: list[tuple[str, int]], *, has_commas: bool, has_head: bool) -> bytes:
    if all(_PREFIXED.fullmatch(token) for token, _ in tokens):
        _check_padding(tokens)
        return bytes(int(token, 0) for token, _ in tokens)
    is_decimal = all(_NUMBER.fullmatch(token) for token, _ in tokens)
    are_pairs = all(_PAIR.fullmatch(token) for token, _ in tokens)
    if are_pairs and not is_decimal and not has_head:
        return bytes(int(token, 16) for token, _ in tokens)
    if are_pairs and is_decimal and len(tokens) > 1 and not has_commas and not has_head:
        raise PastedTextError(
            "the numbers in brackets may be hex or decimal: choose the form hex or decimal"
        )
    return bytes(_decimal(token, at) for token, at in tokens)


def _decimal(token: str, at: int) -> int:
    if _PREFIXED.fullmatch(token):
        return int(token, 0)
    if _NUMBER.fullmatch(token) is None or not -128 <= int(token) <= 255:
        raise PastedTextError(f"{token!r:.20} is no byte, from -128 to 255", at)
    return int(token) % 256


def read_decimal(text: str) -> bytes:
    """Reads decimal numbers that are separated by spaces or commas."""
    tokens = re.finditer(r"[^,\s\[\]{}()]+", text)
    return bytes(_decimal(token[0], token.start()) for token in tokens)


def read_hex(text: str, *, is_named: bool = False) -> bytes:
    """Reads hex digits: pairs, or groups of pairs, with separators between them.

    Spaces, colons, commas, semicolons, dashes and underscores separate groups; `0x` or `\\x`
    may precede a group, and quotes or angle brackets may enclose the text. If the caller has named
    the form (`is_named`), text that may be decimal, too, is read as hex.
    """
    offset = None if is_named else _OFFSET_LINE.search(text)
    if offset is not None:
        raise PastedTextError(
            f"{offset['offset']!r} may be the offset of a dump, and this line has none: leave "
            "out the offsets, or choose the form hex",
            _line_without_offset(text, offset.start("offset")),
        )
    words = text.split()
    if words and all(_PAIRS.fullmatch(word) for word in words):  # fast, because texts may be long
        return bytes.fromhex("".join(words))
    begin, inside = 0, text
    for wrapper in _WRAPPERS:
        match = wrapper.fullmatch(text)
        if match is not None:
            begin, inside = match.start("inside"), match["inside"]
            break
    if is_named:
        inside = re.sub(r"[\[\]{}()<>\"']", " ", inside)
    found: list[str] = []
    tokens: list[str] = []
    prefixed: list[tuple[str, int]] = []
    separators: set[str] = set()
    position = 0
    while True:
        skipped = _HEX_SEPARATOR.match(inside, position)
        assert skipped is not None
        separators.update(skipped[0])
        position = skipped.end()
        if position == len(inside):
            break
        match = _HEX_TOKEN.match(inside, position)
        if match is None:
            raise PastedTextError(f"{inside[position]!r} is no hex digit", begin + position)
        digits = match["digits"]
        end = match.end()
        if end < len(inside) and _HEX_SEPARATOR.match(inside, end)[0] == "":  # type: ignore[index]
            raise PastedTextError(f"{inside[end]!r} is no hex digit", begin + end)
        has_prefix = len(digits) < end - position
        if len(digits) % 2:
            if not (has_prefix and len(digits) == 1):
                raise PastedTextError(
                    f"{digits!r:.40} has an odd number of digits, and hex has two digits a byte "
                    "(choose the form decimal for decimal numbers)",
                    begin + match.start("digits"),
                )
            digits = f"0{digits}"
        found.append(digits)
        tokens.append(match[0])
        if has_prefix and len(digits) == 2:
            prefixed.append((match["digits"], begin + position))
        position = end
    _check_padding(prefixed)
    _check_not_decimal(tokens, separators, is_named=is_named)
    return bytes.fromhex("".join(found))


def _line_without_offset(text: str, otherwise: int) -> int:
    """Returns the index of the first line that cannot begin with an offset; `otherwise` if none."""
    at = 0
    for line in text.splitlines(keepends=True):
        if line.strip() and line.strip() != "*" and _OFFSET_LINE.match(line) is None:
            return at + len(line) - len(line.lstrip())
        at += len(line)
    return otherwise


def _check_not_decimal(tokens: list[str], separators: set[str], *, is_named: bool) -> None:
    if is_named or len(tokens) < 2 or "," not in separators:
        return
    if all(_NUMBER.fullmatch(token) for token in tokens):
        raise PastedTextError("the numbers may be hex or decimal: choose the form hex or decimal")


def read_base64(text: str, *, is_named: bool = False) -> bytes:
    """Reads base64 or base64url, with or without padding, in one or several lines.

    Raises PastedTextError for other text. Unless the caller has named the form (`is_named`), no
    line may have spaces inside.
    """
    lines = text.split() if is_named else [line.strip() for line in text.splitlines()]
    packed = "".join(lines)
    if packed and _BASE64.fullmatch(packed) is None:
        raise PastedTextError("the input is no base64")
    plain = packed.rstrip("=").translate(str.maketrans("-_", "+/"))
    if packed.endswith("=") and len(packed) % 4:
        raise PastedTextError("the input is no base64: its padding is wrong")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error as error:
        raise PastedTextError(f"the input is no base64: {error}") from None
