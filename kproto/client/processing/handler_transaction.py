"""`HandlerTransaction`: the records that a handler of `run` sends in the transaction of `run`.

The records are collected while the handler runs, and appended when the handler has returned. So a
handler that fails has sent nothing, and the transaction need not be aborted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...wire.errors import ConfigurationError
from ..producer_record import (
    ContentMode,
    Headers,
    ProducerRecord,
    SupportsKafkaRecord,
    as_record,
    check_many,
    record_of_event,
)

__all__ = ["HandlerTransaction"]


class HandlerTransaction:
    """Collects the records that one call of a handler of `run` with `transactional_id` sends.

    When the handler returns, `run` appends these records to its transaction. The transaction
    commits the sent records together with the offset of the handled record. If the transaction is
    aborted, neither the sent records nor the offset are committed, and `run` calls the handler with
    the handled record again. If the handler raises, the sent records are dropped, except after
    `Stop(done=True)`.
    """

    __slots__ = ("_is_closed", "_records")

    def __init__(self) -> None:
        self._records: list[tuple[str, ProducerRecord]] = []
        self._is_closed = False

    async def send(
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
        self._add(topic, ProducerRecord(value, key, headers, timestamp, partition))

    async def send_many(self, topic: str, values: Iterable[bytes | ProducerRecord | None]) -> None:
        """Adds many records; an element is a value, or a `ProducerRecord`.

        Raises TypeError if `values` is no iterable of records, and ConfigurationError if the call
        is made after the handler has returned.
        """
        check_many("values", values, one="record", of_one="send")
        for record in [as_record(value) for value in values]:
            self._add(topic, record)

    async def send_event(
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
        key, value, headers = record_of_event(event, mode, options)
        self._add(topic, ProducerRecord(value, key, headers, timestamp, partition))

    def _add(self, topic: str, record: ProducerRecord) -> None:
        if self._is_closed:
            raise ConfigurationError(
                "the handler has returned, and its records are in the transaction: await all sends "
                "in the handler"
            )
        if not isinstance(topic, str) or not topic:
            raise ConfigurationError(f"topic is {topic!r:.80}; it must be the name of a topic")
        self._records.append((topic, record))

    def _close(self) -> list[tuple[str, ProducerRecord]]:
        """Returns the records with their topics; later sends raise an error."""
        self._is_closed = True
        return self._records
