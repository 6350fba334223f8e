"""Compares the CPU time of a transactional producer with that of an idempotent one."""

from __future__ import annotations

import gc
import statistics
import time
from typing import NamedTuple

from kproto import Client, Producer

from .task import BATCH_BYTES, VALUE

__all__ = ["Overhead", "measure_overhead"]


class Overhead(NamedTuple):
    """CPU seconds per record of both producers, and the median of the ratios of their rounds."""

    transactional: float
    idempotent: float
    ratio: float


async def measure_overhead(bootstrap: str, topic: str, size: int, rounds: int) -> Overhead:
    """Sends lists of `size` records to a topic by both producers, in alternating order.

    Each round measures a transaction, with its begin and commit, and a call of `send_many` without
    a transaction. Before the measured rounds, runs a tenth as many rounds without measuring them.
    """
    values = [VALUE] * size
    spent: tuple[list[float], list[float]] = ([], [])
    async with (
        Client(bootstrap) as client,
        client.producer(transactional_id=topic, batch_bytes=BATCH_BYTES) as transactional,
        client.producer(batch_bytes=BATCH_BYTES) as idempotent,
    ):

        async def in_transaction(producer: Producer) -> None:
            async with producer.transaction():
                await producer.send_many(topic, values)

        async def plain(producer: Producer) -> None:
            await producer.send_many(topic, values)

        works = [(in_transaction, transactional), (plain, idempotent)]
        for number in range(-(rounds // 10), rounds):
            for at in (0, 1) if number % 2 else (1, 0):
                work, producer = works[at]
                gc.collect()
                began = time.process_time()
                await work(producer)
                cpu = time.process_time() - began
                if number >= 0:
                    spent[at].append(cpu / size)
    return Overhead(
        statistics.median(spent[0]),
        statistics.median(spent[1]),
        statistics.median(a / b for a, b in zip(*spent, strict=True)),
    )
