"""Runs aiokafka as a group member: `BOOTSTRAP TOPIC GROUP`; prints events as lines of JSON.

`["assigned", partitions]` has all current partitions; `["read", partition, value]` has a record.
The member leaves the group when its standard input ends, and then prints `["left"]`.
"""

from __future__ import annotations

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

bootstrap, topic, group = sys.argv[1:4]


def tell(*what: object) -> None:
    print(json.dumps(what), flush=True)


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_revoked(self, revoked: object) -> None:
        pass

    def on_partitions_assigned(self, assigned: set[object]) -> None:
        tell("assigned", sorted(it.partition for it in assigned))  # type: ignore[attr-defined]


async def main() -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=200,
        auto_commit_interval_ms=200,
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    while not ended.done():
        fetched = await consumer.getmany(timeout_ms=100)
        for partition, records in fetched.items():
            for record in records:
                tell("read", partition.partition, record.value.decode())
    await consumer.stop()
    tell("left")


asyncio.run(main())
