"""Processes records with `run()`, and logs each step before the next step begins.

    python -m tools.handling.member BOOTSTRAP ORDER SEED FILE

Each line of FILE has the step, the time (monotonic ns, and time of day in ms), and the record
(partition, offset). The steps are: `b` the handler begins, `e` it returns, `x` it raises. SIGTERM
ends the program.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections import Counter
from typing import Any, cast

import kproto
from kproto.client.processing.settings import Order

from .work import DEAD, GROUP, TOPIC, HandlerBehavior, fate_of, stall_of

__all__ = ["SESSION_MS"]

#: The session timeout in ms, after which the group reassigns the partitions of a killed member.
SESSION_MS = 3_000


async def handle_records(bootstrap: str, order: Order, seed: int, file: int) -> None:
    failed: Counter[tuple[int, int]] = Counter()

    def note(what: str, record: kproto.Record) -> None:
        now_ms = time.time_ns() // 1_000_000
        line = f"{what} {time.monotonic_ns()} {now_ms} {record.partition} {record.offset}\n"
        os.write(file, line.encode())

    async def handle(record: kproto.Record) -> None:
        key = (record.partition, record.offset)
        note("b", record)
        try:
            match fate_of(seed, *key):
                case HandlerBehavior.GIVES_WAY:
                    await asyncio.sleep(0)
                case HandlerBehavior.STALLS:
                    await asyncio.sleep(stall_of(seed, *key))
                case HandlerBehavior.FAILS_ONCE if not failed[key]:
                    failed[key] += 1
                    raise OSError("once")
                case HandlerBehavior.DEAD:
                    raise ValueError(f"never: {key}")
        except BaseException:
            note("x", record)
            raise
        note("e", record)

    settings: dict[str, Any] = {
        "group": GROUP,
        "session_timeout_ms": SESSION_MS,
        "heartbeat_interval_ms": 100,
        "assignors": ["cooperative-sticky"],
        "max_partition_fetch_bytes": 100_000,
    }
    async with (
        kproto.Client(bootstrap) as client,
        client.consumer(TOPIC, **settings) as consumer,
    ):
        await consumer.run(
            handle,
            workers=16,
            order=order,
            retries=kproto.Retries(2, backoff_ms=2),
            dead_letter_topic=DEAD,
            max_offset_gap=2_000,
        )


def main() -> None:
    logging.getLogger("kproto").setLevel(logging.ERROR)
    bootstrap, order, seed, path = sys.argv[1:]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    asyncio.run(handle_records(bootstrap, cast(Order, order), int(seed), file))


if __name__ == "__main__":
    main()
