"""`ClientWrapper`: opens and closes a client, and creates its producers and consumers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from ..client.client import Client
from ..unclosed import finalize, warn_unclosed
from .client_binding import ClientBinding
from .wrapper import Wrapper

__all__ = ["ClientWrapper"]

T = TypeVar("T")


class ClientWrapper(Wrapper[Client]):
    """Makes the calls of a client, and owns its binding to the event loop's thread."""

    __slots__ = ()

    def _bind(self, create: Callable[[], Client]) -> None:
        """Creates the client by `create`; a child process calls it again after a fork."""
        binding = ClientBinding(create)
        Wrapper.__init__(self, binding, binding.client)

    @property
    def _wrapped(self) -> Client:
        return self._binding.client

    def __enter__(self) -> Self:
        try:
            self._call(self._binding.open)
        finally:
            self._binding.after_close()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close(partial(self._wrapped.__aexit__, kind, error, traceback))

    def _close(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Awaits `close()`, then ends the event loop's thread if no other client is open."""
        binding = self._binding
        try:
            if binding.is_bound:
                self._call(binding.close_and_unbind, close)
        finally:
            binding.after_close()

    def _create_part(self, create: Callable[[Client], T]) -> tuple[T, Callable[[], T]]:
        """Returns a producer or consumer of the client, and the function that creates it again.

        Raises ConfigurationError once the client is closed.
        """
        self._binding.check_open()

        def create_now() -> T:
            return self._read(lambda: create(self._binding.client))

        return create_now(), create_now

    def __del__(self, _finalize: Callable[[Callable[[], None]], None] = finalize) -> None:
        _finalize(self._warn_if_open)

    def _warn_if_open(self) -> None:
        binding: ClientBinding | None = getattr(self, "_binding", None)  # __init__ may have failed
        if binding is not None and binding.is_bound and not binding.is_closing:
            binding.close_in_background()
            warn_unclosed("a client", self)
