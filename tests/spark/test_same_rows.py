"""Tests that a batch read returns the same rows as Spark's JVM connector, on real brokers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from kproto.client import Client, NewTopic, ProducerRecord
from kproto.messages import DeleteRecordsRequest
from kproto.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from kproto.records import NewRecord, encode_message_set
from tests.spark.conftest import Topics
from tests.support.spark_programs import ProgramFailed, SparkPrograms, spark_programs
from tools.kafka import KafkaNode
from tools.spark.environments import connector_jars, python_with_connector

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def beside(spark_environment: None) -> Iterator[SparkPrograms]:
    """Yields a Spark environment with both the JVM connector and kproto's data source."""
    with spark_programs(python_with_connector(), {"spark.jars": connector_jars()}) as programs:
        yield programs


def same(beside: SparkPrograms, topics: Topics, **options: str) -> int:
    """Checks that the formats `kafka` and `kproto` return the same rows; returns their number."""
    wanted = {"kafka.bootstrap.servers": topics.bootstrap, **options}
    found = beside.run("same_rows", {"options": wanted})
    theirs, ours = found.pop("types")
    assert ours == theirs
    rows: int = found["kafka"]
    assert found == {"kafka": rows, "kproto": rows, "lacking": 0, "added": 0}
    return rows


def timed(count: int = 30) -> list[ProducerRecord]:
    """Returns records on three partitions, one second apart."""
    return [
        ProducerRecord(b"%d" % n, timestamp=1_700_000_000_000 + 1_000 * n, partition=n % 3)
        for n in range(count)
    ]


def test_nulls_and_headers(beside: SparkPrograms, topics: Topics, topic_name: str) -> None:
    records = [
        ProducerRecord(b"v", b"k", [("a", b"1"), ("a", None)]),
        ProducerRecord(None, b"k"),
        ProducerRecord(b"", None, [("", b"")]),
    ]
    topics.fill(topic_name, records, partitions=2)
    assert same(beside, topics, subscribe=topic_name, includeHeaders="true") == 3
    assert same(beside, topics, subscribe=topic_name) == 3


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec(
    beside: SparkPrograms, topics: Topics, topic_name: str, compression: Any
) -> None:
    records = [ProducerRecord(b"%d" % n * 9, b"k", [("n", b"x")]) for n in range(2_000)]
    topics.fill(topic_name, records, partitions=2, compression=compression, batch_bytes=9_000)
    assert same(beside, topics, subscribe=topic_name, includeHeaders="true") == 2_000


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"startingTimestamp": "1700000010000"}, 20),
        ({"startingTimestamp": "1700000010000", "endingTimestamp": "1700000020000"}, 10),
        ({"endingTimestamp": "9999999999999"}, 30),
        ({"startingTimestamp": "1700000020000", "startingOffsets": "earliest"}, 10),
        (
            {
                "startingTimestamp": "9999999999999",
                "startingOffsetsByTimestampStrategy": "latest",
            },
            0,
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"%s": {"0": 1700000003000, "1": 0, "2": 0}}',
                "endingOffsetsByTimestamp": (
                    '{"%s": {"0": 1700000009000, "1": 1700000003000, "2": 9999999999999}}'
                ),
            },
            13,
        ),
        ({"startingOffsets": '{"%s": {"0": 3, "1": -2, "2": 9}}'}, 18),
        ({"endingOffsets": '{"%s": {"0": 3, "1": -1, "2": 9}}'}, 22),
    ],
    ids=str,
)
def test_offsets_and_times(
    beside: SparkPrograms,
    topics: Topics,
    topic_name: str,
    options: dict[str, str],
    count: int,
) -> None:
    topics.fill(topic_name, timed(), partitions=3)
    named = {
        name: value % topic_name if "%s" in value and value.count("%s") == 1 else value
        for name, value in options.items()
    }
    assert same(beside, topics, subscribe=topic_name, **named) == count


def test_a_time_that_no_record_has_reached_is_an_error_of_both(
    beside: SparkPrograms, topics: Topics, topic_name: str
) -> None:
    topics.fill(topic_name, timed(), partitions=3)
    for engine, what in (("kafka", "No offset matched"), ("kproto", "no record has the timestamp")):
        options = {
            "kafka.bootstrap.servers": topics.bootstrap,
            "subscribe": topic_name,
            "startingTimestamp": "9999999999999",
        }
        with pytest.raises(ProgramFailed, match=what):
            beside.run("counted", {"engine": engine, "options": options})


@pytest.mark.parametrize(
    "selection",
    [
        {"subscribePattern": "{topic}-[ab]"},
        {"subscribePattern": "{topic}"},
        {"subscribePattern": "{topic}-.$"},
        {"subscribePattern": "{topic}-[\\p{{Lower}}&&[^b]]\\z"},
        {"subscribe": "{topic}-a,{topic}-c"},
        {"assign": '{{"{topic}-a": [0, 2], "{topic}-b": [1]}}'},
        {"subscribe": "{topic}-a", "minPartitions": "7"},
        {"subscribe": "{topic}-a", "maxRecordsPerPartition": "4"},
    ],
    ids=str,
)
def test_topics_and_tasks(
    beside: SparkPrograms, topics: Topics, topic_name: str, selection: dict[str, str]
) -> None:
    for name in "abc":
        topics.fill(f"{topic_name}-{name}", timed(), partitions=3)
    options = {name: text.format(topic=topic_name) for name, text in selection.items()}
    assert same(beside, topics, **options) > 0


