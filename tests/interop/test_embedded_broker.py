"""Other clients on the embedded broker: create a topic, produce, read back by partition.

Each runs in the peers' own environment, as its documentation shows, with its defaults: aiokafka
and confluent-kafka with idempotence too.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kproto.broker import Broker

COUNT = 500

KAFKA_PYTHON = """
import json, sys
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

bootstrap, count = sys.argv[1], int(sys.argv[2])
admin = KafkaAdminClient(bootstrap_servers=bootstrap)
admin.create_topics([NewTopic("made", 2, 1)])
admin.close()
producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
futures = [
    producer.send("made", b"%d" % i, key=b"k", headers=[("h", b"v")], partition=1)
    for i in range(count)
]
offsets = [future.get(30).offset for future in futures]
producer.close()
consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
place = TopicPartition("made", 1)
consumer.assign([place])
consumer.seek_to_beginning(place)
read = []
for record in consumer:
    read.append([record.offset, record.value.decode(), record.key.decode(), record.headers[0][0]])
    if len(read) == count:
        break
consumer.close()
print(json.dumps([offsets, read]))
"""

AIOKAFKA = """
import asyncio, json, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

async def main(bootstrap, count):
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic("made", 2, 1)])
    await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    await producer.start()
    futures = [
        await producer.send("made", b"%d" % i, key=b"k", headers=[("h", b"v")], partition=1)
        for i in range(count)
    ]
    offsets = [(await future).offset for future in futures]
    await producer.stop()
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    consumer.assign([TopicPartition("made", 1)])
    read = []
    async for record in consumer:
        read.append(
            [record.offset, record.value.decode(), record.key.decode(), record.headers[0][0]]
        )
        if len(read) == count:
            break
    await consumer.stop()
    print(json.dumps([offsets, read]))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""

CONFLUENT_KAFKA = """
import json, sys
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

bootstrap, count = sys.argv[1], int(sys.argv[2])
admin = AdminClient({"bootstrap.servers": bootstrap})
for future in admin.create_topics([NewTopic("made", 2, 1)]).values():
    future.result(30)
offsets = {}

def delivered(error, message):
    assert error is None, error
    offsets[int(message.value())] = message.offset()

producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
for i in range(count):
    producer.produce(
        "made", b"%d" % i, b"k", partition=1, headers=[("h", b"v")], on_delivery=delivered
    )
producer.flush(30)
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "not-used"})
consumer.assign([TopicPartition("made", 1, 0)])
read = []
while len(read) < count:
    for record in consumer.consume(100, 1.0):
        assert record.error() is None, record.error()
        name = record.headers()[0][0]
        read.append([record.offset(), record.value().decode(), record.key().decode(), name])
consumer.close()
print(json.dumps([[offsets[i] for i in range(count)], read]))
"""

PROGRAMS = {
    "kafka-python": KAFKA_PYTHON,
    "aiokafka": AIOKAFKA,
    "confluent-kafka": CONFLUENT_KAFKA,
}


@pytest.mark.peers
@pytest.mark.parametrize("client", PROGRAMS)
async def test_a_peer_produces_and_reads_back(client: str, peers_python: Path) -> None:
    async with Broker() as broker:
        process = await asyncio.create_subprocess_exec(
            str(peers_python),
            "-W",
            "ignore",
            "-c",
            PROGRAMS[client],
            broker.bootstrap,
            str(COUNT),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(120):
                printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        batches = list(broker.topics["made"].partition(1).log)
    assert process.returncode == 0
    offsets, read = json.loads(printed.decode().splitlines()[-1])
    assert offsets == list(range(COUNT))
    assert read == [[i, str(i), "k", "h"] for i in range(COUNT)]
    assert sum(batch.record_count for batch in batches) == COUNT
    idempotent = all(batch.producer_id >= 0 for batch in batches)
    assert idempotent or client == "kafka-python"
