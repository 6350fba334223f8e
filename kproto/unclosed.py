"""`warn_unclosed`: warns about an object that Python destroys although it was not closed."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress

__all__ = ["call_in_loop", "finalize", "warn_unclosed"]


def warn_unclosed(what: str, source: object) -> None:
    """Warns with a ResourceWarning that `what` was not closed, and says how to close it.

    `source` is the object; with tracemalloc the warning shows where the program created it.
    The caller calls this function last, because the filter "error" turns the warning into an
    exception.
    """
    text = (
        f"{what} was not closed: use `async with`, or await its `close()`; with `kproto.sync` use "
        "`with`, or call `close()`"
    )
    warnings.warn(text, ResourceWarning, stacklevel=3, source=source)


def finalize(check: Callable[[], None]) -> None:
    """Calls `check`, which warns if an object was not closed.

    Ignores an exception of `check` if the interpreter exits and has begun to destroy its modules: a
    name in a destroyed module may be None. For this reason, each `__del__` has this function as a
    default argument instead of looking up the name `finalize`.
    """
    try:
        check()
    except Exception:
        if sys is not None and sys.meta_path is not None:
            raise


def call_in_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """Calls `function` soon in `loop`, from any thread; does nothing if the loop is closed.

    Each `__del__` can call it, because garbage collection runs `__del__` in any thread.
    """
    with suppress(RuntimeError):  # another thread may close the loop meanwhile
        loop.call_soon_threadsafe(function)
