"""`Hooks`: methods that a user overrides to observe a client and to change its records.

Each method is called in the client's event loop: it must return soon, and must not block. If a
method raises an exception, the logger `kproto.client` logs the exception; the exception has no
other effect.
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
    """A request that was answered or failed, or that gets no response.

    `api` is the name of the request without "Request", `broker` is host:port. `bytes_out` and
    `bytes_in` are the sizes of the frames; `bytes_in` is 0 if there was no response. `latency_ms`
    is the time from the write to the response or failure, about 0 for a request that gets no
    response. `error` is the name of the first error code in the response, or the class of the
    exception; None if there was no error.
    """

    api: str
    version: int
    broker: str
    bytes_out: int
    bytes_in: int
    latency_ms: float
    error: str | None


class RetryEvent(NamedTuple):
    """A retry that follows `error` after `wait_ms`; `attempt` counts the failures in a row.

    `what` is "produce", "fetch" (of `topic` and `partition`), "metadata" (of `topic`), "leaders" (a
    request to several leaders), "commit" (of offsets), "transaction" (a request of a transactional
    producer) or "call" (any other).
    """

    what: str
    topic: str | None
    partition: int | None
    attempt: int
    wait_ms: float
    error: Exception


class ConnectionEvent(NamedTuple):
    """A connection to `broker`, host:port, that was opened or closed, or failed to open.

    `error` is the reason if the connection was lost or failed to open; None if the client opened or
    closed it. `took_ms` is the time that the attempt to open took, or for "closed" the time for
    which the connection was open.
    """

    kind: Literal["opened", "closed", "failed"]
    broker: str
    took_ms: float
    error: Exception | None


class AckEvent(NamedTuple):
    """The outcome of a record; `error` is None if it was acked.

    `record` is the record that `on_send` returned, with the chosen partition and timestamp if it
    was appended to a batch. `partition` is -1 if none was chosen. `offset` and `timestamp` are -1
    if the record was not acked, or the broker did not send them.
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
        """Called when a request was answered, has failed, or was written and gets no response."""

    def on_retry(self, event: RetryEvent) -> None:
        """Called when an operation has failed and will be retried, before the backoff."""

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

        It is called in the order of the offsets, with the records of one or more batches. The hook
        may leave out records, and change values and headers, but not offsets. If it raises, or
        returns objects that are no records, the consumer returns `records` unchanged. `raw_batches`
        does not call it, because it decodes no batch.
        """
        return records


#: The methods that may be overridden.
_METHODS: Final = tuple(name for name in vars(Hooks) if name.startswith("on_"))


def check_hooks(hooks: object) -> None:
    """Raises ConfigurationError if `hooks` is neither None nor a `Hooks`, or has an async hook."""
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
    """Returns the method `name` of `hooks` if a class or the instance overrides it, else None."""
    found = getattr(hooks, name, None)
    if found is None or getattr(found, "__func__", None) is vars(Hooks)[name]:
        return None
    return found  # type: ignore[no-any-return]  # as Hooks has it
