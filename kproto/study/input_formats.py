"""Parses bytes as users enter them: hex digits, a dump, a literal, a list, base64 or raw bytes.

Decides whether input is text or raw bytes, and detects the form of text by default. Raises
ConfigurationError if the whole input is not in one form, or if it may have two forms with different
bytes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Final

from ..wire.errors import ConfigurationError
from .hex_dumps import MAX_DUMPED_BYTES, read_dump, read_words
from .number_lists import read_decimal, read_list
from .pasted_text import (
    AmbiguousTextError,
    PastedTextError,
    read_base64,
    read_hex,
    read_literal,
    without_surroundings,
)

__all__ = ["FORMS", "MAX_DUMPED_BYTES", "read_bytes"]

FORMS: Final = ("auto", "hex", "dump", "words", "decimal", "literal", "base64", "binary")


#: Text with at most this number of characters that are no hex digits is hex with mistakes rather
#: than base64; of random base64 of 16 characters, less than one in 10,000 looks like that.
MAX_WRONG_DIGITS: Final = 2

#: White space of texts, and the first character of the colors of a terminal. Raw bytes have others.
_TEXT_CONTROLS: Final = frozenset("\t\n\v\f\r\x1b")
#: Categories of Unicode: invisible characters that texts have, such as U+200B and U+2028.
_INVISIBLE_IN_TEXT: Final = frozenset({"Cf", "Zl", "Zp", "Zs"})
#: Categories of characters that no form has: controls, formats, surrogates, unassigned; spaces.
_REFUSED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
#: The bytes that ASCII prints, and its white space. If at least three quarters of an input, and its
#: first byte, are some of them, then it is a damaged text, and not raw bytes.
_ASCII: Final = bytes([*b"\t\n\v\f\r\x1b", *range(0x20, 0x7F)])

#: Byte order marks, with the encodings that they mark; PowerShell writes files in UTF-16.
_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_WITHOUT_LINES: Final = {ord("\n"): None, ord("\t"): None}


def read_bytes(data: bytes | str, form: str = "auto") -> bytes:
    """Returns the bytes that `data` encodes; `form` is one of `FORMS`.

    `auto` returns bytes that are no text unchanged; a `str` is always text. Of text it accepts the
    form that the text must have; the documentation has a table of the forms, and the rule for text
    (docs/how-to/decode.md). Full-width digits and other compatibility characters of Unicode count
    as their ASCII characters. Raises ConfigurationError, with line and column, for text that has no
    form, is broken, or may have two forms.
    """
    if form not in FORMS:
        raise ConfigurationError(f"form is {form!r}; it is one of {', '.join(FORMS)}")
    if form == "binary":
        return data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    given = data if isinstance(data, str) else _text(data)
    if given is None:
        if form == "auto":
            return bytes(data)  # type: ignore[arg-type]
        raise ConfigurationError(f"the input is no text, so it is not {form}")
    text = _normalized(given)
    try:
        _check_visible(text)
        return _BY_FORM[form](without_surroundings(text))
    except PastedTextError as error:
        raise ConfigurationError(f"{_place(text, error.at)}{error}") from None


def _text(data: bytes) -> str | None:
    """Returns the input as text; None if it is raw bytes.

    In the text, a surrogate stands for a byte that is not UTF-8.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return _damaged_text(data)
    if encoding == "utf-16":  # unless all is ASCII, raw bytes that begin with the same two bytes
        return text if text and _normalized(text).isascii() and _is_text(text) else None
    return text if _is_text(text.rstrip("\0")) else _damaged_text(data)


def _is_text(text: str) -> bool:
    return all(
        character.isprintable()
        or character in _TEXT_CONTROLS
        or unicodedata.category(character) in _INVISIBLE_IN_TEXT
        for character in text
    )


def _damaged_text(data: bytes) -> str | None:
    """Returns bytes that are mostly ASCII text with other bytes between; None for raw bytes."""
    others = len(data.translate(None, _ASCII))
    if data[:1] in _ASCII and 4 * others <= len(data):
        return data.decode("utf-8", "surrogateescape")
    return None


def _normalized(text: str) -> str:
    """Returns the text with ASCII for compatibility characters, and with one kind of line end.

    Each character keeps its line and column. A byte order mark at the start is left out.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() else "".join(map(_ascii_of, text))


def _ascii_of(character: str) -> str:
    same = unicodedata.normalize("NFKC", character)
    return same if len(same) == 1 and same.isascii() else character


def _check_visible(text: str) -> None:
    """Raises PastedTextError for a character that is not visible, except spaces and line ends."""
    if text.isascii() and text.translate(_WITHOUT_LINES).isprintable():
        return
    for at, character in enumerate(text):
        if character in " \t\n" or unicodedata.category(character) not in _REFUSED:
            continue
        if "\udc80" <= character <= "\udcff":
            reason = f"the byte {ord(character) - 0xDC00:#04x} is no UTF-8"
        else:
            name = unicodedata.name(character, "a control character")
            reason = f"U+{ord(character):04X} ({name}) is invisible, and no part of a text of bytes"
        raise PastedTextError(f"{reason}; choose the form binary for raw bytes", at)


def _auto(text: str) -> bytes:
    for read in (read_literal, read_list, read_dump):
        found = read(text)
        if found is not None:
            return found
    try:
        return read_hex(text)
    except AmbiguousTextError:
        raise
    except PastedTextError as no_hex:
        try:
            found = read_base64(text)
        except AmbiguousTextError:
            raise
        except PastedTextError as no_base64:
            if text.rstrip().endswith("="):  # hex has no padding
                raise no_base64 from None
            raise PastedTextError(
                f"{no_hex}, and the input is no dump, no list and no base64; choose the form "
                "binary for raw bytes",
                no_hex.at,
            ) from None
        if _is_hex_like(text):
            raise AmbiguousTextError(
                f"{no_hex}, and the input may be base64: choose the form base64, or correct "
                "the hex digits",
                no_hex.at,
            ) from None
        return found


def _is_hex_like(text: str) -> bool:
    """Returns True for hex digits with mistakes, of which base64 would make other bytes.

    Up to MAX_WRONG_DIGITS characters may be no hex digits. Hex has no padding.
    """
    packed = "".join(text.split())
    wrong = sum(character not in "0123456789abcdefABCDEF" for character in packed)
    return not packed.endswith("=") and wrong <= MAX_WRONG_DIGITS


def _hex(text: str) -> bytes:
    found = read_literal(text, form="hex")
    if found is None:
        found = read_dump(text, form="hex")
    return read_hex(text, is_named=True) if found is None else found


def _named(form: str, read: Callable[[str], bytes | None]) -> Callable[[str], bytes]:
    def of_form(text: str) -> bytes:
        found = read(text)
        if found is None:
            raise PastedTextError(f"the input is no {form}", 0)
        return found

    return of_form


_BY_FORM: Final[dict[str, Callable[[str], bytes]]] = {
    "auto": _auto,
    "hex": _hex,
    "dump": _named("dump", lambda text: read_dump(text, form="dump")),
    "words": read_words,
    "decimal": read_decimal,
    "literal": _named("literal", lambda text: read_literal(text, form="literal")),
    "base64": lambda text: read_base64(text, is_named=True),
}


def _place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return f"line {line}, column {column}: "
