"""Runs aiokafka with a broker: `BOOTSTRAP TOPIC COMMAND`; prints one line of JSON.

`write` creates the topic with two partitions, produces to partition 0 without and then with
idempotence, and prints the offsets. `read COUNT` reads partition 0, and prints the records.
"""

from __future__ import annotations

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

bootstrap, topic, command = sys.argv[1:4]


async def write() -> list[int]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 2, 1)])
    await admin.close()
    offsets: list[int] = []
    for idempotent in (False, True):
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, acks="all", enable_idempotence=idempotent
        )
        await producer.start()
        sent = [
            await producer.send(
                topic, b"value %d" % n, key=b"key", partition=0, headers=[("h", b"%d" % n)]
            )
            for n in range(100)
        ]
        offsets += [(await future).offset for future in sent]
        await producer.stop()
    return offsets


async def read(count: int) -> list[list[object]]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    await consumer.start()
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    assert await consumer.beginning_offsets([partition]) == {partition: 0}
    assert await consumer.end_offsets([partition]) == {partition: count}
    records: list[list[object]] = []
    async for record in consumer:
        headers = [[name, value.decode()] for name, value in record.headers]
        records.append([record.offset, record.key.decode(), record.value.decode(), headers])
        if len(records) == count:
            break
    await consumer.stop()
    return records


print(json.dumps(asyncio.run(write() if command == "write" else read(int(sys.argv[4])))))
