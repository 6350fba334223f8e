"""Calls the hooks of a user, and logs their exceptions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

from ...records import Record
from ...wire.errors import KprotoError
from ..producer_record import ProducerRecord
from .hooks import AckEvent, Hooks, overridden

__all__ = ["CompletedBatch", "HookCalls"]

_log: Final = logging.getLogger("kproto.client")

#: The exceptions of hooks that are caught. A hook does not await, so a CancelledError comes from a
#: cancelled future whose result the hook read, not from a cancellation of the present task.
HOOK_EXCEPTIONS: Final = (Exception, asyncio.CancelledError)


class CompletedBatch(Protocol):
    """A batch of a producer whose records are all acked or failed."""

    topic: str
    partition: int

    @property
    def count(self) -> int:
        """The number of records of the batch."""
        ...

    def record_at(self, position: int) -> ProducerRecord:
        """Returns the record at `position` of the batch, with its partition and timestamp."""
        ...

    def failure(self, position: int) -> KprotoError | None:
        """Returns the error of a record; None if it was acked."""
        ...

    def ack(self, position: int) -> tuple[str, int, int, int]:
        """Returns topic, partition, offset and timestamp (ms) of a record that was acked."""
        ...


class HookCalls:
    """Calls the hooks of a client; a hook that the user does not override is None or has no effect.

    `failures` counts the exceptions of hooks. The first exception of each class from a hook is
    logged with its traceback. Later exceptions are logged at DEBUG, because a hook may be called
    for each request.
    """

    def __init__(self, hooks: Hooks | None) -> None:
        self.failures = 0
        self._logged: set[tuple[str, type[BaseException]]] = set()
        self._send = overridden(hooks, "on_send")
        self._records = overridden(hooks, "on_records")
        self._ack = overridden(hooks, "on_ack")
        self.on_request = self._safe("on_request", overridden(hooks, "on_request"))
        self.on_retry = self._safe("on_retry", overridden(hooks, "on_retry"))
        self.on_connection = self._safe("on_connection", overridden(hooks, "on_connection"))
        self.intercepts = self._send is not None or self._ack is not None
        self.on_records = None if self._records is None else self._intercept_records

    def _safe(self, name: str, hook: Callable[..., Any] | None) -> Callable[[Any], None] | None:
        if hook is None:
            return None

        def call(event: Any) -> None:
            try:
                hook(event)
            except HOOK_EXCEPTIONS as fault:
                self._raised(name, fault)

        return call

    def _raised(self, name: str, fault: BaseException) -> None:
        self.failures += 1
        kind = (name, type(fault))
        if kind in self._logged:
            _log.debug("the hook %s raised again: %r", name, fault)
            return
        self._logged.add(kind)
        _log.error("the hook %s raised; the client ignores the exception", name, exc_info=fault)

    # Records

    def on_send(self, topic: str, record: ProducerRecord) -> ProducerRecord:
        """Calls the hook `on_send`, and returns the record that the hook returns.

        Returns `record` if there is no hook, or if the hook fails.
        """
        if self._send is None:
            return record
        try:
            changed = self._send(topic, record)
            if not isinstance(changed, ProducerRecord):
                raise TypeError(f"on_send returned {changed!r:.80}, which is no ProducerRecord")
        except HOOK_EXCEPTIONS as fault:
            self._raised("on_send", fault)
            return record
        return changed

    def on_send_each(
        self,
        topic: str,
        values: Iterator[bytes | ProducerRecord | None],
    ) -> Iterator[ProducerRecord]:
        """Yields the records to send instead of `values`.

        Reads a value, and calls the hook with it, only when the caller takes the next record.
        """
        for value in values:
            record = value if isinstance(value, ProducerRecord) else ProducerRecord(value)
            yield self.on_send(topic, record)

    def on_not_appended(self, topic: str, record: ProducerRecord, error: BaseException) -> None:
        """Calls the hook `on_ack` for a record that was not appended to a batch."""
        partition = record.partition if isinstance(record.partition, int) else -1
        self._acked(AckEvent(topic, partition, -1, -1, record, error))

    def settled(self, batch: CompletedBatch) -> None:
        """Calls the hook `on_ack` for each record of a batch."""
        if self._ack is None:
            return
        for position in range(batch.count):
            record, error = batch.record_at(position), batch.failure(position)
            offset = timestamp = -1
            if error is None:
                _, _, offset, timestamp = batch.ack(position)
            self._acked(AckEvent(batch.topic, batch.partition, offset, timestamp, record, error))

    def _acked(self, event: AckEvent) -> None:
        if self._ack is None:
            return
        try:
            self._ack(event)
        except HOOK_EXCEPTIONS as fault:
            self._raised("on_ack", fault)

    def _intercept_records(self, topic: str, partition: int, records: list[Record]) -> list[Record]:
        assert self._records is not None, "it was overridden"
        try:
            changed: Sequence[Record] = self._records(topic, partition, list(records))
            found = list(changed)
            if not all(isinstance(each, Record) for each in found):
                raise TypeError("on_records returned elements that are no records")
        except HOOK_EXCEPTIONS as fault:
            self._raised("on_records", fault)
            return records
        return found
