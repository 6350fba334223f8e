"""Turns the plain functions of a program into coroutine functions that run them in threads.

These are handlers of `run`, rebalance callbacks and operations of `retrying`: each may block, and
may call methods of the blocking objects.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeAlias, TypeVar, cast

from ..client.metadata.cluster import TopicPartition
from ..client.processing.handlers import check_handler, decoded
from ..wire.errors import ConfigurationError
from .loop_thread import worker_threads
from .worker_threads import run_in_thread

__all__ = ["RebalanceCallback", "threaded", "threaded_callback", "threaded_handler"]

T = TypeVar("T")

#: A plain function of a list of partitions, in ascending order; it runs in a thread.
RebalanceCallback: TypeAlias = Callable[[list[TopicPartition]], object]


def threaded(name: str, function: Callable[..., T]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Returns a coroutine function that calls `function` in a thread.

    Raises ConfigurationError if `function` is no plain function; `name` names it in the text.
    """
    if not callable(function):
        raise ConfigurationError(f"{name} is {function!r:.80}; it must be a function")
    given: Any = function  # its type stays that of a plain function
    is_async = inspect.iscoroutinefunction(given) or inspect.isasyncgenfunction(given)
    if is_async or inspect.isgeneratorfunction(given):
        kind = "an async function" if is_async else "a generator"
        raise ConfigurationError(
            f"{name} is {kind}: kproto.sync calls plain functions, in threads; kproto.Client takes "
            "async functions"
        )

    checked = _Checked(name, function)

    async def call(*args: Any) -> T:
        return await run_in_thread(worker_threads(), checked, *args)

    return call


class _Checked(Generic[T]):
    """Calls a function; raises ConfigurationError if it returns a coroutine."""

    def __init__(self, name: str, function: Callable[..., T]) -> None:
        self._name = name
        self._function = function

    def __call__(self, *args: Any) -> T:
        result = self._function(*args)
        if inspect.iscoroutine(result):
            result.close()
            raise ConfigurationError(
                f"{self!r} has returned a coroutine: kproto.sync calls plain functions"
            )
        return result

    def __repr__(self) -> str:
        return f"{self._name} {self._function!r:.80}"


def threaded_callback(
    name: str, callback: RebalanceCallback | None
) -> Callable[[list[TopicPartition]], Coroutine[Any, Any, object]] | None:
    """Returns a rebalance callback that runs in a thread; None for None."""
    return None if callback is None else threaded(name, callback)


def threaded_handler(
    handler: Callable[..., T],
    decode: Callable[[Any], Any] | None,
    wrap: Callable[[Any], object] | None,
) -> Callable[..., Coroutine[Any, Any, T]]:
    """Returns a handler that decodes its record and runs in a thread.

    `wrap` returns the blocking form of the transaction that is the second argument; None for a
    handler without transactions. Raises ConfigurationError for invalid functions.
    """
    check_handler(handler, decode)
    call = threaded("handler", cast(Callable[..., T], _Handler(handler, decode, wrap)))
    threaded("handler", handler)  # checks that it is a plain function
    return call


class _Handler:
    """Decodes a record and calls the handler, both in the same thread."""

    def __init__(
        self,
        handler: Callable[..., Any],
        decode: Callable[[Any], Any] | None,
        wrap: Callable[[Any], object] | None,
    ) -> None:
        self._handler = handler
        self._decode = decode
        self._wrap = wrap

    def __call__(self, argument: Any, *transaction: Any) -> Any:
        if self._decode is not None:
            argument = decoded(self._decode, argument)
        if self._wrap is None:
            return self._handler(argument)
        return self._handler(argument, self._wrap(*transaction))

    def __repr__(self) -> str:
        return repr(self._handler)
