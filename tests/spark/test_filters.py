"""Tests that pushed-down filters narrow the offset ranges to read, and keep the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.client import ProducerRecord
from tests.spark.conftest import Topics

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:::pyspark")]

FLAG = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(params=["true", pytest.param("false", marks=pytest.mark.exhaustive)])
def flagged(spark: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    before = spark.conf.get(FLAG)
    spark.conf.set(FLAG, request.param)
    yield spark, request.param == "true"
    spark.conf.set(FLAG, before)


@pytest.mark.parametrize(
    ("filtered", "offsets", "tasks"),
    [
        ("partition in (0, 2)", 60, 2),
        ("offset >= 10 and offset < 12", 6, 3),
        ("timestamp >= timestamp_millis(1700000020000)", 30, 3),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)
            for each in (
                ("partition = 1", 30, 1),
                ("partition = 0 and offset = 7", 1, 1),
                ("partition = 9", 0, 1),
                ("value is not null", 90, 3),
            )
        ),
    ],
)
def test_rows_and_tasks(
    flagged: tuple[Any, bool],
    embedded_topics: Topics,
    topic_name: str,
    filtered: str,
    offsets: int,
    tasks: int,
) -> None:
    spark, pushes = flagged
    records = [
        ProducerRecord(b"%d" % n, partition=p, timestamp=1_700_000_000_000 + n * 1_000)
        for n in range(30)
        for p in range(3)
    ]
    embedded_topics.fill(topic_name, records, partitions=3)
    frame = (
        spark.read.format("kproto")
        .option("kafka.bootstrap.servers", embedded_topics.bootstrap)
        .option("subscribe", topic_name)
        .load()
        .where(filtered)
    )
    assert frame.count() == offsets
    if pushes:
        assert frame.rdd.getNumPartitions() == tasks