def test_a_log_whose_beginning_is_gone(
    beside: SparkPrograms, topics: Topics, topic_name: str
) -> None:
    topics.fill(topic_name, timed(), partitions=3)

    async def cut() -> None:
        async with Client(topics.bootstrap) as client:
            part = DeleteRecordsPartition(partition_index=0, offset=6)
            wanted = DeleteRecordsTopic(name=topic_name, partitions=[part])
            await client.request(DeleteRecordsRequest(topics=[wanted], timeout_ms=30_000))

    asyncio.run(cut())
    assert same(beside, topics, subscribe=topic_name) == 24
    asked = {
        "subscribe": topic_name,
        "startingOffsets": f'{{"{topic_name}": {{"0": 2, "1": 0, "2": 0}}}}',
    }
    assert same(beside, topics, **asked, failOnDataLoss="false") == 24
    for engine in ("kafka", "kproto"):
        options = {"kafka.bootstrap.servers": topics.bootstrap, **asked}
        with pytest.raises(ProgramFailed, match="failOnDataLoss"):
            beside.run("counted", {"engine": engine, "options": options})


def test_log_append_time(beside: SparkPrograms, topics: Topics, topic_name: str) -> None:
    async def make() -> None:
        async with Client(topics.bootstrap) as client:
            configs = {"message.timestamp.type": "LogAppendTime"}
            await client.create_topics(NewTopic(topic_name, partitions=3, configs=configs))
            async with client.producer() as producer:
                await producer.send_many(topic_name, timed())

    asyncio.run(make())
    assert same(beside, topics, subscribe=topic_name) == 30


@pytest.mark.parametrize(("level", "count"), [("read_committed", 5), ("read_uncommitted", 12)])
def test_transactions(
    beside: SparkPrograms, topics: Topics, topic_name: str, level: str, count: int
) -> None:
    """A transaction stays open, so read_committed returns no record after its first record."""
    topics.fill(topic_name, [], partitions=1)
    parts = [
        [[1, 2, 3], "commit"],
        [[4, 5], "abort"],
        [[6, 7], "commit"],
        [[8, 9], ""],
        [[10, 11, 12], "commit"],
    ]
    task = {"bootstrap": topics.bootstrap, "topic": topic_name, "parts": parts}
    assert beside.run("transactions", task) == 12
    options = {"subscribe": topic_name, "kafka.isolation.level": level}
    assert same(beside, topics, **options) == count


def test_a_compacted_log(beside: SparkPrograms, topics: Topics, topic_name: str) -> None:
    """Compaction removes whole batches, and records inside batches and at the ends of ranges."""
    configs = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }

    async def make() -> int:
        async with Client(topics.bootstrap) as client:
            await client.create_topics(NewTopic(topic_name, partitions=1, configs=configs))
            async with client.producer(compression="gzip") as producer:
                for turn in range(6):
                    keys = [b"%d" % (n % 7 if turn < 5 else 100) for n in range(50)]
                    await producer.send_many(
                        topic_name,
                        [ProducerRecord(b"%d" % n, key) for n, key in enumerate(keys)],
                    )
                    await asyncio.sleep(0.3)  # the next records are in another segment
            async with asyncio.timeout(90):
                while (left := await records_of(client)) > 60:  # noqa: ASYNC110 - no event
                    await asyncio.sleep(1)
            return left

    async def records_of(client: Client) -> int:
        return len([each async for each in client.consumer(topic_name, stop_at_end=True)])

    left = asyncio.run(make())
    assert same(beside, topics, subscribe=topic_name) == left
    assert same(beside, topics, subscribe=topic_name, minPartitions="11") == left
    inside = {"startingOffsets": 17, "endingOffsets": 283}
    part = {name: f'{{"{topic_name}": {{"0": {at}}}}}' for name, at in inside.items()}
    assert 0 < same(beside, topics, subscribe=topic_name, **part) < left


@pytest.fixture(scope="module")
def old_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    """Yields Kafka 3.9.2 with topic `old`: message sets, as before Kafka 0.11, then batches.

    No current broker writes message sets to its log, so the fixture replaces the log file while the
    broker is stopped.
    """
    logs = tmp_path_factory.mktemp("logs")
    first: list[NewRecord] = [(b"k%d" % n, b"magic 0, %d" % n, (), -1) for n in range(5)]
    second: list[NewRecord] = [
        (None, b"magic 1, %d" % n, (), 1_400_000_000_000 + n) for n in range(5)
    ]
    data = b""
    for number, (magic, codec) in enumerate(
        itertools.product((0, 1), ("none", "gzip", "snappy", "lz4"))
    ):
        data += encode_message_set(
            second if magic else first, magic=magic, compression=codec, base_offset=5 * number
        )
    with KafkaNode("3.9.2", config={"log.dirs": str(logs)}) as node:

        async def make() -> None:
            async with Client(node.bootstrap) as client:
                await client.create_topics(NewTopic("old", partitions=1))

        async def write() -> None:
            async with Client(node.bootstrap) as client, client.producer() as producer:
                await producer.send_many("old", [ProducerRecord(b"new")] * 3)

        asyncio.run(make())
        node.stop()
        (logs / ".kafka_cleanshutdown").unlink()  # so that the broker recovers the log
        (logs / "old-0" / "00000000000000000000.log").write_bytes(data)
        for index in (logs / "old-0").glob("*index"):
            index.unlink()
        node.start()
        asyncio.run(write())
        yield Topics(node.bootstrap)


@pytest.mark.parametrize("headers", ["true", "false"])
def test_message_sets_of_old(beside: SparkPrograms, old_log: Topics, headers: str) -> None:
    assert same(beside, old_log, subscribe="old", includeHeaders=headers) == 43
    inside = {"startingOffsets": '{"old": {"0": 7}}', "endingOffsets": '{"old": {"0": 33}}'}
    assert same(beside, old_log, subscribe="old", **inside) == 26
