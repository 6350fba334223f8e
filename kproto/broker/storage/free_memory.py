"""Returns free memory of the process to the operating system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

__all__ = ["return_free_memory"]


def return_free_memory() -> None:
    """Returns free memory to the operating system, if the C library can do this.

    glibc keeps the memory of freed record batches for later allocations, because most batches are
    smaller than its threshold for separate mappings: after the deletion of topics with 300 MB, the
    process keeps about 220 MB. `malloc_trim` returns this memory. Other C libraries return free
    memory by themselves, or have no such function.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc; on Windows, None is no library
        return None
    return trim
