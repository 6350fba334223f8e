"""Wraps the user's handler and its `decode` function."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

from ...records import Record
from ...wire.errors import ConfigurationError
from .settings import Stop

__all__ = ["NotAsyncError", "RecordHandler", "UndecodableError", "record_handler"]

RecordHandler: TypeAlias = Callable[[Record], Awaitable[object]]


class UndecodableError(Exception):
    """Raised when `decode` refuses a record."""


def record_handler(
    handler: Callable[[Any], Awaitable[object]], decode: Callable[[Record], Any] | None
) -> RecordHandler:
    """Returns the function to call with each record.

    Raises ConfigurationError for a handler that cannot be called. If the handler turns out to be a
    plain function, the returned function raises NotAsyncError.
    """
    if not callable(handler):
        raise ConfigurationError(f"handler is {handler!r:.80}; it must be an async function")
    if decode is not None and not callable(decode):
        raise ConfigurationError(f"decode is {decode!r:.80}; it must be a function, or None")
    if decode is not None and inspect.iscoroutinefunction(decode):
        raise ConfigurationError("decode is an async function; it must be a plain one")
    checked_handler = (
        handler if inspect.iscoroutinefunction(handler) else partial(_call_checked, handler)
    )
    if decode is None:
        return checked_handler
    return partial(_handle_decoded, checked_handler, decode)


async def _call_checked(handler: Callable[[Any], Awaitable[object]], argument: object) -> None:
    answer = handler(argument)
    if not inspect.isawaitable(answer):
        raise NotAsyncError(
            f"handler {handler!r:.80} is a plain function: make it `async def`; what blocks in it "
            "goes into `await asyncio.to_thread(...)`"
        )
    await answer


class NotAsyncError(ConfigurationError):
    """Raised, without a retry, if the handler is a plain function."""


async def _handle_decoded(
    handler: Callable[[Any], Awaitable[object]], decode: Callable[[Record], Any], record: Record
) -> None:
    try:
        argument = decode(record)
    except Stop:
        raise
    except Exception as error:
        raise UndecodableError from error
    await handler(argument)
