"""Counts the steps of Python code, to show that it does not grow with a number of objects."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["Steps", "counted_steps"]


class Steps:
    """The number of executed lines; each iteration of a loop or comprehension counts again."""

    count = 0


@contextmanager
def counted_steps(steps: Steps) -> Iterator[None]:
    """Adds to `steps` the number of lines that the block executes.

    Includes the lines of the functions that the block calls.
    """

    def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            steps.count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
