"""Reads text that programs print for bytes: literals, hex digits, base64.

`number_lists` reads numbers in brackets, and `hex_dumps` dumps with offsets; `input_formats`
decides which form a text has. Every function returns None for text of another form, and raises
`PastedTextError` for text that has its form and is broken or ambiguous. Lines end with a newline.
The explorer has the same rules in JavaScript (`pasted.js`).
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, NamedTuple

__all__ = [
    "AmbiguousTextError",
    "PastedTextError",
    "check_padding",
    "read_base64",
    "read_hex",
    "read_literal",
    "without_surroundings",
]


class PastedTextError(ValueError):
    """A text cannot be read; `at` is the index of the wrong character."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.at = at


class AmbiguousTextError(PastedTextError):
    """A text has two readings with different bytes."""


#: The prompt of a shell, of Python or of IPython. Hex digits before a `$` are no prompt.
_PROMPT: Final = re.compile(
    r"[ \t]*(?:(?![0-9a-fA-F:.\-]+\$)[\w@:~/.()\[\]\-]*\$|>>>|In \[\d+\]:|Out\[\d+\]:)"
    r"(?:[ \t]+|$)",
    re.ASCII,
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
_QUOTE: Final = re.compile(r"[bB]?(['\"])")
#: The content of a literal that is a literal of Python, as JSON and CSV have it.
_QUOTED_LITERAL: Final = re.compile(rb"b(['\"]).*\1", re.DOTALL)
#: Between two literals, a newline that C and Wireshark escape, and a comment with offsets.
_BETWEEN: Final = re.compile(r"(?:\s|\\\r?\n|/\*.*?\*/)*", re.DOTALL)
_ESCAPED_ONLY: Final = re.compile(r"\s*(?:\\x[0-9a-fA-F]{2}\s*)+")

#: A bytea of Postgres, as JSON and CSV quote it: one escape in front of all digits.
_BYTEA: Final = re.compile(r"\s*(['\"])(?P<escape>\\{1,2})x(?P<digits>(?:[0-9a-fA-F]{2}){2,})\1\s*")

#: A decimal number, without leading zeros; two of its digits may be hex, too.
_NUMBER: Final = re.compile(r"(?:0|-?[1-9]\d{0,2})", re.ASCII)
#: Numbers from 10 to 99 that `od -A n -t u1` prints, each after two spaces.
_PADDED_DECIMALS: Final = re.compile(r"(?: {2,}[1-9][0-9](?:[ \t]*\n)?)+\s*")

#: The marks around hex digits: C's prefix, and quotes and brackets with the prefixes of SQL.
_WRAPPERS: Final = (
    re.compile(r"\s*[xXhH]?'(?P<inside>[^']*)'\s*"),
    re.compile(r'\s*[xXhH]?"(?P<inside>[^"]*)"\s*'),
    re.compile(r"\s*<(?P<inside>[^<>]*)>\s*"),
)
_HEX_TOKEN: Final = re.compile(r"(?P<prefix>0[xX]|\\x)?(?P<digits>[0-9a-fA-F]+)")
_PAIRS: Final = re.compile(r"(?:[0-9a-fA-F]{2})+")
#: A line that may begin with an offset: a colon follows, or a group of one byte.
_OFFSET_LINE: Final = re.compile(
    r"^[ \t]*(?P<offset>(?:0[xX])?[0-9a-fA-F]{4,16})(?::\s|[ \t]+[0-9a-fA-F]{2}(?=\s|\Z))",
    re.MULTILINE,
)
_HEX_SEPARATOR: Final = re.compile(r"[\s:,;_\-]*")
#: Between two groups: spaces, or one mark. Commas and semicolons may have spaces around them.
_ONE_SEPARATOR: Final = re.compile(r"\s+|\s*[,;]\s*|[:_\-](?:[ \t]*\n\s*)?")
_LAST_SEPARATOR: Final = re.compile(r"\s*[,;]?\s*")
_NO_BASE64: Final = re.compile(r"[^A-Za-z0-9+/_\-\s=]|=(?!=?\s*\Z)")
#: Base32 of whole groups, or with one letter missing. With less, its padding is none of base64.
_BASE32: Final = re.compile(r"(?:[A-Z2-7]{8})*[A-Z2-7]{7}[A-Z2-7=]")
_HEX_OR_DECIMAL: Final = "the numbers may be hex or decimal: choose the form hex or decimal"
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\-]+={0,2}")


