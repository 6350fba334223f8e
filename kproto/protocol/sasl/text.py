"""Encodes and decodes text in SASL, which is UTF-8.

The text may be a password, so no error shows any part of it: neither in its message, nor in a
chained exception, because Python's Unicode errors hold the whole string.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ...wire.buffers import octets
from ...wire.errors import AuthenticationError

__all__ = ["MAX_TOKEN_BYTES", "decode_text", "encode_text", "printable"]

#: Maximum size of a SASL token in bytes: Kafka's default of `sasl.server.max.receive.size`. Real
#: tokens have a few hundred bytes, so the maximum only limits the cost of a hostile peer.
MAX_TOKEN_BYTES: Final = 524_288

#: Maximum number of characters of a peer's own text that an error quotes.
_SHOWN: Final = 300


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
