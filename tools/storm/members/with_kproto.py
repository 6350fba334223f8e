"""Runs kproto as a member; after SIGUSR1, one record takes longer than max.poll.interval.ms."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from collections.abc import Collection
from contextlib import aclosing
from pathlib import Path

import kproto

from ..protocols import SESSION_MS, of_ours
from .lines import MemberLog
from .reading import records_until

HEARTBEAT_MS = 500
POLL_MS = SESSION_MS + 2_000
COMMIT_MS = 1_000
LONGEST_S = 0.004
SLOW_S = 12.0


async def main() -> None:
    bootstrap, topic, group, assignor, path, *instance = sys.argv[1:]
    log = MemberLog(path)
    stop = asyncio.Event()
    slow = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, slow.set)
    chance = random.Random(path)

    def tell(word: str, tps: Collection[tuple[str, int]]) -> None:
        log.partitions(word, [partition for _, partition in tps])

    log.say("started")
    async with (
        kproto.Client(bootstrap, kproto.ClientSettings(client_id=Path(path).stem)) as client,
        client.consumer(
            topic,
            group=group,
            instance_id=instance[0] if instance else None,
            **of_ours(assignor, SESSION_MS, HEARTBEAT_MS),
            max_poll_interval_ms=POLL_MS,
            auto_commit_interval_ms=COMMIT_MS,
            on_assigned=lambda tps: tell("assigned", tps),
            on_revoked=lambda tps: tell("revoked", tps),
            on_lost=lambda tps: tell("lost", tps),
        ) as consumer,
        aclosing(records_until(aiter(consumer), stop)) as records,
    ):
        async for record in records:
            log.read(record.partition, record.offset)
            if slow.is_set():
                slow.clear()
                log.say("slow")
                await asyncio.sleep(SLOW_S)
            await asyncio.sleep(chance.random() * LONGEST_S)
    log.say("left")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(main())
