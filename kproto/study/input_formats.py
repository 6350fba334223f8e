"""Parses bytes as users enter them: hex digits, a dump, a literal, a list, base64 or raw bytes.

Detects the form by default. Raises ConfigurationError if the whole input is not in one form, or if
it may have two forms with different bytes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Final

from ..wire.errors import ConfigurationError
from .hex_dumps import MAX_DUMPED_BYTES, read_dump, read_words
from .pasted_text import (
    PastedTextError,
    read_base64,
    read_decimal,
    read_hex,
    read_list,
    read_literal,
    without_surroundings,
)

__all__ = ["FORMS", "MAX_DUMPED_BYTES", "read_bytes"]

FORMS: Final = ("auto", "hex", "dump", "words", "decimal", "literal", "base64", "binary")


#: See `_is_hex_like`: of random base64 of this length, less than one in 10,000 looks like hex.
LEAST_HEX_LIKE: Final = 16
MAX_WRONG_DIGITS: Final = 2

#: Byte order marks, with the encodings that they mark; PowerShell writes files in UTF-16.
_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def read_bytes(data: bytes, form: str = "auto") -> bytes:
    """Returns the bytes that `data` encodes; `form` is one of `FORMS`.

    `auto` returns input that is no text unchanged. Of text it accepts the form that the text must
    have; the documentation has a table of the forms (docs/how-to/decode.md). Full-width digits and
    other compatibility characters of Unicode count as their ASCII characters. Raises
    ConfigurationError, with line and column, for text that has no form, is broken, or may have two
    forms.
    """
    if form not in FORMS:
        raise ConfigurationError(f"form is {form!r}; it is one of {', '.join(FORMS)}")
    if form == "binary":
        return data
    text = _text(data)
    if text is None:
        if form == "auto":
            return data
        raise ConfigurationError(f"the input is no text, so it is not {form}")
    text = without_surroundings(text)
    try:
        return _BY_FORM[form](text)
    except PastedTextError as error:
        raise ConfigurationError(f"{_place(text, error.at)}{error}") from None


def _text(data: bytes) -> str | None:
    """Returns the input as text in ASCII; None if it is no text."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if encoding == "utf-16" and not (text and text.isascii()):
        return None  # binary that begins with the same two bytes
    is_text = all(character.isprintable() or character in "\r\n\t" for character in text)
    return text if is_text else None


def _auto(text: str) -> bytes:
    for read in (read_literal, read_list, read_dump):
        found = read(text)
        if found is not None:
            return found
    try:
        return read_hex(text)
    except PastedTextError as no_hex:
        if no_hex.at is None:
            raise
        try:
            found = read_base64(text)
        except PastedTextError:
            found = None
        if found is None or _is_hex_like(text):
            raise PastedTextError(
                f"{no_hex}, and the input is no dump, no list and no base64; choose the form "
                "binary for raw bytes",
                no_hex.at,
            ) from None
        return found


def _is_hex_like(text: str) -> bool:
    """Returns True for hex digits, of which base64 would make other bytes.

    Up to MAX_WRONG_DIGITS of at least LEAST_HEX_LIKE characters may be none: such a text is more
    likely hex with a mistake than base64.
    """
    packed = "".join(text.split())
    wrong = sum(character not in "0123456789abcdefABCDEF" for character in packed)
    return not wrong or (len(packed) >= LEAST_HEX_LIKE and wrong <= MAX_WRONG_DIGITS)


def _hex(text: str) -> bytes:
    found = read_literal(text)
    if found is None:
        found = read_dump(text, form="hex")
    return read_hex(text, is_named=True) if found is None else found


def _named(form: str, read: Callable[[str], bytes | None]) -> Callable[[str], bytes]:
    def of_form(text: str) -> bytes:
        found = read(text)
        if found is None:
            raise PastedTextError(f"the input is no {form}")
        return found

    return of_form


_BY_FORM: Final[dict[str, Callable[[str], bytes]]] = {
    "auto": _auto,
    "hex": _hex,
    "dump": _named("dump", lambda text: read_dump(text, form="dump")),
    "words": read_words,
    "decimal": read_decimal,
    "literal": _named("literal", read_literal),
    "base64": lambda text: read_base64(text, is_named=True),
}


def _place(text: str, at: int | None) -> str:
    if at is None:
        return ""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return f"line {line}, column {column}: "