def without_surroundings(text: str) -> str:
    """Returns the text without prompts, and with the brackets of Python for those of others.

    A line with a prompt before other lines is a command, and is left out; `Out[1]:` is no command.
    Every character keeps its place. Raises PastedTextError for the outputs of several commands.
    """
    lines = text.splitlines(keepends=True)
    last = max(0, len(lines) - 1)
    while last:
        prompt = _PROMPT.match(lines[last])
        if lines[last].strip() and (prompt is None or lines[last][prompt.end() :].strip()):
            break
        lines[last] = _blank(lines[last])  # the shell waits for the next command
        last -= 1
    position = 0
    has_output = False
    ended: int | None = None  # the index of a prompt after output
    for at, line in enumerate(lines):
        prompt = _PROMPT.match(line)
        if prompt is not None:
            is_command = at < last and "Out" not in prompt[0]
            end = len(line) if is_command else prompt.end()
            lines[at] = _blank(line[:end]) + line[end:]
            if has_output and ended is None:
                ended = position
        if lines[at].strip():
            has_output = True
            if ended is not None:
                raise PastedTextError(
                    "the text has outputs of several commands, of which another one begins here",
                    ended,
                )
        position += len(line)
    text = _NODE_BUFFER.sub(" " * len("Buffer"), "".join(lines))
    erlang = _ERLANG.fullmatch(text)
    if erlang is None:
        return text
    begin, end = erlang.span("inside")
    inside = erlang["inside"].strip()
    if inside.startswith('"'):
        opened, closed = " b", "  "
    else:  # a comma makes a single number decimal, as all numbers of Erlang are
        opened, closed = " [", ",]" if inside and not inside.endswith(",") else "] "
    return f"{text[: begin - 2]}{opened}{erlang['inside']}{closed}{_blank(text[end + 2 :])}"


def _blank(text: str) -> str:
    """Returns spaces for all characters except newlines."""
    return re.sub(r"[^\r\n]", " ", text)


def read_literal(text: str, *, form: str = "auto") -> bytes | None:
    """Reads string literals with escapes: `b'\\x00\\x01a'`, `"\\x00a"`, several in a row.

    A literal without escapes and without the prefix `b` is not read, because its characters may be
    hex digits. Escapes without quotes are read if nothing else is in the text. `form` is the form
    that the caller has named: `literal`, `hex` or `auto`.
    """
    bytea = _BYTEA.fullmatch(text)
    if bytea is not None:
        if form == "hex" or len(bytea["escape"]) == 2:
            return bytes.fromhex(bytea["digits"])
        if form == "auto":
            raise AmbiguousTextError(
                "the text may be a literal, or a bytea of Postgres, whose digits all are hex: "
                "choose the form literal or hex",
                bytea.start("escape"),
            )
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
        if text[end : end + 1] == quote[1]:
            raise AmbiguousTextError(
                "two quotes in a row may be one quote (SQL, CSV), or the end of a literal and the "
                "start of the next: separate the literals by a space",
                end - 1,
            )
    if not is_literal:
        return None
    if _AFTER_LITERAL.fullmatch(text, position) is None:
        raise PastedTextError(f"{text[position]!r} follows a literal", position)
    if form != "literal" and _QUOTED_LITERAL.fullmatch(found):
        raise AmbiguousTextError(
            "the literal has another literal inside (JSON, CSV): leave out the outer quotes, or "
            "choose the form literal",
            before.end() if before else 0,
        )
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
            if mark == "\n":
                raise PastedTextError("a line ends inside a literal", position)
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


def check_padding(tokens: list[tuple[str, int]]) -> None:
    """Raises PastedTextError if one number has a single digit, and others are padded to two.

    `tokens` are numbers in hex, with or without `0x`, each with its index in the text.
    """
    digits = [(token.lower().removeprefix("0x"), at) for token, at in tokens]
    if any(len(each) == 2 and each.startswith("0") for each, _ in digits):
        short = next((at for each, at in digits if len(each) == 1), None)
        if short is not None:
            raise PastedTextError("a number has one digit, and others have two", short)


class _HexToken(NamedTuple):
    """A group of hex digits: its index in the text, its prefix (`0x`, `\\x`), its digits."""

    at: int
    prefix: str
    digits: str


def read_hex(text: str, *, is_named: bool = False) -> bytes:
    """Reads hex digits: pairs, or groups of pairs, with separators between them.

    Spaces, colons, commas, semicolons, dashes and underscores separate groups, at most one mark
    between two groups; `0x` or `\\x` may precede a group, and quotes or angle brackets may enclose
    the text. If the caller has named the form (`is_named`), text that may be decimal, too, is read
    as hex.
    """
    offset = None if is_named else _OFFSET_LINE.search(text)
    if offset is not None:
        raise PastedTextError(
            f"{offset['offset']!r} may be the offset of a dump, and this line has none: leave "
            "out the offsets, or choose the form hex",
            _line_without_offset(text, offset.start("offset")),
        )
    if not is_named and _PADDED_DECIMALS.fullmatch(text):
        raise AmbiguousTextError(_HEX_OR_DECIMAL, len(text) - len(text.lstrip()))
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
    tokens, has_commas = _hex_tokens(inside, begin)
    check_padding([(token.digits, token.at) for token in tokens if token.prefix])
    if not is_named and has_commas:
        _check_not_decimal(tokens)
    return bytes.fromhex("".join(token.digits.rjust(2, "0") for token in tokens))


