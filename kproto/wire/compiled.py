"""Tells whether kproto runs compiled by mypyc."""

from __future__ import annotations

from typing import Final

__all__ = ["__compiled__"]


def _probe() -> None:
    """Does nothing; the type of this function shows whether mypyc has compiled the module."""


#: True if mypyc has compiled kproto's codecs, False if Python interprets them.
__compiled__: Final = type(_probe).__name__ != "function"
