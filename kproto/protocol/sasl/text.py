"""Encodes, decodes and prepares text in SASL: UTF-8 and SASLprep (RFC 4013).

The text may be a password, so no error shows any part of it: neither in its message, nor in a
chained exception, because Python's Unicode errors hold the whole string.
"""

from __future__ import annotations

import stringprep
from contextlib import suppress
from typing import Final

# SASLprep uses Unicode 3.2, as the tables of stringprep do: its normal form must be of 3.2, too.
from unicodedata import ucd_3_2_0 as unicode_3_2

from ...wire.buffers import octets
from ...wire.errors import AuthenticationError

__all__ = ["MAX_TOKEN_BYTES", "decode_text", "encode_text", "printable", "saslprep"]

#: Maximum size of a SASL token in bytes: Kafka's default of `sasl.server.max.receive.size`. Real
#: tokens have a few hundred bytes, so the maximum only limits the cost of a hostile peer.
MAX_TOKEN_BYTES: Final = 524_288

#: Maximum number of characters of a peer's own text that an error quotes.
_SHOWN: Final = 300

#: Prohibited output of RFC 4013, 2.3: a table of RFC 3454, and a description of its characters.
_PROHIBITED: Final = (
    (stringprep.in_table_c12, "a space other than U+0020"),
    (stringprep.in_table_c21_c22, "a control character"),
    (stringprep.in_table_c3, "a private-use character"),
    (stringprep.in_table_c4, "a non-character code point"),
    (stringprep.in_table_c5, "a surrogate"),
    (stringprep.in_table_c6, "a character inappropriate for plain text"),
    (stringprep.in_table_c7, "a character inappropriate for canonical representation"),
    (stringprep.in_table_c8, "a character that changes display properties"),
    (stringprep.in_table_c9, "a tagging character"),
)


def saslprep(text: str, what: str, *, stored: bool = False) -> str:
    """Prepares a user name or password for comparison by RFC 4013.

    `what` names the text in errors. With `stored` the text is a "stored string", and code points
    that Unicode 3.2 does not assign are refused; otherwise it is a "query", which may have such
    code points.

    Raises `AuthenticationError` for text that SASLprep prohibits, or that becomes empty.
    """
    mapped = "".join(
        " " if stringprep.in_table_c12(character) else character
        for character in text
        if not stringprep.in_table_b1(character)
    )
    prepared = unicode_3_2.normalize("NFKC", mapped)
    fault = _fault(prepared, stored=stored)
    if fault is not None:
        raise AuthenticationError(
            f"the {what} {fault}: choose another, or switch string preparation off on both sides"
        )
    return prepared


def encode_text(text: str, what: str) -> bytes:
    """Returns `text` in UTF-8; `what` names it in errors.

    Raises `AuthenticationError` for a lone surrogate, which UTF-8 cannot hold.
    """
    # Raised after the block, not inside, so that the Unicode error is not chained to it.
    with suppress(UnicodeEncodeError):
        return text.encode("utf-8")
    raise AuthenticationError(f"the {what} holds a lone surrogate, which has no UTF-8 form")


def decode_text(token: bytes, what: str) -> str:
    """Decodes a SASL token to text; `what` names the token in errors.

    Raises `AuthenticationError` for more than `MAX_TOKEN_BYTES`, and for bytes that are not UTF-8.
    """
    if len(token) > MAX_TOKEN_BYTES:
        raise AuthenticationError(
            f"{what} has {len(token)} bytes, more than the {MAX_TOKEN_BYTES} that are read"
        )
    with suppress(UnicodeDecodeError):
        return octets(token).decode("utf-8")
    raise AuthenticationError(f"{what} is not UTF-8")


def printable(text: str) -> str:
    """Returns received text for an error: truncated, with `?` for non-printable characters."""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return "".join(each if each.isprintable() else "?" for each in shown)


def _fault(prepared: str, *, stored: bool) -> str | None:
    """Returns the error text for prepared text; None if SASLprep allows the text."""
    if not prepared:
        return "is empty once prepared by SASLprep"
    for in_table, characters in _PROHIBITED:
        if any(map(in_table, prepared)):
            return f"holds {characters}, which SASLprep prohibits (RFC 4013, 2.3)"
    if stored and any(map(stringprep.in_table_a1, prepared)):
        return "holds a code point that Unicode 3.2 does not assign (RFC 4013, 2.5)"
    if not _bidirectional_text_is_whole(prepared):
        return "mixes directions of writing in a way that SASLprep prohibits (RFC 4013, 2.4)"
    return None


def _bidirectional_text_is_whole(prepared: str) -> bool:
    """Returns True if the text obeys RFC 3454, 6.

    Text with a right-to-left character must begin and end with a right-to-left character, and must
    have no left-to-right character.
    """
    if not any(map(stringprep.in_table_d1, prepared)):
        return True
    if any(map(stringprep.in_table_d2, prepared)):
        return False
    return stringprep.in_table_d1(prepared[0]) and stringprep.in_table_d1(prepared[-1])
