"""Reads the escapes of delimiters and separators on the command line."""

from __future__ import annotations

import argparse
import re
from typing import Final

__all__ = ["ESCAPES", "delimiter", "header", "separator"]

#: The letters after a backslash, in delimiters and formats.
ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_TOKEN: Final = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)


def delimiter(text: str) -> bytes:
    """Returns the bytes of a delimiter; `\\n`, `\\r`, `\\t`, `\\0`, `\\\\` and `\\xHH` are escapes.

    Raises ArgumentTypeError for empty text and for other escapes.
    """
    if not text:
        raise argparse.ArgumentTypeError(
            "a delimiter must not be empty; --whole sends each file as one record"
        )
    return separator(text)


def separator(text: str) -> bytes:
    """Returns the bytes of a delimiter as `delimiter` does; empty text stands for no bytes."""

    def unescaped(token: re.Match[bytes]) -> bytes:
        if token[1]:
            return bytes.fromhex(token[1].decode())
        found = ESCAPES.get(token[2].decode("latin-1"))
        if found is None:
            raise argparse.ArgumentTypeError(f"{text!r} has an unknown escape")
        return found

    return _TOKEN.sub(unescaped, text.encode("utf-8", "surrogateescape"))


def header(text: str) -> tuple[str, bytes | None]:
    """Returns a header from `NAME=VALUE`, or with a null value from `NAME`.

    Raises ArgumentTypeError if the name is empty.
    """
    name, equals, value = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return name, value.encode("utf-8", "surrogateescape") if equals else None
