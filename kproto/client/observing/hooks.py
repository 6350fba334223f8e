"""`Hooks`: what a user overrides to be told what a client does, and to change records on their way.

Each method is called in the client's event loop, between its own steps: it must return soon, and
must not wait. What it raises is logged by `kproto.client`, and changes nothing.
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
    """A request that is over: answered, or given up.

    `api` is its name without "Request", `broker` is host:port. `bytes_out` and `bytes_in` are
    those of the frames, 0 for no answer. `latency_ms` is from writing it to its response. `error`
    is the name of the first error code in the response, or of the exception in place of one; None
    where all is well.
    """

    api: str
    version: int
    broker: str
    bytes_out: int
    bytes_in: int
    latency_ms: float
    error: str | None


class RetryEvent(NamedTuple):
    """Something is tried again after `error`, the `attempt`th in a row, in `wait_ms`.

    `what` is "produce", "fetch" (of `topic` and `partition`), "metadata" (of `topic`), "leaders"
    (a question to several leaders), "commit" (of a group's offsets) or "call" (any other).
    """

    what: str
    topic: str | None
    partition: int | None
    attempt: int
    wait_ms: float
    error: Exception


class ConnectionEvent(NamedTuple):
    """A connection to `broker`, host:port, was opened, closed, or could not be opened.

    `error` is why it was lost or could not be opened; None where the client opened or closed it.
    `took_ms` is how long opening took, or how long it was open.
    """

    kind: Literal["opened", "closed", "failed"]
    broker: str
    took_ms: float
    error: Exception | None


class AckEvent(NamedTuple):
    """What has become of a record that was given: acknowledged, or `error` says why not.

    `record` is what `on_send` returned. `partition` is -1 where none was chosen; `offset` and
    `timestamp` are -1 where it was not acknowledged, or the broker did not say.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    record: ProducerRecord
    error: BaseException | None


class Hooks:
    """Override what you want to hear of. What is not overridden costs nothing."""

    def on_request(self, event: RequestEvent) -> None:
        """A request is over."""

    def on_retry(self, event: RetryEvent) -> None:
        """Something is tried again."""

    def on_connection(self, event: ConnectionEvent) -> None:
        """A connection was opened, closed, or could not be opened."""

    def on_send(self, topic: str, record: ProducerRecord) -> ProducerRecord:
        """A record was given to a producer; returns the one to send in its place.

        Called once for each, before it is checked and before its partition is chosen, in the order
        in which records are given. Where it raises, or returns no ProducerRecord, the record is
        sent as it was given.
        """
        return record

    def on_ack(self, event: AckEvent) -> None:
        """A record was acknowledged or has failed. Called once for each that `on_send` was."""

    def on_records(self, topic: str, partition: int, records: list[Record]) -> Sequence[Record]:
        """Records are about to be handed out; returns those to hand out in their place.

        Called for lists as they come from batches, in order; some may be left out, and values and
        headers changed; offsets are to stay. Where it raises, or returns what are no records, they
        are handed out as they came. `raw_batches` does not call it: nothing is opened there.
        """
        return records


#: The methods that may be overridden.
_METHODS: Final = tuple(name for name in vars(Hooks) if name.startswith("on_"))


def check_hooks(hooks: object) -> None:
    """Raises ConfigurationError for what are no hooks."""
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
                "awaited: make it a plain one, which may begin a task"
            )


def overridden(hooks: Hooks | None, name: str) -> Callable[..., Any] | None:
    """A method of hooks, if it was overridden, by a class or in the instance."""
    found = getattr(hooks, name, None)
    if found is None or getattr(found, "__func__", None) is vars(Hooks)[name]:
        return None
    return found  # type: ignore[no-any-return]  # as Hooks has it
