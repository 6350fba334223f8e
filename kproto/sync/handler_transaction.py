"""`HandlerTransaction` without `await`.

`python -m tools.sync` writes this module from `kproto/client/processing/handler_transaction.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..client.processing.handler_transaction import HandlerTransaction as _HandlerTransaction
from ..client.producer_record import ContentMode, Headers, ProducerRecord, SupportsKafkaRecord
from .wrapper import InlineWrapper

__all__ = ["HandlerTransaction"]


class HandlerTransaction(InlineWrapper[_HandlerTransaction]):
    """Collects the records that one call of a handler of `run` with `transactional_id` sends.

    When the handler returns, `run` appends these records to its transaction. The transaction
    commits the sent records together with the offset of the handled record. If the transaction is
    aborted, neither the sent records nor the offset are committed, and `run` calls the handler with
    the handled record again. If the handler raises, the sent records are dropped, except after
    `Stop(done=True)`.
    """

    __slots__ = ()

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> None:
        """Adds one record, which is sent when the handler has returned.

        The arguments are those of `Producer.send`. No ack is returned: the transaction is committed
        later. If a broker refuses the record, the handled record counts as failed. Raises
        ConfigurationError after the handler has returned.
        """
        self._call(
            self._wrapped.send,
            topic,
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
        )

    def send_many(self, topic: str, values: Iterable[bytes | ProducerRecord | None]) -> None:
        """Adds many records; an element is a value, or a `ProducerRecord`.

        Raises TypeError if `values` is no iterable of records, and ConfigurationError if the call
        is made after the handler has returned.
        """
        self._call(self._wrapped.send_many, topic, values)

    def send_event(
        self,
        topic: str,
        event: SupportsKafkaRecord,
        *,
        mode: ContentMode | None = None,
        timestamp: int | None = None,
        partition: int | None = None,
        **options: Any,
    ) -> None:
        """Adds an event as one record; the arguments are those of `Producer.send_event`.

        Raises the error of an event that cannot be converted, EncodeError for an object that is no
        event, and ConfigurationError after the handler has returned.
        """
        self._call(
            self._wrapped.send_event,
            topic,
            event,
            mode=mode,
            timestamp=timestamp,
            partition=partition,
            **options,
        )
