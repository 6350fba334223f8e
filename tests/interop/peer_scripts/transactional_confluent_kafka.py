"""Runs librdkafka's transactional producer: `BOOTSTRAP COMMAND ...`; prints one line of JSON.

The module `transactional_peers` describes the commands, which are the same for all clients.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

bootstrap, command, *rest = sys.argv[1:]
WAIT_S = 60.0
ABORT_S = 2.0
PARTITIONS = range(4)


def producer_of(transactional_id: str) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})


def consumer_of(group: str, **more: object) -> Consumer:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
    return Consumer({**settings, **more})


def send(producer: Producer, topic: str, value: str) -> None:
    for partition in PARTITIONS:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(WAIT_S) == 0


def abort(producer: Producer) -> None:
    """Aborts the transaction; if `abort_transaction` times out, calls it again.

    librdkafka 2.16 purges the queued messages only when the call begins. A batch in flight can be
    answered with NOT_LEADER_OR_FOLLOWER during the call. librdkafka then queues the batch again,
    never sends it, and waits for it until the call times out. The second call purges this batch.
    """
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            producer.abort_transaction(ABORT_S)
            return
        except KafkaException as error:
            if error.args[0].code() != KafkaError._TIMED_OUT or time.monotonic() > deadline:
                raise


def committed(consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Returns the committed offsets; retries when the coordinator moves, as librdkafka does not."""
    while True:
        try:
            return list(consumer.committed(partitions, timeout=WAIT_S))
        except KafkaException as error:
            if not error.args[0].retriable() and error.args[0].code() != KafkaError.NOT_COORDINATOR:
                raise
            time.sleep(0.1)


def committed_offset(consumer: Consumer, topic: str) -> int:
    (found,) = committed(consumer, [TopicPartition(topic, 0)])
    return int(found.offset)


def name_of(error: KafkaException) -> str:
    cause: KafkaError = error.args[0]
    return str(cause.name())


def scenes(topic: str, source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    producer = producer_of(topic)
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    send(producer, topic, "committed")
    producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    send(producer, topic, "aborted")
    abort(producer)
    consumer = consumer_of(topic)
    consumer.subscribe([source])
    while consumer.poll(1.0) is None:
        pass
    group = consumer.consumer_group_metadata()
    offsets = []
    for value, offset, is_commit in (("with offsets", 5, True), ("aborted offsets", 9, False)):
        producer.begin_transaction()
        send(producer, topic, value)
        producer.send_offsets_to_transaction([TopicPartition(source, 0, offset)], group, WAIT_S)
        producer.commit_transaction(WAIT_S) if is_commit else abort(producer)
        offsets.append(committed_offset(consumer, source))
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(source, 0, 7)], group, WAIT_S)
    producer.commit_transaction(WAIT_S)
    offsets.append(committed_offset(consumer, source))
    producer.begin_transaction()
    producer.commit_transaction(WAIT_S)
    consumer.close()
    producer.begin_transaction()
    try:
        producer.send_offsets_to_transaction([TopicPartition(source, 0, 8)], group, WAIT_S)
    except KafkaException as error:
        found["left member"] = name_of(error)
    abort(producer)
    producer.begin_transaction()
    send(producer, topic, "zombie")
    second = producer_of(topic)
    second.init_transactions(WAIT_S)
    second.begin_transaction()
    send(second, topic, "second")
    try:
        producer.commit_transaction(WAIT_S)
    except KafkaException as error:
        found["zombie"] = name_of(error)
    second.commit_transaction(WAIT_S)
    return {"offsets": offsets, **found}


def transform(source: str, target: str, count: int) -> dict[str, int]:
    producer = producer_of(target)
    producer.init_transactions(WAIT_S)
    consumer = consumer_of(target)
    consumer.subscribe([source])
    done = commits = aborts = 0
    while done < count:
        messages = consumer.consume(200, 0.5)
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            assert message.error() is None, message.error()
            value = message.value() + b"!"
            producer.produce(target, value, partition=message.partition())
        assigned = consumer.assignment()
        producer.send_offsets_to_transaction(
            consumer.position(assigned), consumer.consumer_group_metadata(), WAIT_S
        )
        if (commits + aborts) % 3 == 2:
            abort(producer)
            aborts += 1
            for found in committed(consumer, assigned):
                consumer.seek(TopicPartition(source, found.partition, max(0, found.offset)))
        else:
            producer.commit_transaction(WAIT_S)
            commits += 1
            done += len(messages)
    consumer.close()
    return {"commits": commits, "aborts": aborts}


def read(topics: list[str]) -> dict[str, list[tuple[int, int, str]]]:
    result = {}
    for topic in topics:
        consumer = consumer_of("none", **{"enable.partition.eof": True})
        partitions = consumer.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, it, 0) for it in partitions])
        found = []
        at_end: set[int] = set()
        while len(at_end) < len(partitions):
            message = consumer.poll(WAIT_S)
            assert message is not None, "no end of the partitions"
            error = message.error()
            if error is None:
                found.append((message.partition(), message.offset(), message.value().decode()))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                at_end.add(message.partition())
        consumer.close()
        result[topic] = sorted(found)
    return result


def init() -> str:
    try:
        producer_of("init").init_transactions(WAIT_S)
    except KafkaException as error:
        return name_of(error)
    return ""


commands: dict[str, Any] = {
    "scenes": lambda: scenes(*rest),
    "transform": lambda: transform(rest[0], rest[1], int(rest[2])),
    "read": lambda: read(rest),
    "init": init,
}
print(json.dumps(commands[command]()))
