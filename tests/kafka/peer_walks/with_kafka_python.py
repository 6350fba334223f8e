"""Runs kafka-python's walk: `BOOTSTRAP NAME`; topic and group have this name.

A walk is a scripted scenario that calls most APIs. Prints one line of JSON: how many records
kafka-python read with read_committed, and how many with read_uncommitted.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from kafka.structs import OffsetAndMetadata

bootstrap, name = sys.argv[1:3]
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
HEADERS = [("h", b"value"), ("h", b"")]
WAIT_S = 30


def send(producer: KafkaProducer, count: int, partition: int = 0) -> None:
    sent = [
        producer.send(
            name,
            b"value %d " % n * 20,
            key=b"key" if n % 2 else None,
            partition=partition,
            headers=HEADERS if n % 3 else None,
        )
        for n in range(count)
    ]
    producer.flush(WAIT_S)
    for future in sent:
        future.get(WAIT_S)


def write(count: int, partition: int = 0, **settings: Any) -> None:
    settings = {"bootstrap_servers": bootstrap, "linger_ms": 100, **settings}
    producer = KafkaProducer(**settings)
    send(producer, count, partition)
    producer.close()


def transact(group: KafkaConsumer) -> None:
    settings = {"transactional_id": name, "compression_type": "lz4", "linger_ms": 100}
    producer = KafkaProducer(bootstrap_servers=bootstrap, **settings)
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, 10)
    at = {TopicPartition(name, 1): OffsetAndMetadata(1, "", -1)}
    producer.send_offsets_to_transaction(at, group.group_metadata())
    producer.commit_transaction()
    producer.begin_transaction()
    send(producer, 10, 1)
    producer.abort_transaction()
    producer.close()


def read(consumer: KafkaConsumer, least: int) -> int:
    """Reads at least `least` records; then reads for 0.6 s to send heartbeats; returns the count.

    Raises TimeoutError if the records do not arrive within `WAIT_S` seconds. Each poll may take all
    the time left, because a short poll can end during a rejoin: kafka-python 3.0 rejoins the group
    if it learns of partitions after its first assignment. If a poll ends during this rejoin, later
    polls neither complete the rejoin nor send heartbeats. Then kafka-python reads nothing, and the
    broker removes the member when the session expires.
    """
    count, until = 0, time.monotonic() + WAIT_S
    while (left := until - time.monotonic()) > 0:
        came = sum(map(len, consumer.poll(left * 1000).values()))
        if count < least <= count + came:
            until = time.monotonic() + 0.6
        count += came
    if count < least:
        raise TimeoutError(f"{count} records of {least} came in {WAIT_S} s")
    return count


def look_at(admin: KafkaAdminClient) -> None:
    admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    changed = ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "100000"})
    admin.alter_configs([changed])
    admin.create_partitions({name: NewPartitions(3)})
    admin.describe_cluster()
    admin.describe_topics([name])
    admin.describe_log_dirs()
    admin.describe_metadata_quorum()
    admin.list_topics()
    for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetSpec.MAX_TIMESTAMP):
        admin.list_partition_offsets({TopicPartition(name, 0): spec})
    admin.list_groups()
    admin.describe_groups([name])
    admin.list_group_offsets({name: None})
    admin.describe_producers([TopicPartition(name, 0)])
    admin.list_transactions()
    admin.describe_transactions([name])
    admin.delete_records({TopicPartition(name, 0): 2})
    admin.delete_groups([name])


def main() -> dict[str, int]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(name, 2, 1)])
    for number, codec in enumerate(CODECS):
        write(20, number % 2, compression_type=codec, enable_idempotence=False)
    write(5, acks=0, enable_idempotence=False)
    write(20, enable_idempotence=True)
    settings = {
        "bootstrap_servers": bootstrap,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    group = KafkaConsumer(
        name,
        group_id=name,
        isolation_level="read_committed",
        session_timeout_ms=30_000,
        heartbeat_interval_ms=200,
        **settings,
    )
    committed = read(group, 125)
    group.commit()
    transact(group)
    committed += read(group, 10)
    group.commit()
    group.committed(TopicPartition(name, 0))
    group.close()
    everything = KafkaConsumer(group_id=None, **settings)
    partitions = [TopicPartition(name, n) for n in (0, 1)]
    everything.assign(partitions)
    everything.beginning_offsets(partitions)
    everything.end_offsets(partitions)
    everything.offsets_for_times(dict.fromkeys(partitions, 1))
    every = read(everything, 145)
    everything.close()
    look_at(admin)
    admin.delete_topics([name])
    admin.close()
    return {"committed": committed, "every": every}


print(json.dumps(main()))
