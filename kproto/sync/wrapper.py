"""`Wrapper`, the base class of all blocking objects: makes the calls of an asyncio object."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar

from ..wire.errors import ConfigurationError
from .client_binding import ClientBinding
from .loop_thread import fork_count

__all__ = ["InlineWrapper", "Wrapper"]

W = TypeVar("W")
T = TypeVar("T")
P = ParamSpec("P")


class Wrapper(Generic[W]):
    """Makes the calls of an asyncio object in the event loop's thread, and waits for them.

    `create` creates the object again in a child process after a fork; None if that is impossible,
    because the object has state that belongs to the parent.
    """

    __slots__ = ("__weakref__", "_binding", "_create", "_forks", "_object")

    def __init__(
        self, binding: ClientBinding, wrapped: W, create: Callable[[], W] | None = None
    ) -> None:
        self._binding = binding
        self._object = wrapped
        self._create = create
        self._forks = fork_count()

    @property
    def _wrapped(self) -> W:
        """The asyncio object of this process.

        Raises ConfigurationError if the object was created before a fork, and cannot be created
        again.
        """
        if self._forks != fork_count():
            if self._create is None or not self._is_renewable():
                raise ConfigurationError(
                    f"this {type(self).__name__} was used before the process was forked, and "
                    "belongs to the parent process: create another one in the child process"
                )
            self._binding.keep(self._object)
            self._object = self._create()
            self._forks = fork_count()
        return self._object

    @property
    def _is_inherited(self) -> bool:
        """True in a child process, if the object belongs to the parent process."""
        return self._forks != fork_count()

    def _is_renewable(self) -> bool:
        """Returns True if the object may be created again in a child process."""
        return True

    def _call(
        self,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Runs a coroutine function in the event loop; returns its result, or raises its error."""
        result: T = self._binding.thread().call(function, *args, undo=None, **kwargs)
        return result

    def _call_plain(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a plain function in the event loop, so that no task runs at the same time."""
        if self._binding.is_closed:
            return function(*args, **kwargs)  # no task runs any more
        result: T = self._binding.thread().call_plain(function, *args, **kwargs)
        return result

    def _read(self, function: Callable[[], T]) -> T:
        """Returns the value of a property; reads it in the event loop if the client uses one."""
        binding = self._binding
        if not binding.is_bound:
            return function()
        result: T = binding.thread().call_plain(function)
        return result

    def _end(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Awaits `close()`, which closes the object.

        Does nothing if the client is closed, because that has closed the object too, and in a child
        process for an object of the parent process.
        """
        if not self._is_inherited and self._binding.is_bound:
            self._call(close)


class InlineWrapper(Generic[W]):
    """Makes the calls of an asyncio object that never waits, in the thread of the caller."""

    __slots__ = ("_wrapped",)

    def __init__(self, wrapped: W) -> None:
        self._wrapped = wrapped

    def _call(
        self,
        function: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Runs a coroutine function that never waits; returns its result, or raises its error."""
        coroutine = function(*args, **kwargs)
        try:
            coroutine.send(None)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            coroutine.close()
        raise RuntimeError(f"{function!r:.80} waits, and needs an event loop")
