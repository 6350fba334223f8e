"""Runs the walk of confluent-kafka (librdkafka): `BOOTSTRAP NAME [modern]`.

A walk is a scripted scenario that calls most APIs. The topic and the group are called NAME; with
`modern`, the walk uses KIP-848 groups, too. Prints one line of JSON: how many records the client
read with read_committed, and how many with read_uncommitted.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

bootstrap, name = sys.argv[1:3]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS: list[tuple[str, bytes | None]] = [("h", b"value"), ("h", b""), ("null", None)]
BASE: dict[str, Any] = {"bootstrap.servers": bootstrap, "linger.ms": 100}
WAIT_S = 30


def done(futures: dict[Any, Any]) -> list[Any]:
    return [future.result(WAIT_S) for future in futures.values()]


def send(producer: Producer, count: int, partition: int = 0) -> None:
    errors: list[object] = []
    for n in range(count):
        producer.produce(
            name,
            b"value %d " % n * 20,
            key=b"key" if n % 2 else None,
            partition=partition,
            headers=HEADERS if n % 3 else None,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    assert producer.flush(WAIT_S) == 0
    assert errors == []


def write() -> None:
    for number, codec in enumerate(CODECS):
        send(Producer({**BASE, "compression.type": codec}), 20, number % 2)
    send(Producer({**BASE, "acks": "0"}), 5)
    send(Producer({**BASE, "enable.idempotence": True}), 20)


def transact(group: Consumer) -> None:
    producer = Producer({**BASE, "transactional.id": name, "compression.type": "lz4"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    send(producer, 10)
    at = [TopicPartition(name, 1, 1)]
    producer.send_offsets_to_transaction(at, group.consumer_group_metadata(), WAIT_S)
    producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    send(producer, 10, 1)
    producer.abort_transaction(WAIT_S)


def read(consumer: Consumer, least: int) -> int:
    """Reads at least `least` records; then reads for 0.6 s to send heartbeats; returns the count.

    Returns a lower count than `least` if the records do not arrive within `WAIT_S` seconds.
    """
    count, until = 0, time.monotonic() + WAIT_S
    while time.monotonic() < until:
        message = consumer.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            count += 1
            if count == least:
                until = time.monotonic() + 0.6
    return count


def look_at(admin: AdminClient) -> None:
    resource = ConfigResource(ResourceType.TOPIC, name)
    done(admin.describe_configs([resource]))
    change = ConfigEntry("retention.ms", "100000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[change])
    done(admin.incremental_alter_configs([resource]))
    done(admin.create_partitions([NewPartitions(name, 3)]))
    earliest, latest = OffsetSpec.earliest(), OffsetSpec.latest()
    partitions = [TopicPartition(name, n) for n in (0, 1)]
    committed = IsolationLevel.READ_COMMITTED
    for spec in (earliest, latest, OffsetSpec.for_timestamp(1), OffsetSpec.max_timestamp()):
        asked = dict.fromkeys(partitions, spec)
        done(admin.list_offsets(asked, isolation_level=committed, request_timeout=WAIT_S))
    admin.list_consumer_groups().result(WAIT_S)
    done(admin.describe_consumer_groups([name]))
    done(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)]))
    at = ConsumerGroupTopicPartitions(name, [TopicPartition(name, 0, 3)])
    done(admin.alter_consumer_group_offsets([at]))
    admin.describe_cluster().result(WAIT_S)
    done(admin.delete_records([TopicPartition(name, 0, 2)]))
    done(admin.delete_consumer_groups([name]))


def read_as_modern_group() -> None:
    """Reads as a KIP-848 group member; librdkafka supports the protocol from Kafka 4 on."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": f"{name}-modern",
        "auto.offset.reset": "earliest",
        "group.protocol": "consumer",
    }
    modern = Consumer(settings)
    modern.subscribe([name])
    assert read(modern, 135) == 135
    modern.close()


def main() -> dict[str, int]:
    admin = AdminClient(BASE)
    done(admin.create_topics([NewTopic(name, 2, 1)]))
    admin.list_topics(timeout=WAIT_S)
    write()
    settings = {
        **{key: value for key, value in BASE.items() if key != "linger.ms"},
        "group.id": name,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 30_000,
        "heartbeat.interval.ms": 200,
    }
    group = Consumer({**settings, "isolation.level": "read_committed"})
    group.subscribe([name])
    committed = read(group, 125)
    group.commit(asynchronous=False)
    transact(group)
    committed += read(group, 10)
    group.commit(asynchronous=False)
    group.committed([TopicPartition(name, 0)], timeout=WAIT_S)
    group.close()
    everything = Consumer({**settings, "isolation.level": "read_uncommitted"})
    everything.assign([TopicPartition(name, n, 0) for n in (0, 1)])
    everything.offsets_for_times([TopicPartition(name, 0, 1)], timeout=WAIT_S)
    everything.get_watermark_offsets(TopicPartition(name, 0), timeout=WAIT_S)
    every = read(everything, 145)
    everything.close()
    if "modern" in sys.argv:
        read_as_modern_group()
    look_at(admin)
    done(admin.delete_topics([name]))
    return {"committed": committed, "every": every}


print(json.dumps(main()))
