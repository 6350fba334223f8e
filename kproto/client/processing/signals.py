"""Handles the signals that stop `run` calls, and restores the replaced handlers after the last run.

Several runs in one event loop share a handler, which stops all of them.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from ...wire.errors import ConfigurationError

__all__ = ["signals_handled"]


class _SignalHandlers(NamedTuple):
    """The functions to call at a signal, and the previous handler of the signal."""

    callbacks: list[Callable[[], None]]
    previous: Any


#: The handlers that this module has set, by event loop and signal number.
_handlers: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, _SignalHandlers]]] = (
    WeakKeyDictionary()
)

#: The signal by which service managers end a service; for Ctrl-C `asyncio.run` cancels its task.
_DEFAULT: Final = (signal.SIGTERM,)


@contextmanager
def signals_handled(
    signals: tuple[int, ...] | None, callback: Callable[[], None]
) -> Iterator[None]:
    """Calls `callback` in the event loop at each of `signals`, until the end of the block.

    If `signals` is None, the signal is SIGTERM, or no signal if SIGTERM cannot be handled or has
    another handler. Raises ConfigurationError if `signals` cannot be handled: outside of the main
    thread, in an event loop that handles no signals, for a signal such as SIGKILL, or if the event
    loop has a handler of the user, which could not be restored.
    """
    loop = asyncio.get_running_loop()
    is_main_thread = threading.current_thread() is threading.main_thread()
    if signals is None:
        signals = tuple(
            each for each in _DEFAULT if is_main_thread and _has_default_handler(loop, each)
        )
    elif signals and not is_main_thread:
        raise ConfigurationError("stop_on: only the main thread handles signals; set stop_on=()")
    registered: list[int] = []
    try:
        for each in signals:
            _register(loop, each, callback)
            registered.append(each)
        yield
    finally:
        for each in registered:
            _unregister(loop, each, callback)


def _has_default_handler(loop: asyncio.AbstractEventLoop, number: int) -> bool:
    if number in _handlers.get(loop, {}):
        return True
    return signal.getsignal(number) is signal.SIG_DFL and _can_handle(loop)


def _can_handle(loop: asyncio.AbstractEventLoop) -> bool:
    # Event loops on Windows, and some third-party ones, do not implement `add_signal_handler`.
    return type(loop).add_signal_handler is not asyncio.AbstractEventLoop.add_signal_handler


def _register(loop: asyncio.AbstractEventLoop, number: int, callback: Callable[[], None]) -> None:
    handlers = _handlers.setdefault(loop, {})
    if number in handlers:
        handlers[number].callbacks.append(callback)
        return
    previous = signal.getsignal(number)
    name = signal.Signals(number).name
    if _is_of_loop(previous, loop):
        raise ConfigurationError(
            f"stop_on: the event loop has a handler of {name} already; cancel the task of run() "
            "in that handler, and set stop_on=()"
        )
    try:
        loop.add_signal_handler(number, _run_callbacks, handlers, number)
    except (NotImplementedError, ValueError, RuntimeError) as error:
        raise ConfigurationError(f"stop_on: {name} cannot be handled here: {error}") from error
    handlers[number] = _SignalHandlers([callback], previous)


def _is_of_loop(handler: object, loop: asyncio.AbstractEventLoop) -> bool:
    """Returns True if `loop` has set `handler` in its own method `add_signal_handler`.

    asyncio sets a function that does nothing; uvloop sets a method of the loop.
    """
    is_of_asyncio = getattr(handler, "__name__", "") == "_sighandler_noop"
    return is_of_asyncio or getattr(handler, "__self__", None) is loop


def _unregister(loop: asyncio.AbstractEventLoop, number: int, callback: Callable[[], None]) -> None:
    handlers = _handlers[loop]
    handlers[number].callbacks.remove(callback)
    if not handlers[number].callbacks:
        previous = handlers.pop(number).previous
        loop.remove_signal_handler(number)
        if previous is not None:  # None is a handler that was not set by Python
            signal.signal(number, previous)


def _run_callbacks(handlers: dict[int, _SignalHandlers], number: int) -> None:
    if number in handlers:
        for callback in [*handlers[number].callbacks]:
            callback()
