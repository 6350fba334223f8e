"""Prepares user names and passwords for comparison by SASLprep (RFC 4013).

No error shows any part of a text, which may be a password.
"""

from __future__ import annotations

import stringprep
from typing import Final

# SASLprep uses Unicode 3.2, as the tables of stringprep do: its normal form must be of 3.2, too.
from unicodedata import ucd_3_2_0 as unicode_3_2

from ...wire.errors import AuthenticationError

__all__ = ["saslprep"]

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
