"""Distributes work over processes, each with the Java programs that it needs.

The work is a function that takes a task, and calls `reference` for the program of a release.
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

from .process import KafkaJavaProgram

__all__ = ["in_parallel", "reference"]

T = TypeVar("T")
R = TypeVar("R")


@cache
def reference(release: str) -> KafkaJavaProgram:
    """Returns this process's Java program for `release`; the program ends with the process."""
    started = KafkaJavaProgram(release)
    atexit.register(started.close)
    return started


def in_parallel(
    work: Callable[[T], R], tasks: Iterable[T], *, processes: int | None = None
) -> Iterator[R]:
    """Yields the results of `work` for the tasks, in order of completion.

    Uses one process per processor by default. `work`, tasks and results must be picklable.
    """
    # Not forked, because a fork of a process with threads may copy inconsistent state.
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
    """Makes this process and its Java programs end when the parent process ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch(sentinel: int) -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, args=[parent.sentinel], daemon=True).start()
