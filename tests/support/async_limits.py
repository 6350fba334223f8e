"""Limits the time of async tests, and fails a test that leaves a task behind."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["limit_async_tests"]


def limit_async_tests(items: Iterable[pytest.Item], seconds: float) -> None:
    """Makes each async test in `items` fail after `seconds`, or if it leaves a task running.

    Tasks that fixtures started before the test do not count. Connections of an embedded broker do
    not count either: they end with the broker, which is a fixture.
    """
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.obj = _limited(item.obj, seconds)


def _limited(test: Any, seconds: float) -> Any:
    @functools.wraps(test)
    async def limited(*args: Any, **kwargs: Any) -> None:
        before = asyncio.all_tasks()
        async with asyncio.timeout(seconds):
            await test(*args, **kwargs)
        left = [task for task in asyncio.all_tasks() - before if not _is_excused(task)]
        assert not left, f"still running: {left}"

    return limited


def _is_excused(task: asyncio.Task[Any]) -> bool:
    name = getattr(task.get_coro(), "__qualname__", "")
    return task.done() or name.startswith(("Session.", "_Acceptor."))
