"""Tests rows written to topics and read back, in batches and streams; errors name the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kproto_cloudevents import CloudEvent, to_kafka

from kproto.client import ProducerRecord
from tests.spark.conftest import Topics
from tests.support.selection import rest_slow

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:::pyspark")]

SCHEMA = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, topic string, "
    "partition int"
)


def target(topics: Topics) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topics.bootstrap}


def read(spark: Any, topics: Topics, topic: str) -> list[Any]:
    frame = (
        spark.read.format("kproto")
        .options(**target(topics), subscribe=topic, includeHeaders="true")
        .load()
    )
    found: list[Any] = frame.orderBy("partition", "offset").collect()
    return found


def test_written_rows_are_read_again(spark: Any, embedded_topics: Topics, topic_name: str) -> None:
    embedded_topics.fill(topic_name, [], partitions=3)
    rows = [
        (b"k", b"v", [("a", b"1"), ("a", None)], topic_name, 0),
        (None, None, None, topic_name, 0),
        (b"", b"", [], topic_name, 2),
        (None, b"last", [("ä", b"")], topic_name, 0),
    ]
    frame = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    frame.write.format("kproto").mode("append").options(**target(embedded_topics)).save()
    found = [
        (
            row["key"],
            row["value"],
            [(each["key"], each["value"]) for each in row["headers"] or ()],
            row["partition"],
        )
        for row in read(spark, embedded_topics, topic_name)
    ]
    assert found == [
        (b"k", b"v", [("a", b"1"), ("a", None)], 0),
        (None, None, [], 0),
        (None, b"last", [("ä", b"")], 0),
        (b"", b"", [], 2),
    ]


@pytest.mark.exhaustive
def test_key_selects_the_partition_of_the_client(
    spark: Any, embedded_topics: Topics, topic_name: str
) -> None:
    keys = [b"key-%d" % n for n in range(200)]
    embedded_topics.fill(f"{topic_name}-a", [ProducerRecord(b"", k) for k in keys], partitions=5)
    embedded_topics.fill(f"{topic_name}-b", [], partitions=5)
    frame = spark.createDataFrame([(key.decode(), "") for key in keys], "key string, value string")
    writing = frame.write.format("kproto").mode("append").options(**target(embedded_topics))
    writing.option("topic", f"{topic_name}-b").save()
    ours, theirs = (
        {row["key"]: row["partition"] for row in read(spark, embedded_topics, f"{topic_name}-{n}")}
        for n in "ba"
    )
    assert len(theirs) == 200
    assert ours == theirs


@pytest.mark.parametrize(
    "compression",
    rest_slow(["zstd", "none", "gzip", "snappy", "lz4"], 1, 1),
)
def test_every_codec(
    spark: Any, embedded_topics: Topics, topic_name: str, compression: str
) -> None:
    embedded_topics.fill(topic_name, [], partitions=2)
    frame = spark.range(5_000).selectExpr("cast(id as string) as value")
    options = {**target(embedded_topics), "kafka.compression.type": compression}
    frame.write.format("kproto").mode("append").options(**options, topic=topic_name).save()
    rows = read(spark, embedded_topics, topic_name)
    assert sorted(int(row["value"]) for row in rows) == list(range(5_000))


def test_stream_from_topic_to_topic(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    records = [ProducerRecord(b"%d" % n, b"%d" % (n % 7), [("n", b"x")]) for n in range(50)]
    embedded_topics.fill(f"{topic_name}-a", records, partitions=2)
    embedded_topics.fill(f"{topic_name}-b", [], partitions=2)
    source = {
        **target(embedded_topics),
        "subscribe": f"{topic_name}-a",
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": "20",
    }
    frame = spark.readStream.format("kproto").options(**source).load()
    query = (
        frame.writeStream.format("kproto")
        .options(**target(embedded_topics), topic=f"{topic_name}-b")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    before, behind = (
        [(row["partition"], row["key"], row["value"], row["headers"]) for row in rows]
        for rows in (read(spark, embedded_topics, f"{topic_name}-{n}") for n in "ab")
    )
    assert len(before) == 50
    assert behind == before


@pytest.mark.parametrize("mode", rest_slow(["binary", "structured"], 1, 1))
def test_events_come_back_as_they_were(
    spark: Any, embedded_topics: Topics, topic_name: str, mode: Any
) -> None:
    def record(number: int, subject: str) -> ProducerRecord:
        event = CloudEvent(
            id=str(number),
            source="/test",
            type="org.example",
            subject=subject,
            time="2013-01-01T10:15:00.5Z",
            datacontenttype="application/json",
            traceparent="00-x",
            data={"n": number},
        )
        written = to_kafka(event, mode=mode, key=b"%d" % number)
        return ProducerRecord(written.value, written.key, written.headers)

    records = [record(n, "ä" if n % 3 else "plain") for n in range(30)]
    records.append(ProducerRecord(b"\xff", b"k", [("ce_id", None)]))
    embedded_topics.fill(f"{topic_name}-a", records, partitions=2)
    embedded_topics.fill(f"{topic_name}-b", [], partitions=2)

    def events(which: str) -> list[Any]:
        frame = (
            spark.read.format("kproto")
            .options(**target(embedded_topics), cloudEvents="true")
            .option("subscribe", f"{topic_name}-{which}")
            .load()
            .drop("topic", "timestamp")
        )
        found: list[Any] = frame.orderBy("partition", "offset").collect()
        return found

    source = spark.read.format("kproto").options(**target(embedded_topics), cloudEvents="true")
    writing = source.option("subscribe", f"{topic_name}-a").load().write.format("kproto")
    writing.mode("append").options(**target(embedded_topics), cloudEvents=mode).option(
        "topic", f"{topic_name}-b"
    ).save()
    before = events("a")
    assert [row["error"] is None for row in before].count(False) == 1
    assert events("b") == before
    if mode == "binary":
        first, second = (
            [
                (row["key"], row["value"], sorted(row["headers"] or ()))
                for row in read(spark, embedded_topics, f"{topic_name}-{n}")
            ]
            for n in "ab"
        )
        assert first == second


@pytest.mark.exhaustive
def test_events_with_all_their_headers_are_the_same_records(
    spark: Any, embedded_topics: Topics, topic_name: str
) -> None:
    headers = [
        ("ce_time", b"2013-01-01T11:15:00+01:00"),
        ("x", None),
        ("content-type", b"text/plain"),
        ("ce_id", b"1"),
        ("ce_source", b"/s"),
        ("ce_type", b"t"),
        ("ce_specversion", b"1.0"),
    ]
    embedded_topics.fill(f"{topic_name}-a", [ProducerRecord(b"d", b"k", headers)])
    embedded_topics.fill(f"{topic_name}-b", [])
    options = {**target(embedded_topics), "cloudEvents": "true"}
    source = spark.read.format("kproto").options(**options, includeHeaders="true")
    events = source.option("subscribe", f"{topic_name}-a").load()
    writing = events.write.format("kproto").mode("append").options(**options)
    writing.option("topic", f"{topic_name}-b").save()
    (row,) = read(spark, embedded_topics, f"{topic_name}-b")
    assert (row["key"], row["value"]) == (b"k", b"d")
    assert [(each["key"], each["value"]) for each in row["headers"]] == headers


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ((b"k", b"v", None, None, None), r"row 1 of this task \(key b'k'\): its topic is null"),
        ((None, b"v", None, "{topic}", 9), r"row 1 .*\(no key\): topic .* has no partition 9"),
        pytest.param(
            (None, b"v", None, "{topic}", -1),
            "row 1 .*: the partition -1 is negative",
            marks=pytest.mark.exhaustive,
        ),
        ((None, bytes(2_000_000), None, "{topic}", None), "row 1 .*not acknowledged.*TOO_LARGE"),
        pytest.param(
            (None, b"v", None, "not-there", None),
            "row 1 .*for topic 'not-there'",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_unwritable_row_is_named(
    spark: Any, embedded_topics: Topics, topic_name: str, row: tuple[Any, ...], what: str
) -> None:
    embedded_topics.fill(topic_name, [])
    wrong = tuple(topic_name if each == "{topic}" else each for each in row)
    frame = spark.createDataFrame([(None, b"good", None, topic_name, 0), wrong], SCHEMA)
    with pytest.raises(Exception, match=what):
        frame.coalesce(1).write.format("kproto").mode("append").options(
            **target(embedded_topics)
        ).save()


@pytest.mark.parametrize(
    ("columns", "options", "what"),
    [
        ("value int", {"topic": "t"}, "column 'value' is int32; it must be binary or string"),
        ("value string", {"topics": "t"}, "option topics is not known .*nearest: topic"),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)
            for each in (
                ("key string", {"topic": "t"}, "no column 'value'"),
                ("value string", {}, "the rows have no topic"),
                ("value string, heders string", {"topic": "t"}, "column 'heders' cannot be"),
                (
                    "value string",
                    {"topic": "t", "kafka.key.serializer": "x"},
                    "is not accepted: keys are sent",
                ),
                ("value string", {"topic": "t", "cloudEvents": "x"}, "cloudEvents is 'x'"),
            )
        ),
    ],
)
def test_wrong_options_and_columns_fail_before_any_task(
    spark: Any, columns: str, options: dict[str, str], what: str
) -> None:
    frame = spark.createDataFrame([], columns)
    writing = frame.write.format("kproto").mode("append")
    with pytest.raises(Exception, match=what):
        writing.option("kafka.bootstrap.servers", "localhost:1").options(**options).save()


def test_nothing_is_overwritten(spark: Any) -> None:
    frame = spark.createDataFrame([("v",)], "value string")
    writing = frame.write.format("kproto").mode("overwrite").option("topic", "t")
    with pytest.raises(Exception, match="never overwritten"):
        writing.option("kafka.bootstrap.servers", "localhost:1").save()
