"""Tests that streams have the batches, rows and checkpoints of Spark's JVM connector."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kproto.client import Client, ProducerRecord
from tests.spark.conftest import Topics
from tests.support.spark_programs import SparkPrograms, spark_programs
from tools.spark.environments import connector_jars, python_with_connector

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def beside(spark_environment: None) -> Iterator[SparkPrograms]:
    """Yields a Spark environment with both the JVM connector and kproto's data source."""
    with spark_programs(python_with_connector(), {"spark.jars": connector_jars()}) as programs:
        yield programs


def records(values: Iterable[int], partitions: int = 3) -> list[ProducerRecord]:
    return [ProducerRecord(b"%d" % n, partition=n % partitions) for n in values]


def send(topics: Topics, topic: str, values: Iterable[int]) -> None:
    async def run() -> None:
        async with Client(topics.bootstrap) as client, client.producer() as producer:
            await producer.send_many(topic, records(values))

    asyncio.run(run())


def options(topics: Topics, topic: str, **others: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": topics.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        **others,
    }


LIMITS = [
    {"maxOffsetsPerTrigger": "70"},
    pytest.param({"maxOffsetsPerTrigger": "1"}, marks=pytest.mark.thorough),
    {"minOffsetsPerTrigger": "10", "maxTriggerDelay": "1s"},
    {},
]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_batches_and_rows(
    beside: SparkPrograms,
    topics: Topics,
    topic_name: str,
    tmp_path: Path,
    limits: dict[str, str],
) -> None:
    count = 7 if limits.get("maxOffsetsPerTrigger") == "1" else 500
    topics.fill(topic_name, records(n for n in range(count) if n % 3 or n % 2), partitions=3)
    found = {
        engine: beside.run(
            "moved_stream",
            {
                "engine": engine,
                "folder": str(tmp_path / engine),
                "options": options(topics, topic_name, **limits),
            },
        )
        for engine in ("kafka", "kproto")
    }
    assert len(found["kafka"]["rows"]) > 0
    assert found["kproto"] == found["kafka"]


@pytest.mark.parametrize("engines", [("kafka", "kproto"), ("kproto", "kafka")], ids="-".join)
def test_checkpoints_are_interchangeable(
    beside: SparkPrograms,
    topics: Topics,
    topic_name: str,
    tmp_path: Path,
    engines: tuple[str, str],
) -> None:
    """The query moves twice between the formats kafka and kproto, and still drops duplicates."""
    topics.fill(topic_name, records(range(100)), partitions=3)
    wanted = options(topics, topic_name, maxOffsetsPerTrigger="40")
    sent = 100
    for turn, engine in enumerate((*engines, engines[0])):
        task = {"engine": engine, "folder": str(tmp_path), "options": wanted, "distinct": True}
        found: dict[str, Any] = beside.run("moved_stream", task)
        assert sorted(int(value) for value, _, _ in found["rows"]) == list(range(sent)), turn
        send(topics, topic_name, range(sent - 30, sent + 50))  # thirty values are repeated
        sent += 50


@pytest.mark.parametrize("trigger", [{"once": True}, {"availableNow": True}], ids=str)
def test_trigger_once_reads_everything_in_one_micro_batch(
    beside: SparkPrograms,
    topics: Topics,
    topic_name: str,
    tmp_path: Path,
    trigger: dict[str, Any],
) -> None:
    topics.fill(topic_name, records(range(90)), partitions=3)
    task = {"options": options(topics, topic_name, maxOffsetsPerTrigger="30"), "trigger": trigger}
    found = {
        engine: beside.run(
            "moved_stream", {**task, "engine": engine, "folder": str(tmp_path / engine)}
        )
        for engine in ("kafka", "kproto")
    }
    assert len(found["kafka"]["ends"]) == (1 if "once" in trigger else 3)
    assert found["kproto"] == found["kafka"]


def test_rows_that_are_written(beside: SparkPrograms, topics: Topics, topic_name: str) -> None:
    """Both formats write the rows of a topic; the connector must then read equal rows from both."""
    given = [
        ProducerRecord(
            None if n % 7 == 0 else b"%d" % n,
            None if n % 3 == 0 else b"key-%d" % (n % 11),
            [("n", b"%d" % n), ("n", None)][: n % 3],
        )
        for n in range(300)
    ]
    topics.fill(f"{topic_name}-source", given, partitions=3)
    found = {}
    for engine in ("kafka", "kproto"):
        target = topics.fill(f"{topic_name}-{engine}", [], partitions=3)
        task = {"engine": engine, "bootstrap": topics.bootstrap, "target": target}
        assert beside.run("written", {**task, "source": f"{topic_name}-source"}) == 300
        found[engine] = beside.run(
            "plain_rows",
            {
                "options": {
                    "kafka.bootstrap.servers": topics.bootstrap,
                    "subscribe": target,
                    "includeHeaders": "true",
                }
            },
        )
    assert len(found["kafka"]) == 300
    assert found["kproto"] == found["kafka"]
