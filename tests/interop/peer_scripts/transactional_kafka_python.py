"""Runs kafka-python's transactional producer: `BOOTSTRAP COMMAND ...`; prints one line of JSON.

The module `transactional_peers` describes the commands, which are the same for all clients.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

bootstrap, command, *rest = sys.argv[1:]
WAIT_MS = 60_000
PARTITIONS = range(4)


def producer_of(transactional_id: str) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=transactional_id, max_block_ms=WAIT_MS
    )


def consumer_of(group: str | None, *topics: str) -> KafkaConsumer:
    return KafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )


def send(producer: KafkaProducer, topic: str, value: str) -> None:
    for partition in PARTITIONS:
        producer.send(topic, value.encode(), partition=partition)
    producer.flush()


def at(source: str, offset: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return {TopicPartition(source, 0): OffsetAndMetadata(offset, "", -1)}


def scenes(topic: str, source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    producer = producer_of(topic)
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, topic, "committed")
    producer.commit_transaction()
    producer.begin_transaction()
    send(producer, topic, "aborted")
    producer.abort_transaction()
    consumer = consumer_of(topic, source)
    while not consumer.poll(1_000):
        pass
    group = consumer.group_metadata()
    offsets = []
    for value, offset, is_commit in (("with offsets", 5, True), ("aborted offsets", 9, False)):
        producer.begin_transaction()
        send(producer, topic, value)
        producer.send_offsets_to_transaction(at(source, offset), group)
        producer.commit_transaction() if is_commit else producer.abort_transaction()
        offsets.append(consumer.committed(TopicPartition(source, 0)))
    producer.begin_transaction()
    producer.send_offsets_to_transaction(at(source, 7), group)
    producer.commit_transaction()
    offsets.append(consumer.committed(TopicPartition(source, 0)))
    producer.begin_transaction()
    producer.commit_transaction()
    consumer.close()
    producer.begin_transaction()
    try:
        producer.send_offsets_to_transaction(at(source, 8), group)
        producer.commit_transaction()
    except KafkaError as error:
        found["left member"] = type(error).__name__
    producer.abort_transaction()
    producer.begin_transaction()
    send(producer, topic, "zombie")
    second = producer_of(topic)
    second.init_transactions()
    second.begin_transaction()
    send(second, topic, "second")
    try:
        producer.commit_transaction()
    except KafkaError as error:
        found["zombie"] = type(error).__name__
    second.commit_transaction()
    producer.close(timeout=1)
    second.close()
    return {"offsets": offsets, **found}


def transform(source: str, target: str, count: int) -> dict[str, int]:
    producer = producer_of(target)
    producer.init_transactions()
    consumer = consumer_of(target, source)
    done = commits = aborts = 0
    while done < count:
        polled = consumer.poll(500, max_records=200)
        if not polled:
            continue
        producer.begin_transaction()
        for partition, records in polled.items():
            for record in records:
                producer.send(target, record.value + b"!", partition=partition.partition)
        offsets = {
            partition: OffsetAndMetadata(records[-1].offset + 1, "", -1)
            for partition, records in polled.items()
        }
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        if (commits + aborts) % 3 == 2:
            producer.abort_transaction()
            aborts += 1
            for partition in consumer.assignment():
                consumer.seek(partition, consumer.committed(partition) or 0)
        else:
            producer.commit_transaction()
            commits += 1
            done += sum(map(len, polled.values()))
    consumer.close()
    producer.close()
    return {"commits": commits, "aborts": aborts}


def read(topics: list[str]) -> dict[str, list[tuple[int, int, str]]]:
    result = {}
    for topic in topics:
        consumer = consumer_of(None)
        partitions = [TopicPartition(topic, it) for it in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        found = []
        while any(consumer.position(it) < end for it, end in ends.items()):
            for records in consumer.poll(1_000).values():
                found += [(it.partition, it.offset, it.value.decode()) for it in records]
        consumer.close()
        result[topic] = sorted(found)
    return result


def init() -> str:
    try:
        producer_of("init").init_transactions()
    except (KafkaError, ValueError, AssertionError) as error:
        return type(error).__name__
    return ""


commands: dict[str, Any] = {
    "scenes": lambda: scenes(*rest),
    "transform": lambda: transform(rest[0], rest[1], int(rest[2])),
    "read": lambda: read(rest),
    "init": init,
}
print(json.dumps(commands[command]()))
