"""Defines `Uuid`, Kafka's 16-byte id, which prints as base64url without padding, as in Kafka."""

from __future__ import annotations

import base64
import os
import re
from typing import Final

from .errors import ConfigurationError

__all__ = ["ZERO_UUID", "Uuid"]

_CHARACTERS: Final = 22
_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")


class Uuid(bytes):
    """A 16-byte id, such as a topic id or a directory id. A Uuid equals its bytes.

    The constructor does not check the length, because that would slow down decoding. Encoding a
    message raises EncodeError for lengths other than 16.
    """

    __slots__ = ()

    @classmethod
    def random(cls) -> Uuid:
        """Returns a random (version 4) id. As in Kafka, its text never begins with a dash."""
        while True:
            raw = bytearray(os.urandom(16))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            made = cls(raw)
            if not str(made).startswith("-"):
                return made

    @classmethod
    def parse(cls, text: str) -> Uuid:
        """Parses 22 characters of base64url, with or without the padding `==`.

        Ignores the last four bits, which belong to no byte, as Java's `Uuid.fromString` does.
        Raises ConfigurationError for other text.
        """
        given: object = text
        if not isinstance(given, str) or not _TEXT.fullmatch(text):
            raise ConfigurationError(
                f"{text!r} is no Kafka uuid: write 22 characters of base64url without padding"
            )
        return cls(base64.urlsafe_b64decode(text[:_CHARACTERS] + "=="))

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self).rstrip(b"=").decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid.parse({str(self)!r})"


#: The id of 16 zero bytes, which means "none".
ZERO_UUID: Final = Uuid(16)
