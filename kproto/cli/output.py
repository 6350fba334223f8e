"""Writes bytes to standard output."""

from __future__ import annotations

import sys

__all__ = ["write_all"]


def write_all(data: bytes) -> None:
    """Writes all of `data`; with PYTHONUNBUFFERED a single write may write only a part."""
    left = memoryview(data)
    while left:
        left = left[sys.stdout.buffer.write(left) or 0 :]
