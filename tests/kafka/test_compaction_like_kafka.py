"""Tests that the embedded broker compacts a log as a real broker does.

Random producers write batches with few keys, tombstones and transactions to a compacted topic. The
topic is not compacted until min.cleanable.dirty.ratio becomes 0; then the logs of both brokers must
become equal: batches, offsets, records, sequences and delete horizons.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kproto.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.protocol.error_codes import error_code
from kproto.records import CREATE_TIME, NewRecord, RecordBatch, encode_batch, read_batches
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.embedded import threaded_broker
from tests.support.selection import seeds
from tools.kafka import KafkaNode

from .transaction_sides import PARTITIONS, PATIENCE_S, TransactionSide

ROUNDS: Final = (1, 12, 150)
STEPS: Final = 25
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

OPERATIONS: Final = ("plain", "plain", "plain", "idempotent", "commit", "abort", "mixed")
CODECS: Final = ("none", "none", "gzip")

#: The configs of all topics: timestamps may be in the future, so that a test can roll segments.
CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.ms": str(10 * MINUTE_MS),
    "min.cleanable.dirty.ratio": "1",
    "message.timestamp.after.max.ms": str(1000 * HOUR_MS),
}


@dataclass
class Brokers:
    """A real and the embedded broker."""

    theirs: str
    ours: str


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    try:
        node = KafkaNode("4.4.0", config={"log.cleaner.backoff.ms": "50"})
        node.start()
    except CANNOT_START as error:
        not_available("Kafka 4.4.0", error)
    try:
        with threaded_broker(BrokerSettings(log_cleaner_backoff_ms=0)) as embedded:
            yield Brokers(node.bootstrap, embedded.bootstrap)
    finally:
        node.close()


class Side(TransactionSide):
    """One broker, with a compacted topic."""

    def create(self, configs: Mapping[str, str]) -> None:
        topic = CreatableTopic(
            name=self.topic,
            num_partitions=PARTITIONS,
            replication_factor=1,
            configs=[
                CreatableTopicConfig(name=name, value=value) for name, value in configs.items()
            ],
        )
        self.ask("admin", CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
        deadline = time.monotonic() + PATIENCE_S
        while self.read(0, committed=False)[0] != "NONE":
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def alter(self, name: str, value: str) -> None:
        changed = AlterConfigsResource(
            resource_type=2,
            resource_name=self.topic,
            configs=[AlterableConfig(name=name, config_operation=0, value=value)],
        )
        answer = self.ask("admin", IncrementalAlterConfigsRequest(resources=[changed]), 1)
        assert not answer.responses[0].error_code, answer

    def write(
        self, batch: bytes, name: str = "admin", transactional_id: str | None = None
    ) -> tuple[str, int]:
        data = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )
        answer = self.ask(name, request, 12)
        result = answer.responses[0].partition_responses[0]
        return error_code(result.error_code).name, result.base_offset

    def log(self) -> list[object]:
        """Returns the batches of the log, without their times of compaction."""
        batches: list[RecordBatch] = []
        while found := self._read_from(batches[-1].next_offset if batches else 0):
            batches += found  # Kafka returns batches of one segment only
        return [self.shown_batch(it) for it in batches]

    def _read_from(self, offset: int) -> list[Any]:
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000_000)
        topics = [FetchTopic(topic=self.topic, partitions=[part])]
        request = FetchRequest(max_wait_ms=0, max_bytes=10_000_000, topics=topics)
        data = self.ask("admin", request, 12).responses[0].partitions[0]
        return list(read_batches(data.records or b""))

    def shown_batch(self, batch: Any) -> object:
        assert isinstance(batch, RecordBatch)
        batch.check()
        # The time of an append differs between the brokers.
        has_time = not batch.is_control and batch.timestamp_type == CREATE_TIME
        base = batch.base_timestamp if has_time and batch.delete_horizon is None else None
        return (
            (batch.base_offset, batch.last_offset, batch.record_count, batch.attributes),
            (self.shown(batch.producer_id), batch.producer_epoch, batch.base_sequence),
            (base, batch.max_timestamp if has_time else None),
            [
                (it.offset, it.key, it.value, it.timestamp if has_time else None, it.headers)
                for it in batch.records()
            ],
        )

    def delete_records(self, offset: int) -> str:
        part = DeleteRecordsPartition(partition_index=0, offset=offset)
        topics = [DeleteRecordsTopic(name=self.topic, partitions=[part])]
        answer = self.ask("admin", DeleteRecordsRequest(topics=topics, timeout_ms=10_000), 2)
        return error_code(answer.topics[0].partitions[0].error_code).name

    def offset_at(self, timestamp: int) -> object:
        part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=self.topic, partitions=[part])]
        )
        found = self.ask("admin", request, 7).topics[0].partitions[0]
        return error_code(found.error_code).name, found.offset


@dataclass
class Step:
    """The batches that one producer writes, and how its transaction ends."""

    operation: str
    codec: str
    batches: list[list[NewRecord]]


def random_records(draw: random.Random, time_ms: int) -> list[NewRecord]:
    headers = draw.choice(((), (("h", b"x"),)))
    return [
        (
            draw.choice([b"a", b"b", b"c", b"d", b""]),
            None if draw.random() < 0.3 else b"v%d" % draw.randrange(1000),
            headers,
            time_ms + draw.randrange(-500, 500),
        )
        for _ in range(draw.randint(1, 4))
    ]


def play(side: Side, step: Step, sequences: dict[tuple[int, int], int], tag: str) -> object:
    """Writes the batches of a step; returns the results."""
    if step.operation == "plain":
        return [side.write(encode_batch(it, compression=step.codec)) for it in step.batches]
    name = step.operation
    transactional_id = None if name == "idempotent" else f"{tag}-{name}"
    if name not in side.producers:
        side.init(name, transactional_id, 4)
    results: list[object] = []
    for records in step.batches:
        producer = side.producers[name]
        batch = encode_batch(
            records,
            compression=step.codec,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequences.get(producer, 0),
            is_transactional=transactional_id is not None,
        )
        results.append(side.write(batch, name, transactional_id))
        sequences[producer] = sequences.get(producer, 0) + len(records)
    if transactional_id is not None:
        is_commit = name == "commit" or (name == "mixed" and len(step.batches[0]) % 2 == 0)
        results.append(side.end(name, transactional_id, 5, committed=is_commit))
    return results


def test_compacted_topic_refuses_equal_requests(brokers: Brokers) -> None:
    """Kafka refuses records without keys, batches above segment.bytes, and DeleteRecords."""
    answers = []
    for bootstrap in (brokers.theirs, brokers.ours):
        side = Side(bootstrap, f"t-{uuid.uuid4().hex[:8]}")
        try:
            limits = {"segment.bytes": "1048576", "max.message.bytes": "2000000"}
            side.create({**CONFIGS, **limits})
            sizes = 1_048_400, 1_048_600
            results: list[object] = [side.write(encode_batch([(None, b"v", (), 1)]))]
            results += [side.write(encode_batch([(b"k", bytes(size), (), 1)])) for size in sizes]
            answers.append([*results, side.delete_records(1)])
        finally:
            side.close()
    assert answers[0] == answers[1]
    assert answers[1] == [
        ("INVALID_RECORD", -1),
        ("NONE", 0),
        ("RECORD_LIST_TOO_LARGE", -1),
        "POLICY_VIOLATION",
    ]


def differences(ours: list[object], theirs: list[object]) -> list[object]:
    """Returns the batches that only one of the two logs has, in pairs."""
    pairs = [each for each in zip_longest(ours, theirs) if each[0] != each[1]]
    return [(len(ours), len(theirs)), *pairs[:6]] if pairs else []


def wait_for_equal_logs(theirs: Side, ours: Side) -> None:
    """Waits until the real broker has compacted its log as the embedded broker did."""
    expected = ours.log()
    deadline = time.monotonic() + PATIENCE_S
    while (found := theirs.log()) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    different = differences(expected, found)
    assert not different, "\n".join(map(repr, different))


@pytest.mark.parametrize("seed", seeds(*ROUNDS))
def test_random_logs_are_compacted_equally(brokers: Brokers, seed: int) -> None:
    draw, tag = random.Random(seed), uuid.uuid4().hex[:8]
    sides = [Side(bootstrap, f"t-{tag}") for bootstrap in (brokers.theirs, brokers.ours)]
    theirs, ours = sides
    sequences: dict[Side, dict[tuple[int, int], int]] = {theirs: {}, ours: {}}
    lag_ms, ago_ms = draw.choice([(0, 0), (0, 0), (8 * HOUR_MS, 10 * HOUR_MS)])
    start_ms = at_ms = time.time_ns() // 1_000_000 - ago_ms
    configs = {
        **CONFIGS,
        "min.compaction.lag.ms": str(lag_ms),
        "delete.retention.ms": draw.choice(["0", "0", "86400000"]),
        "message.timestamp.type": draw.choice(["CreateTime"] * 3 + ["LogAppendTime"]),
        "compression.type": draw.choice(["producer", "producer", "gzip"]),
    }
    if configs["message.timestamp.type"] == "LogAppendTime":
        configs["segment.ms"] = "1"  # each batch has another time
    try:
        for side in sides:
            side.create(configs)
            side.prepare([f"{tag}-{name}" for name in ("commit", "abort", "mixed")], [])
        for _ in range(3):
            for _ in range(STEPS):
                at_ms += draw.randrange(4) * 3 * MINUTE_MS
                step = Step(
                    draw.choice(OPERATIONS),
                    draw.choice(CODECS),
                    [random_records(draw, at_ms) for _ in range(draw.randint(1, 2))],
                )
                expected, found = (play(it, step, sequences[it], tag) for it in sides)
                assert found == expected, (seed, step)
            at_ms += HOUR_MS
            last = Step("plain", "none", [random_records(draw, at_ms)])
            time.sleep(0.01)  # so that the batch has another LogAppendTime
            for side in sides:
                play(side, last, {}, tag)
            if configs["message.timestamp.type"] == "CreateTime":
                assert differences(ours.log(), theirs.log()) == [], "nothing is compacted yet"
            for side in sides:
                side.alter("min.cleanable.dirty.ratio", "0")
            wait_for_equal_logs(theirs, ours)
            for side in sides:
                side.alter("min.cleanable.dirty.ratio", "1")
            for read in ("active_producers", "latest"):
                answers = [
                    it.active_producers(0)
                    if read == "active_producers"
                    else it.latest(0, committed=True)
                    for it in sides
                ]
                assert answers[0] == answers[1], (seed, read)
            if configs["message.timestamp.type"] == "CreateTime":
                for timestamp in (start_ms, (start_ms + at_ms) // 2, at_ms):
                    answers = [it.offset_at(timestamp) for it in sides]
                    assert answers[0] == answers[1], (seed, timestamp)
    finally:
        for side in sides:
            side.close()
