"""Tests the data source on a real broker: Spark reads the records that were produced."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest
from kproto_pipeline.columns import EVENT_SCHEMA, RECORD_SCHEMA
from kproto_pipeline.spark.client_pool import run_on_loop, with_client
from kproto_pipeline.spark.data_source import KprotoDataSource
from kproto_pipeline.spark.options.option_table import parse_read_options
from kproto_pipeline.spark.planning.offset_ranges import DataLossError, OffsetRange
from kproto_pipeline.spark.planning.offset_reader import plan_batch
from kproto_pipeline.spark.reading.range_fetcher import fetch_ranges

from kproto.client import Client, CompressionName, NewTopic, ProducerRecord
from kproto.messages import DeleteRecordsRequest
from kproto.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from tests.spark.conftest import Topics
from tests.support.leaders import leader_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.filterwarnings("ignore:::pyspark")]

TIME = 1_700_000_000_123


def numbered(count: int, partitions: int = 1) -> list[ProducerRecord]:
    return [
        ProducerRecord(b"value %d" % n, b"key %d" % n, partition=n % partitions, timestamp=TIME)
        for n in range(count)
    ]


def reader(spark: Any, topics: Topics, topic: str, **options: str) -> Any:
    choice = {} if "assign" in options or "subscribePattern" in options else {"subscribe": topic}
    return (
        spark.read.format("kproto")
        .option("kafka.bootstrap.servers", topics.bootstrap)
        .options(**choice, **options)
    )


def test_the_schema_is_that_of_the_jvm_connector() -> None:
    source = KprotoDataSource({"kafka.bootstrap.servers": "h:1", "subscribe": "t"})
    assert source.schema().simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )
    with_headers = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "includeheaders": "true"}
    headers = KprotoDataSource(with_headers).schema()["headers"]
    assert headers.dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_spark_and_arrow_agree_on_every_column() -> None:
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    for schema in (RECORD_SCHEMA, EVENT_SCHEMA):
        assert to_arrow_schema(from_arrow_schema(schema), timezone="UTC").equals(schema)


@pytest.mark.parametrize(
    "compression",
    [
        "none",
        "zstd",
        *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("gzip", "snappy", "lz4")),
    ],
)
def test_rows_are_what_was_produced(
    spark: Any, topics: Topics, topic_name: str, compression: CompressionName
) -> None:
    records = [
        ProducerRecord(b"v", b"k", [("a", b"1"), ("a", None), ("ä", b"")], timestamp=TIME),
        ProducerRecord(None, b"tombstone", timestamp=TIME + 1),
        ProducerRecord(b"", None, timestamp=TIME + 2),
        ProducerRecord(None, None, timestamp=TIME + 3),
        ProducerRecord(b"long " * 50_000, b"", [("h", b"x" * 300)], timestamp=TIME + 4),
    ]
    topics.fill(topic_name, records, compression=compression)
    rows = reader(spark, topics, topic_name, includeHeaders="true").load().orderBy("offset")
    assert [row.asDict(recursive=True) for row in rows.collect()] == [
        {
            "key": record.key,
            "value": record.value,
            "topic": topic_name,
            "partition": 0,
            "offset": offset,
            "timestamp": datetime.fromtimestamp((TIME + offset) / 1000, UTC).replace(tzinfo=None),
            "timestampType": 0,
            "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
        }
        for offset, record in enumerate(records)
    ]


def test_many_partitions_and_fetches(spark: Any, topics: Topics, topic_name: str) -> None:
    """With small batches, small fetches and a small buffer, every offset is read once."""
    topics.fill(topic_name, numbered(9_000, 3), partitions=3, batch_bytes=1_000)
    options = {"kafka.max.partition.fetch.bytes": "5000", "bufferBytes": "10000"}
    rows = reader(spark, topics, topic_name, **options).load().collect()
    assert sorted((row["partition"], row["offset"]) for row in rows) == [
        (partition, offset) for partition in range(3) for offset in range(3_000)
    ]
    assert {row["value"] for row in rows} == {b"value %d" % n for n in range(9_000)}


def test_offsets_and_assign_select_rows(spark: Any, topics: Topics, topic_name: str) -> None:
    topics.fill(topic_name, numbered(300, 3), partitions=3, batch_bytes=1_000)
    rows = reader(
        spark,
        topics,
        topic_name,
        assign=json.dumps({topic_name: [0, 2, 7]}),  # the topic has no partition 7
        startingOffsets=json.dumps({topic_name: {"0": 17, "2": -2}}),
        endingOffsets=json.dumps({topic_name: {"0": -1, "2": 9}}),
    ).load()
    found = sorted((row["partition"], row["offset"]) for row in rows.collect())
    assert found == [(0, n) for n in range(17, 100)] + [(2, n) for n in range(9)]


def test_subscribe_pattern_selects_topics(spark: Any, topics: Topics, topic_name: str) -> None:
    topics.fill(f"{topic_name}-1", numbered(3))
    topics.fill(f"{topic_name}-2", numbered(4))
    topics.fill(f"{topic_name}-2-not", numbered(5))
    rows = reader(spark, topics, topic_name, subscribePattern=f"{topic_name}-[0-9]$").load()
    counted = {row["topic"]: row["count"] for row in rows.groupBy("topic").count().collect()}
    assert counted == {f"{topic_name}-1": 3, f"{topic_name}-2": 4}


def test_min_partitions_splits_ranges(spark: Any, topics: Topics, topic_name: str) -> None:
    topics.fill(topic_name, numbered(1_000), batch_bytes=2_000)
    rows = reader(spark, topics, topic_name, minPartitions="7").load()
    assert rows.rdd.getNumPartitions() == 7
    assert sorted(row["offset"] for row in rows.collect()) == list(range(1_000))


def test_an_empty_topic_gives_no_rows(spark: Any, topics: Topics, topic_name: str) -> None:
    topics.fill(topic_name, [], partitions=2)
    assert reader(spark, topics, topic_name).load().collect() == []


def test_schema_selects_columns(spark: Any, topics: Topics, topic_name: str) -> None:
    topics.fill(topic_name, numbered(3))
    rows = reader(spark, topics, topic_name).schema("offset bigint not null, value binary").load()
    assert [tuple(row) for row in rows.collect()] == [(n, b"value %d" % n) for n in range(3)]


def test_limit_ends_the_read_early(spark: Any, topics: Topics, topic_name: str) -> None:
    topics.fill(topic_name, numbered(5_000), batch_bytes=1_000)
    options = {"kafka.max.partition.fetch.bytes": "2000", "bufferBytes": "4000"}
    assert len(reader(spark, topics, topic_name, **options).load().limit(3).collect()) == 3


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"includeHeader": "true"}, "option includeHeader.* is not known"),
        ({"endingOffsets": '{"%s": {"0": 99}}'}, "offsets 0 up to 99 were requested"),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)
            for each in (({"startingOffsets": "latest"}, "startingOffsets cannot be 'latest'"),)
        ),
    ],
)
def test_unreadable_offsets_are_an_error(
    spark: Any, topics: Topics, topic_name: str, options: dict[str, str], what: str
) -> None:
    topics.fill(topic_name, numbered(3))
    filled = {name: text.replace("%s", topic_name) for name, text in options.items()}
    with pytest.raises(Exception, match=f"(?is){what}"):
        reader(spark, topics, topic_name, **filled).load().collect()


@pytest.mark.exhaustive
def test_unknown_topic_is_named(spark: Any, topics: Topics, topic_name: str) -> None:
    with pytest.raises(Exception, match=f"UNKNOWN_TOPIC_OR_PARTITION.*{topic_name}"):
        reader(spark, topics, topic_name).load().collect()


def test_closed_port_is_named(spark: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(Exception, match=f"(?s)BrokerConnectionError.*{address}"):
        reader(spark, Topics(address), "any").load().collect()


def test_unknown_column_is_named(spark: Any, topics: Topics, topic_name: str) -> None:
    topics.fill(topic_name, numbered(1))
    with pytest.raises(Exception, match="column 'valu' is not one of key, value"):
        reader(spark, topics, topic_name).schema("valu binary").load().collect()
    with pytest.raises(Exception, match="column 'value' is string; it must be binary"):
        reader(spark, topics, topic_name).schema("value string").load().collect()


def delete_records(topics: Topics, topic: str, before: int) -> None:
    async def run() -> None:
        async with Client(topics.bootstrap) as client:
            leader = await leader_of(client, topic, 0)
            part = DeleteRecordsPartition(partition_index=0, offset=before)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=10_000
            )
            answer = await client.request(request, broker=leader)
            assert answer.topics[0].partitions[0].error_code == 0

    asyncio.run(run())


def test_lost_records_fail_or_are_skipped(spark: Any, topics: Topics, topic_name: str) -> None:
    topics.fill(topic_name, numbered(50))
    delete_records(topics, topic_name, 20)
    assert reader(spark, topics, topic_name).load().count() == 30
    start = {"startingOffsets": json.dumps({topic_name: {"0": 5}})}
    with pytest.raises(Exception, match=r"offsets 5 up to 50 .* holds 20 up to 50"):
        reader(spark, topics, topic_name, **start).load().collect()
    rows = reader(spark, topics, topic_name, failOnDataLoss="false", **start).load()
    assert sorted(row["offset"] for row in rows.collect()) == list(range(20, 50))


async def fetching() -> int:
    """Returns how many ranges of offsets this process is fetching now."""
    running = [repr(task.get_coro()) for task in asyncio.all_tasks()]
    return sum("_RangeFetch._run" in each for each in running)


@pytest.mark.parametrize("fail", [True, False])
def test_records_lost_after_planning(topics: Topics, topic_name: str, fail: bool) -> None:
    """The range begins before the log start offset, as if records were deleted after planning."""
    topics.fill(topic_name, numbered(50))
    delete_records(topics, topic_name, 20)
    options = parse_read_options(
        {
            "kafka.bootstrap.servers": topics.bootstrap,
            "subscribe": topic_name,
            "failOnDataLoss": str(fail),
        }
    )
    arriving = fetch_ranges(options, [OffsetRange(topic_name, 0, 5, 50)])
    if fail:
        with pytest.raises(DataLossError, match=r"offset 5 is out of range.*failOnDataLoss"):
            list(arriving)
    else:
        assert b"value 20" in b"".join(fetched.records for _, fetched in arriving)
    assert run_on_loop(fetching()) == 0


def test_closing_a_read_cancels_its_fetches(topics: Topics, topic_name: str) -> None:
    """The reader is closed while its buffer is full and fetching pauses."""
    topics.fill(topic_name, numbered(5_000), batch_bytes=1_000)
    options = parse_read_options(
        {
            "kafka.bootstrap.servers": topics.bootstrap,
            "subscribe": topic_name,
            "kafka.max.partition.fetch.bytes": "2000",
            "bufferBytes": "5000",
        }
    )
    arriving = fetch_ranges(options, [OffsetRange(topic_name, 0, 0, 5_000)])
    assert next(arriving)
    assert run_on_loop(fetching()) == 1
    arriving.close()
    assert run_on_loop(fetching()) == 0


@pytest.mark.parametrize("fail", [True, False])
def test_topic_recreated_during_the_read_is_data_loss(
    topics: Topics, topic_name: str, fail: bool
) -> None:
    """The recreated topic has records at the planned offsets; the read must not return them."""
    topics.fill(topic_name, numbered(2_000), batch_bytes=1_000)
    options = parse_read_options(
        {
            "kafka.bootstrap.servers": topics.bootstrap,
            "subscribe": topic_name,
            "kafka.max.partition.fetch.bytes": "2000",
            "bufferBytes": "5000",
            "failOnDataLoss": str(fail),
        }
    )
    (wanted,) = with_client(options.client, lambda client: plan_batch(client, options))
    arriving = fetch_ranges(options, [wanted])
    read = [next(arriving)]
    make_anew(topics, topic_name, b"anew")
    with pytest.raises(DataLossError, match=r"recreated.*load") if fail else nullcontext():
        read.extend(arriving)
    assert b"anew" not in b"".join(fetched.records for _, fetched in read)
    with pytest.raises(DataLossError, match="recreated") if fail else nullcontext():
        assert list(fetch_ranges(options, [wanted])) == [], "a task that begins later"


def make_anew(topics: Topics, topic: str, value: bytes) -> None:
    async def run() -> None:
        async with Client(topics.bootstrap) as client:
            await client.delete_topics(topic)
            # Kafka may not have deleted the topic yet.
            await client.retrying(lambda: client.create_topics(NewTopic(topic, partitions=1)))
            async with client.producer() as producer:
                await producer.send_many(topic, [ProducerRecord(value)] * 2_000)

    asyncio.run(run())
