"""Selects the event loops of a test run, for the option `--loop`.

`default` is asyncio's own event loop. `eager` is the same loop with `asyncio.eager_task_factory`,
which Python has since 3.12: a task runs at once until it first waits. `uvloop` is the event loop of
the package uvloop.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections.abc import Callable
from typing import Any, Final

import pytest

__all__ = ["LOOPS", "open_sockets", "pending_timers", "replaceable_loops", "run_tests_on"]

#: The values of `--loop`.
LOOPS: Final = ("default", "eager", "uvloop")

#: The classes of event loops whose method `time` a test can replace.
_replaceable: Final[list[type]] = [asyncio.BaseEventLoop]


def run_tests_on(name: str) -> None:
    """Makes asyncio, and therefore pytest-asyncio, create only event loops of the kind `name`.

    `name` is one of `LOOPS`.

    Replaces `new_event_loop` for the rest of the process, because event loop policies are
    deprecated since Python 3.14. Raises `pytest.UsageError` if this Python lacks the event loop.
    """
    if name == "default":
        return
    make = _eager_loops() if name == "eager" else _uvloops()
    events.new_event_loop = make
    asyncio.new_event_loop = make


def _eager_loops() -> Callable[[], asyncio.AbstractEventLoop]:
    factory: Any = getattr(asyncio, "eager_task_factory", None)
    if factory is None:
        raise pytest.UsageError("--loop=eager needs Python 3.12 or newer")
    make = events.new_event_loop

    def make_eager() -> asyncio.AbstractEventLoop:
        loop = make()
        loop.set_task_factory(factory)
        return loop

    return make_eager


def _uvloops() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        from .steady_uvloop import SteadyUvloop
    except ImportError:
        raise pytest.UsageError("--loop=uvloop needs the package uvloop") from None
    _replaceable.append(SteadyUvloop)
    return SteadyUvloop


def replaceable_loops() -> list[type]:
    """Returns the event loop classes whose method `time` a test can replace."""
    return _replaceable


def pending_timers(loop: Any) -> list[object]:
    """Returns the timers of `loop` that have neither called back nor been cancelled."""
    if isinstance(loop, asyncio.BaseEventLoop):
        scheduled: list[asyncio.TimerHandle] = loop._scheduled  # type: ignore[attr-defined]
        return [handle for handle in scheduled if not handle.cancelled()]
    return list(loop.pending_timers())


def open_sockets(loop: Any) -> list[object]:
    """Returns the sockets that `loop` watches, except the loop's own sockets.

    uvloop does not list its sockets. For an event loop of uvloop, returns the open transports that
    `create_connection` made.
    """
    if isinstance(loop, asyncio.BaseEventLoop):
        own = loop._ssock.fileno()  # type: ignore[attr-defined]
        keys = loop._selector.get_map().values()  # type: ignore[attr-defined]
        return [key for key in keys if key.fd != own]
    return list(loop.open_transports())
