"""Creates, fills (with kproto) and deletes the topics of the bench."""

from __future__ import annotations

from typing import Final

import kproto

from .task import BATCH_BYTES, CHUNK, VALUE, chunks, header_sets, keys

#: How long the bench waits for metadata of a new topic: a broker needs more than a minute to create
#: 9,000 partitions.
TOPIC_WAIT_MS: Final = 300_000


async def make_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Creates a topic, and waits until each partition has a leader."""
    settings = kproto.ClientSettings(metadata_wait_ms=TOPIC_WAIT_MS, api_timeout_ms=TOPIC_WAIT_MS)
    async with kproto.Client(bootstrap, settings=settings) as client:
        await client.create_topics(kproto.NewTopic(topic, partitions, 1))
        await client.list_offsets(dict.fromkeys(((topic, n) for n in range(partitions)), "latest"))


async def delete_topic(bootstrap: str, topic: str) -> None:
    async with kproto.Client(bootstrap) as client:
        await client.delete_topics(topic)


async def fill_topic(
    bootstrap: str, topic: str, count: int, *, headers: bool, partitions: int = 1
) -> None:
    """Writes `count` records with a key; with `headers`, each has six headers.

    If there is one partition, the records go to partition 0, otherwise to the partitions of their
    keys.
    """
    made = keys(CHUNK)
    sets = header_sets() if headers else [[]]
    records = [
        kproto.ProducerRecord(
            VALUE, key, sets[index % len(sets)], partition=0 if partitions == 1 else None
        )
        for index, key in enumerate(made)
    ]
    async with (
        kproto.Client(bootstrap) as client,
        client.producer(batch_bytes=BATCH_BYTES) as producer,
    ):
        for size in chunks(count):
            await producer.send_many(topic, records[:size])
