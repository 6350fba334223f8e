"""Spreads work over processes, each with the Java programs that it needs.

Knows nothing of the work: a function that takes a task, and asks `reference` for the program of a
release.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing.connection import wait
from typing import TypeVar

from .process import Reference

__all__ = ["in_parallel", "reference"]

T = TypeVar("T")
R = TypeVar("R")


@cache
def reference(release: str) -> Reference:
    """Returns the Java program of `release` of this process; it ends with the process."""
    started = Reference(release)
    atexit.register(started.close)
    return started


def in_parallel(
    work: Callable[[T], R], tasks: Iterable[T], *, processes: int | None = None
) -> Iterator[R]:
    """Yields the result of `work` on each task, as they come; by default a process a processor.

    `work`, tasks and results must be such as pickle takes.
    """
    # Not forked: a fork would take over half of a parent with threads.
    context = multiprocessing.get_context("spawn")
    count = processes or os.cpu_count() or 1
    with ProcessPoolExecutor(count, context, _end_with_parent) as pool:
        futures = [pool.submit(work, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """See to it that this worker ends when its parent was killed, and its Java programs with it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch(sentinel: int) -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, args=[parent.sentinel], daemon=True).start()
