"""Runs the handlers of `run` and `run_batches` in threads, until a signal stops them.

Python calls signal handlers in the main thread only, and the event loop has another thread. So the
thread that calls `run` handles the signals, if it is the main thread.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Protocol, cast

from ..client.consumer.group_consumer import GroupConsumer
from ..client.consumer.share_consumer import ShareConsumer
from ..client.processing.run_summary import RunSummary, ShareRunSummary
from ..client.processing.settings import ShareRunArguments, run_settings, share_run_settings
from ..wire.errors import ConfigurationError
from .loop_thread import LoopThread

__all__ = ["run_share_until_stopped", "run_until_stopped"]

#: The signal by which service managers end a service, as in the asyncio client.
_DEFAULT: Final = (signal.SIGTERM,)


class _Stoppable(Protocol):
    """A consumer whose `run` stops at a signal."""

    def _on_stop_signal(self) -> None: ...


def run_until_stopped(
    thread: LoopThread,
    consumer: GroupConsumer[Any, Any, Any],
    run: Callable[..., Any],
    handler: Callable[..., Any],
    transactional_id: str | None,
    settings: dict[str, Any],
) -> RunSummary:
    """Calls `run`, a method of `consumer`, in the event loop, and waits for its end.

    `settings` are the other arguments of `run`. Raises ConfigurationError for invalid settings, and
    if signals are to be handled outside of the main thread.
    """
    signals = run_settings(transactional_id, _known(settings)).stop_on
    arguments = {**settings, "transactional_id": transactional_id}
    summary: RunSummary = _run(thread, consumer, run, handler, signals, arguments)
    return summary


def run_share_until_stopped(
    thread: LoopThread,
    consumer: ShareConsumer[Any, Any, Any],
    handler: Callable[..., Any],
    settings: dict[str, Any],
) -> ShareRunSummary:
    """Calls `run` of a share consumer in the event loop, as `run_until_stopped` does."""
    signals = share_run_settings(cast("ShareRunArguments", settings)).stop_on
    summary: ShareRunSummary = _run(thread, consumer, consumer.run, handler, signals, settings)
    return summary


def _run(
    thread: LoopThread,
    consumer: _Stoppable,
    run: Callable[..., Any],
    handler: Callable[..., Any],
    signals: tuple[int, ...] | None,
    arguments: dict[str, Any],
) -> Any:
    def stop() -> None:
        thread.loop.call_soon_threadsafe(consumer._on_stop_signal)

    with _signals_handled(signals, stop):
        return thread.call(run, handler, undo=None, **{**arguments, "stop_on": ()})


def _known(settings: dict[str, Any]) -> Any:
    return {name: value for name, value in settings.items() if name != "batch_size"}


@contextmanager
def _signals_handled(signals: tuple[int, ...] | None, stop: Callable[[], None]) -> Iterator[None]:
    """Calls `stop` at each of `signals`, until the end of the block.

    If `signals` is None, the signal is SIGTERM, or no signal outside of the main thread and if
    SIGTERM has a handler. Raises ConfigurationError if `signals` cannot be handled.
    """
    previous: dict[int, Any] = {}
    is_main_thread = threading.current_thread() is threading.main_thread()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop()

    try:
        for each in _chosen(signals, is_main_thread=is_main_thread):
            try:
                before = signal.signal(each, on_signal)
            except (OSError, ValueError) as error:
                name = signal.Signals(each).name
                raise ConfigurationError(f"stop_on: {name} cannot be handled: {error}") from error
            previous[each] = before
        yield
    finally:
        for number, handler in previous.items():
            if handler is not None:  # None is a handler that Python has not set
                signal.signal(number, handler)


def _chosen(signals: Collection[int] | None, *, is_main_thread: bool) -> Collection[int]:
    if signals is None:
        return [
            each for each in _DEFAULT if is_main_thread and signal.getsignal(each) is signal.SIG_DFL
        ]
    if signals and not is_main_thread:
        raise ConfigurationError("stop_on: only the main thread handles signals; set stop_on=()")
    return signals
