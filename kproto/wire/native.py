"""Defines the names of mypyc that compiled modules use; without mypyc they have no effect.

Other modules import `i64` for type checkers only, because annotations are not evaluated when the
program runs. This module itself is not compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable

    MYPY = False  # mypy takes it for true; pyproject.toml tells pyright that it is false
    if MYPY:
        from mypy_extensions import i64 as i64
        from mypy_extensions import mypyc_attr as mypyc_attr
    else:  # for pyright, whose stub of `i64` does not accept an `int`
        i64 = int

        def mypyc_attr(**attributes: object) -> Callable[[T], T]:
            """Returns a decorator that returns the class unchanged."""
            return lambda kind: kind

else:

    def mypyc_attr(**attributes):  # noqa: ANN003, ANN201
        """Returns a decorator that returns the class unchanged."""
        return lambda kind: kind


__all__ = ["i64", "mypyc_attr"]
