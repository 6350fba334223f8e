"""Wraps the user's handler of records or of batches. Defines the exception `Stop`.

A handler raises `Stop` to end `run`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from ...records import Record
from ...wire.errors import ConfigurationError, UnreadableRecordError

__all__ = [
    "UNREADABLE_HEADER",
    "BatchFailures",
    "BatchHandler",
    "InvalidFailuresError",
    "NotAsyncError",
    "RecordHandler",
    "Stop",
    "UndecodableError",
    "UnreadableValue",
    "check_decode",
    "check_handler",
    "checked_awaitable",
    "decoded",
    "raise_unreadable",
    "record_handler",
    "unreadable_record",
    "with_codecs",
]

#: The name of the header that marks a dead letter whose value has the stored bytes of an unreadable
#: record. The value of the header is `UnreadableRecordError.content`: "record", "records" or
#: "batch".
UNREADABLE_HEADER: Final = "kproto.unreadable"

RecordHandler: TypeAlias = Callable[[Record], Awaitable[object]]

#: The result of a handler of batches: the error of each failed record, by the record's index in the
#: batch. None means that no record has failed.
BatchFailures: TypeAlias = Mapping[int, Exception] | None


class Stop(Exception):  # noqa: N818 - as StopIteration it is no error
    """Raised by a handler to end `run`.

    `run` waits up to `drain_timeout_ms` for the handlers of other records. With `auto_commit`,
    `run` then commits offsets. If `done` is True, the record of this handler counts as processed.
    Otherwise the record is redelivered.
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
    """Returns a record to be processed in place of the unreadable record of `error`.

    The returned record has the bytes of the unreadable record as its value, no key, and a header
    that names the content of the value.
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
    """Calls `handle` with the record.

    If `unreadable_record` made the record, does not call `handle`, but raises the record's
    UnreadableRecordError.
    """
    if isinstance(record.value, UnreadableValue):
        raise record.value.error
    await handle(record)


def check_handler(handler: object, decode: object) -> None:
    """Raises ConfigurationError if `handler` cannot be called, or `decode` is no plain function."""
    if not callable(handler):
        raise ConfigurationError(f"handler is {handler!r:.80}; it must be an async function")
    check_decode(decode)


def check_decode(decode: object) -> None:
    """Raises ConfigurationError if `decode` is neither None nor a plain function."""
    if decode is not None and not callable(decode):
        raise ConfigurationError(f"decode is {decode!r:.80}; it must be a function, or None")
    if decode is not None and inspect.iscoroutinefunction(decode):
        raise ConfigurationError("decode is an async function; it must be a plain one")


class _Decoder(Protocol):
    """The method of `codecs.record_decoder.RecordDecoder` that this module calls."""

    def decode_or_raise(self, record: Record) -> Record[Any, Any]: ...


def with_codecs(
    decoder: _Decoder | None, decode: Callable[[Any], Any] | None
) -> Callable[[Record], Any] | None:
    """Returns the function that makes a handler's argument of a polled record.

    The function applies the codecs of `decoder` first, then `decode`. None leaves the record as it
    is. Raises ConfigurationError if `decode` is no plain function.
    """
    if decoder is None:
        return decode
    if decode is None:
        return decoder.decode_or_raise
    check_decode(decode)
    return lambda record: decode(decoder.decode_or_raise(record))


def record_handler(
    handler: Callable[[Any], Awaitable[object]], decode: Callable[[Record], Any] | None
) -> RecordHandler:
    """Returns the function to call with each record: it decodes the record and calls `handler`.

    Raises ConfigurationError if `handler` cannot be called, or if `decode` is no plain function. If
    the handler returns no awaitable, the returned function raises NotAsyncError.
    """
    check_handler(handler, decode)
    checked_handler = (
        handler if inspect.iscoroutinefunction(handler) else partial(_call_checked, handler)
    )
    if decode is None:
        return checked_handler
    return partial(_handle_decoded, checked_handler, decode)


async def _call_checked(handler: Callable[[Any], Awaitable[object]], argument: object) -> None:
    await checked_awaitable(handler, handler(argument))


def checked_awaitable(handler: object, answer: Any) -> Awaitable[Any]:
    """Returns `answer`, the result of a call of `handler`.

    Raises NotAsyncError if `answer` is no awaitable.
    """
    if inspect.isasyncgen(answer):
        raise NotAsyncError(f"handler {handler!r:.80} is an async generator: it must not `yield`")
    if not isinstance(answer, Awaitable):
        raise NotAsyncError(
            f"handler {handler!r:.80} is a plain function: make it `async def`, and call blocking "
            "code by `await asyncio.to_thread(...)`"
        )
    return answer


class NotAsyncError(ConfigurationError):
    """Raised if a handler, such as a plain function, returns no awaitable; `run` then ends."""


def decoded(decode: Callable[[Record], Any], record: Record) -> Any:
    """Returns the handler's argument for a record.

    If `decode` raises another exception than `Stop`, raises UndecodableError.
    """
    try:
        return decode(record)
    except Stop:
        raise
    except Exception as error:
        raise UndecodableError from error


async def _handle_decoded(
    handler: Callable[[Any], Awaitable[object]], decode: Callable[[Record], Any], record: Record
) -> None:
    await handler(decoded(decode, record))


class InvalidFailuresError(ConfigurationError):
    """Raised if a handler of batches returns no `BatchFailures`; `run_batches` then ends."""


class BatchHandler:
    """Calls the handler of `run_batches` with up to `size` records at once.

    `decode` returns the record to pass to the handler in place of a polled record; None leaves the
    records as they are. Raises ConfigurationError if `handler` cannot be called.
    """

    __slots__ = ("_decode", "_handler", "size")

    def __init__(
        self,
        handler: Callable[..., Awaitable[BatchFailures]],
        size: int,
        decode: Callable[[Record], Any] | None = None,
    ) -> None:
        if not callable(handler):
            raise ConfigurationError(f"handler is {handler!r:.80}; it must be an async function")
        self._handler = handler
        self.size = size
        self._decode = decode

    async def __call__(self, records: list[Record]) -> list[tuple[Record, BaseException]]:
        """Calls the handler with `records`; returns the failed records with their errors.

        Unreadable and undecodable records fail, and are not passed to the handler. If the handler
        raises, all records that were passed to it have failed with that error.
        """
        failed: list[tuple[Record, BaseException]] = []
        readable: list[Record] = []
        arguments: list[Any] = []
        for record in records:
            retained = self._take_retained(record)
            if retained is not None:
                failed.append((record, retained))
            elif isinstance(record.value, UnreadableValue):
                failed.append((record, record.value.error))
            else:
                try:
                    argument = record if self._decode is None else decoded(self._decode, record)
                except UndecodableError as error:
                    failed.append((record, error))
                    continue
                readable.append(record)
                arguments.append(argument)
        if readable:
            try:
                failures = await self._failures(readable, arguments)
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - the pool decides by its type
                failures = dict.fromkeys(range(len(readable)), error)
            failed += [(readable[index], error) for index, error in failures.items()]
        return sorted(failed, key=lambda each: each[0].offset)

    def _take_retained(self, record: Record) -> BaseException | None:
        """Returns the error with which a record fails without a call of the handler, or None."""
        return None

    async def _failures(
        self, records: list[Record], arguments: list[Any]
    ) -> dict[int, BaseException]:
        """Calls the handler with `arguments`, the decoded records; returns errors by index."""
        return await self._checked_failures(self._handler(arguments), records)

    async def _checked_failures(
        self, answer: Awaitable[BatchFailures], records: list[Record]
    ) -> dict[int, BaseException]:
        """Awaits `answer` of the handler; returns the errors of the failed `records`, by index."""
        failures = await checked_awaitable(self._handler, answer)
        if failures is None:
            return {}
        if not isinstance(failures, Mapping) or not all(
            type(index) is int and 0 <= index < len(records) and isinstance(error, Exception)
            for index, error in failures.items()
        ):
            raise InvalidFailuresError(
                f"handler {self._handler!r:.80} returned {failures!r:.200} for {len(records)} "
                "records: return None, or a dict from the index of each failed record to its "
                "exception"
            )
        return dict(failures)
