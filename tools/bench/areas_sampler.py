"""Samples a program that sends and reads records; `tools.bench.areas` runs it with a checkout.

Uses only names of kproto that older checkouts have, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

__all__ = ["AREAS", "WORKS"]

SEND: Final = "send_many"
READ: Final = "record_lists()"
WORKS: Final = (SEND, READ)

#: The areas, each with parts of the paths of its modules. The first area that matches counts.
AREAS: Final = {
    "keys and partitions": ("producer/murmur2", "producer/partitioner", "append_by_partition"),
    "records": ("kproto/records/", "kproto/wire/crc"),
    "requests and responses": (
        "kproto/messages/",
        "kproto/wire/",
        "kproto/protocol/",
        "producer/requests",
        "fetch/fetch_request",
    ),
    "batches and their acks": ("kproto/client/producer/",),
    "fetches and positions": ("kproto/client/fetch/", "kproto/client/consumer/"),
    "connections": ("kproto/client/network/", "kproto/client/connections/"),
    "other code of the client": ("kproto/",),
    "asyncio and the program": ("",),
}

_PERIOD_S: Final = 0.001
_ROUNDS: Final = 5


def area_of(frame: FrameType | None) -> str:
    """Returns the area of the innermost function of kproto on the stack of `frame`."""
    while frame is not None:
        path = frame.f_code.co_filename.replace(os.sep, "/")
        if "/kproto/" in path:
            return next(area for area, parts in AREAS.items() if any(at in path for at in parts))
        frame = frame.f_back
    return "asyncio and the program"


class Sampler:
    """Counts the samples of each area while `running`, and adds up the CPU time in seconds."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.cpu_s = 0.0

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.counts[area_of(frame)] += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        signal.signal(signal.SIGPROF, self._take)
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, _PERIOD_S, _PERIOD_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self.cpu_s += time.process_time() - began

    def microseconds(self, records: int) -> dict[str, float]:
        """Returns the CPU time of each area in µs a record, with that of all areas as "all"."""
        whole = self.cpu_s / records * 1e6
        total = self.counts.total()
        return {area: whole * count / total for area, count in self.counts.items()} | {"all": whole}


async def sample(bootstrap: str, partitions: int, records: int) -> dict[str, dict[str, float]]:
    """Returns the CPU time of each area in µs a record, by work."""
    from kproto import Client, NewTopic, ProducerRecord

    topic = f"areas-{time.time_ns()}"
    made = [ProducerRecord(b"v" * 100, b"%016d" % (at * 7_919)) for at in range(records)]
    sampled = {work: Sampler() for work in WORKS}
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(topic, partitions))
        await client.list_offsets({(topic, at): "latest" for at in range(partitions)})
        async with client.producer(batch_bytes=1_000_000) as producer:
            for turn in range(1 + _ROUNDS):
                with (sampled[SEND] if turn else Sampler()).running():
                    await producer.send_many(topic, made)
        for turn in range(1 + _ROUNDS):
            with (sampled[READ] if turn else Sampler()).running():
                read = 0
                consumer = client.consumer(topic, start="earliest")
                lists = getattr(consumer, "record_lists", None) or consumer.batches  # type: ignore[attr-defined]
                async for fetched in lists():
                    read += len(fetched.records)
                    if read >= records:
                        break
                await consumer.close()
        await client.delete_topics(topic)
    return {work: of.microseconds(_ROUNDS * records) for work, of in sampled.items()}


if __name__ == "__main__":
    work: Coroutine[Any, Any, dict[str, dict[str, float]]] = sample(
        sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    )
    print(json.dumps(asyncio.run(work)))
