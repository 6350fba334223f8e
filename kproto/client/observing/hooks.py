"""`Hooks`: methods that a user overrides to observe a client and to change its records.

Each method is called in the client's event loop: it must return soon, and must not block. The
logger `kproto.client` logs its exceptions; they have no other effect.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

from ...records import Record
from ...wire.errors import ConfigurationError
from ..producer_record import ProducerRecord

__all__ = [
    "AckEvent",
    "ConnectionEvent",
    "Hooks",
    "RequestEvent",
    "RetryEvent",
    "check_hooks",
    "overridden",
]


class RequestEvent(NamedTuple):
    """A request that was answered or failed.

    `api` is the name of the request without "Request", `broker` is host:port. `bytes_out` and
    `bytes_in` are frame sizes, 0 without a response. `latency_ms` is the time from write to
    response. `error` is the name of the first error code in the response, or of the exception; None
    without one.
    """

    api: str
    version: int
    broker: str
    bytes_out: int
    bytes_in: int
    latency_ms: float
    error: str | None


class RetryEvent(NamedTuple):
    """A retry after `error`, the `attempt`th in a row, in `wait_ms`.

    `what` is "produce", "fetch" (of `topic` and `partition`), "metadata" (of `topic`), "leaders" (a
    request to several leaders), "commit" (of offsets) or "call" (any other).
    """

    what: str
    topic: str | None
    partition: int | None
    attempt: int
    wait_ms: float
    error: Exception


class ConnectionEvent(NamedTuple):
    """A connection to `broker`, host:port, that was opened or closed, or failed to open.

    `error` is the reason if it was lost or failed to open; None if the client opened or closed it.
    `took_ms` is the time that opening took, or the time for which it was open.
    """

    kind: Literal["opened", "closed", "failed"]
    broker: str
    took_ms: float
    error: Exception | None


class AckEvent(NamedTuple):
    """The outcome of a record; `error` is None if it was acked.

    `record` is the record that `on_send` returned. `partition` is -1 if none was chosen; `offset`
    and `timestamp` are -1 if the record was not acked, or the broker did not send them.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    record: ProducerRecord
    error: BaseException | None


class Hooks:
    """Base class for observers: a method that is not overridden costs nothing."""

    def on_request(self, event: RequestEvent) -> None:
        """Called when a request was answered or has failed."""

    def on_retry(self, event: RetryEvent) -> None:
        """Called before a retry."""

    def on_connection(self, event: ConnectionEvent) -> None:
        """Called when a connection was opened or closed, or failed to open."""

    def on_send(self, topic: str, record: ProducerRecord) -> ProducerRecord:
        """Called with a record before it is sent; returns the record to send instead.

        It is called once per record, in the order of the calls of the producer, before the record
        is validated and its partition is chosen. If it raises, or returns no ProducerRecord, the
        record is sent unchanged.
        """
        return record

    def on_ack(self, event: AckEvent) -> None:
        """Called when a record was acked or has failed, once per call of `on_send`."""

    def on_records(self, topic: str, partition: int, records: list[Record]) -> Sequence[Record]:
        """Called with records before the consumer returns them; returns the records to return.

        It is called in order, with the records of one or more batches. It may leave out records,
        and change values and headers, but not offsets. If it raises, or returns other objects than
        records, they are returned unchanged. `raw_batches` does not call it, because it decodes no
        batch.
        """
        return records


#: The methods that may be overridden.
_METHODS: Final = tuple(name for name in vars(Hooks) if name.startswith("on_"))


def check_hooks(hooks: object) -> None:
    """Raises ConfigurationError for an object that is not a `Hooks`."""
    if hooks is not None and not isinstance(hooks, Hooks):
        names = ", ".join(_METHODS)
        raise ConfigurationError(
            f"hooks is {hooks!r:.80}; it must be an instance of a class of yours that inherits "
            f"kproto.Hooks and overrides some of {names}"
        )
    for name in _METHODS:
        if inspect.iscoroutinefunction(getattr(hooks, name, None)):
            raise ConfigurationError(
                f"{name} of {type(hooks).__name__} is an async function; hooks are called, and not "
                "awaited: make it a plain function, which may start a task"
            )


def overridden(hooks: Hooks | None, name: str) -> Callable[..., Any] | None:
    """Returns a method of hooks if a class or the instance overrides it; None otherwise."""
    found = getattr(hooks, name, None)
    if found is None or getattr(found, "__func__", None) is vars(Hooks)[name]:
        return None
    return found  # type: ignore[no-any-return]  # as Hooks has it
