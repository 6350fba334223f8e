"""Defines the name of mypyc that compiled modules use; without mypyc it has no effect.

Other modules import `i64` for type checkers only, because annotations are not evaluated when the
program runs. This module itself is not compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["i64"]

if TYPE_CHECKING:
    MYPY = False  # mypy takes it for true; pyproject.toml tells pyright that it is false
    if MYPY:
        from mypy_extensions import i64 as i64
    else:  # for pyright, whose stub of `i64` does not accept an `int`
        i64 = int
else:
    i64 = int
