"""Tells whether kproto runs compiled by mypyc."""

from __future__ import annotations

from typing import Final

__all__ = ["__compiled__"]


def _probe() -> None:
    """Is a function of Python, or a built-in function if this module is compiled."""


#: True if mypyc has compiled kproto's codecs, False if Python interprets them.
__compiled__: Final = type(_probe).__name__ != "function"
