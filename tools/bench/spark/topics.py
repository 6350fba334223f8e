"""Fills the benchmark's topics: CloudEvents with six headers, and values of 114 bytes or more."""

from __future__ import annotations

from typing import Final

from kproto.client import Client, NewTopic, ProducerRecord

__all__ = ["PARTITIONS", "TEXT_BYTES", "delete", "event", "publish"]

PARTITIONS: Final = 4

#: The default batch size of Kafka's producer, 16 KB.
_BATCH_BYTES: Final = 16_384

#: The most events, and about the most bytes, per call of `send_many`.
_TOGETHER: Final = 20_000
_TOGETHER_BYTES: Final = 16 << 20

#: The default length of the text in a value, in bytes.
TEXT_BYTES: Final = 84


def event(number: int, text_bytes: int = TEXT_BYTES) -> ProducerRecord:
    """Returns the event with this number; its partition is `number` modulo 4."""
    return ProducerRecord(
        value=b'{"number":%09d,"text":"%s"}' % (number, b"x" * text_bytes),
        key=b"%08d" % number,
        headers=[
            ("ce_specversion", b"1.0"),
            ("ce_id", b"event-%09d" % number),
            ("ce_source", b"/bench/spark"),
            ("ce_type", b"org.example.measured"),
            ("ce_time", b"2026-01-01T%02d:%02d:00Z" % (number // 60 % 24, number % 60)),
            ("content-type", b"application/json"),
        ],
        partition=number % PARTITIONS,
    )


async def publish(
    bootstrap: str,
    topic: str,
    events: int,
    *,
    text_bytes: int = TEXT_BYTES,
    twice_every: int = 0,
    broken_every: int = 0,
) -> None:
    """Creates a topic with the events 0 to `events` - 1.

    Sends every `twice_every`th event twice. Sends a record without an id after every
    `broken_every`th event. 0 means none.
    """

    def records(number: int) -> list[ProducerRecord]:
        made = [event(number, text_bytes)]
        if twice_every and number % twice_every == 0:
            made *= 2
        if broken_every and number % broken_every == 0:
            lacking = [pair for pair in made[0].headers if pair[0] != "ce_id"]
            made.append(ProducerRecord(made[0].value, None, lacking, partition=made[0].partition))
        return made

    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(topic, partitions=PARTITIONS))
        async with client.producer(batch_bytes=_BATCH_BYTES) as producer:
            together = min(_TOGETHER, max(1, _TOGETHER_BYTES // text_bytes))
            for first in range(0, events, together):
                numbers = range(first, min(first + together, events))
                await producer.send_many(
                    topic, [record for number in numbers for record in records(number)]
                )


async def delete(bootstrap: str, *topics: str) -> None:
    """Deletes the topics."""
    async with Client(bootstrap) as client:
        await client.delete_topics(*topics)
