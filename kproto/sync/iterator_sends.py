"""Sends many records: the calling thread reads an iterator, and applies the codecs.

An iterator of the program, such as a generator, may block and may call blocking objects: the event
loop's thread must not read it. The calling thread reads a chunk, passes it to the event loop, and
reads the next chunk when the producer has appended the chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Any, Final

from ..client.producer.acks import Acks
from ..client.producer.chunked_send import ChunkedSend
from ..client.producer.producer import Producer
from ..client.producer_record import check_many

__all__ = ["send_iterator", "send_records"]

#: The number of records in a chunk. The event loop costs a chunk about 50 µs, so a record of an
#: iterator costs 0.1 µs more than a record of a list.
CHUNK_RECORDS: Final = 500


def send_records(
    call: Callable[..., Any], producer: Producer[Any, Any], topic: str, values: Iterable[Any]
) -> Acks:
    """Encodes and sends the records of `values`; returns their acks, or raises as `send_many` does.

    `call` runs a coroutine function in the event loop. The calling thread encodes the records.
    """
    check_many("values", values, one="record", of_one="send")
    encoded = producer._encoded(topic, values)
    if not isinstance(values, Collection):
        return send_iterator(call, producer, topic, encoded)
    if encoded is not values:
        encoded = list(encoded)
    acks: Acks = call(Producer.send_many, producer, topic, encoded)
    return acks


def send_iterator(
    call: Callable[..., Any], producer: Producer[Any, Any], topic: str, values: Iterable[Any]
) -> Acks:
    """Sends encoded records; returns their acks, or raises the errors of `send_many`.

    `call` runs a coroutine function in the event loop. If `values` raises, sends the records before
    the exception, waits for their acks, and raises the exception.
    """
    send = ChunkedSend(producer, topic)
    source = iter(values)
    error: Exception | None = None
    while error is None:
        chunk: list[Any] = []
        try:
            for value in islice(source, CHUNK_RECORDS):
                chunk.append(value)  # noqa: PERF402 - the values before an exception are kept
        except Exception as raised:  # noqa: BLE001 - raised after the records before it are sent
            error = raised
        if not chunk:
            break
        if not call(send.append, chunk):
            break
    acks: Acks = call(send.finish, error)
    return acks