def _hex_tokens(text: str, begin: int) -> tuple[list[_HexToken], bool]:
    """Returns the groups of digits, and True if commas separate some of them.

    `begin` is the index of `text` in the whole text.
    """
    tokens: list[_HexToken] = []
    has_commas = False
    position = 0
    while True:
        skipped = _HEX_SEPARATOR.match(text, position)
        assert skipped is not None
        at_end = skipped.end() == len(text)
        _check_separator(skipped[0], begin + position, is_first=not tokens, is_last=at_end)
        has_commas = has_commas or "," in skipped[0]
        position = skipped.end()
        if at_end:
            return tokens, has_commas
        match = _HEX_TOKEN.match(text, position)
        if match is None:
            raise PastedTextError(f"{text[position]!r} is no hex digit", begin + position)
        digits = match["digits"]
        end = match.end()
        if end < len(text) and _HEX_SEPARATOR.match(text, end)[0] == "":  # type: ignore[index]
            raise PastedTextError(f"{text[end]!r} is no hex digit", begin + end)
        if len(digits) % 2 and not (match["prefix"] and len(digits) == 1):
            raise PastedTextError(
                f"{digits!r:.40} has an odd number of digits, and hex has two digits a byte "
                "(choose the form decimal for decimal numbers)",
                begin + match.start("digits"),
            )
        tokens.append(_HexToken(begin + position, match["prefix"] or "", digits))
        position = end


def _check_separator(skipped: str, at: int, *, is_first: bool, is_last: bool) -> None:
    """Raises PastedTextError for marks between which a number is missing, or that may be signs."""
    if is_first:
        allowed = not skipped.strip()
    elif is_last:
        allowed = _LAST_SEPARATOR.fullmatch(skipped) is not None
    else:
        allowed = _ONE_SEPARATOR.fullmatch(skipped) is not None
    if not allowed:
        marks = [index for index, mark in enumerate(skipped) if not mark.isspace()]
        wrong = marks[min(1, len(marks) - 1)]
        raise PastedTextError(
            f"{skipped[wrong]!r} separates no two numbers: one mark may be between two numbers, "
            "and a colon, dash or underscore has no space before it",
            at + wrong,
        )


def _line_without_offset(text: str, otherwise: int) -> int:
    """Returns the index of the first line that cannot begin with an offset; `otherwise` if none."""
    at = 0
    for line in text.splitlines(keepends=True):
        if line.strip() and line.strip() != "*" and _OFFSET_LINE.match(line) is None:
            return at + len(line) - len(line.lstrip())
        at += len(line)
    return otherwise


def _check_not_decimal(tokens: list[_HexToken]) -> None:
    """Raises AmbiguousTextError if numbers that are separated by commas may be decimal."""
    plain = [token for token in tokens if not token.prefix and _NUMBER.fullmatch(token.digits)]
    has_prefixes = any(token.prefix and len(token.digits) <= 2 for token in tokens)
    if plain and (has_prefixes or len(plain) == len(tokens) > 1):
        raise AmbiguousTextError(_HEX_OR_DECIMAL, plain[0].at)


def read_base64(text: str, *, is_named: bool = False) -> bytes:
    """Reads base64 or base64url, with or without padding, in one or several lines.

    Raises PastedTextError for other text. Unless the caller has named the form (`is_named`), no
    line may have spaces inside, and text that may be base32, too, is refused.
    """
    lines = text.split() if is_named else [line.strip() for line in text.splitlines()]
    packed = "".join(lines)
    end = max(0, len(text.rstrip()) - 1)
    if packed and _BASE64.fullmatch(packed) is None:
        wrong = _NO_BASE64.search(text)
        raise PastedTextError("the input is no base64", wrong.start() if wrong else end)
    plain = packed.rstrip("=").translate(str.maketrans("-_", "+/"))
    if packed.endswith("=") and len(packed) % 4:
        raise PastedTextError("the input is no base64: its padding is wrong", end)
    try:
        found = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error as error:
        raise PastedTextError(f"the input is no base64: {error}", end) from None
    if base64.b64encode(found).decode().rstrip("=") != plain:
        raise PastedTextError("the input is no base64: its last bits are lost", end)
    if not is_named and _BASE32.fullmatch(packed):
        raise AmbiguousTextError(
            "the input may be base32 or base64: choose the form base64",
            len(text) - len(text.lstrip()),
        )
    return found
