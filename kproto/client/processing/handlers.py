"""Wraps the user's handler and its `decode` function; `Stop`, by which a handler ends `run`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

from ...records import Record
from ...wire.errors import ConfigurationError, UnreadableRecordError

__all__ = [
    "UNREADABLE_HEADER",
    "NotAsyncError",
    "RecordHandler",
    "Stop",
    "UndecodableError",
    "UnreadableValue",
    "raise_unreadable",
    "record_handler",
    "unreadable_record",
]

#: The header of a dead letter whose value has the stored bytes of an unreadable record: "record",
#: "records" or "batch", as `UnreadableRecordError.content`.
UNREADABLE_HEADER: Final = "kproto.unreadable"

RecordHandler: TypeAlias = Callable[[Record], Awaitable[object]]


class Stop(Exception):  # noqa: N818 - as StopIteration it is no error
    """Raised by a handler to end `run`.

    Records in flight are finished, within `drain_timeout_ms`, and with `auto_commit` offsets are
    committed. The record for which the handler raised `Stop` is not processed, and is redelivered,
    unless `done` is True.
    """

    def __init__(self, *args: object, done: bool = False) -> None:
        self.done = done
        super().__init__(*args)


class UndecodableError(Exception):
    """Raised if `decode` raises an exception other than `Stop`; that exception is the cause."""


class UnreadableValue(bytes):
    """The stored bytes of an unreadable record, as the value of the record that takes its place."""

    error: UnreadableRecordError


def unreadable_record(error: UnreadableRecordError) -> Record:
    """Returns a record to be processed in place of an unreadable one, with its bytes as value.

    It has no key, and a header that names the content of the value.
    """
    value = UnreadableValue(error.raw)
    value.error = error
    return Record(
        error.record_offset,
        value=value,
        headers=[(UNREADABLE_HEADER, error.content.encode())],
        topic=error.topic or "",
        partition=-1 if error.partition is None else error.partition,
    )


async def raise_unreadable(handle: RecordHandler, record: Record) -> None:
    """Calls `handle`, but raises the UnreadableRecordError of a record of `unreadable_record`."""
    if isinstance(record.value, UnreadableValue):
        raise record.value.error
    await handle(record)


def record_handler(
    handler: Callable[[Any], Awaitable[object]], decode: Callable[[Record], Any] | None
) -> RecordHandler:
    """Returns the function to call with each record: it decodes the record and calls `handler`.

    Raises ConfigurationError if `handler` cannot be called, or if `decode` is no plain function. If
    the handler returns no awaitable, the returned function raises NotAsyncError.
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
            f"handler {handler!r:.80} is a plain function: make it `async def`, and call blocking "
            "code by `await asyncio.to_thread(...)`"
        )
    await answer


class NotAsyncError(ConfigurationError):
    """Raised if the handler returns no awaitable, like a plain function; is not retried."""


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
