"""Tests streams on the embedded broker: micro-batches, limits, new topics, restarts, data loss."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kproto.client import Client, NewTopic, ProducerRecord
from tests.spark.conftest import Topics
from tests.spark.streams import options, read_all, rows_of, send, start

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:::pyspark")]


def asked(topics: Topics, *names: str, make: bool) -> None:
    async def run() -> None:
        async with Client(topics.bootstrap) as client:
            if make:
                await client.create_topics(*(NewTopic(name) for name in names))
            else:
                await client.delete_topics(*names)

    asyncio.run(run())


def values(rows: Iterable[Any]) -> list[int]:
    return [int(row["value"]) for row in rows]


def ends_of(progress: list[dict[str, Any]]) -> list[Any]:
    return [json.loads(json.dumps(each["sources"][0]["endOffset"])) for each in progress]


def test_available_now_is_split_and_continues_from_its_checkpoint(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    records = [ProducerRecord(b"%d" % n, partition=int(n >= 30)) for n in range(40)]
    embedded_topics.fill(topic_name, records, partitions=2)
    wanted = options(embedded_topics, topic_name, maxOffsetsPerTrigger="20")
    progress = read_all(spark, wanted, tmp_path)
    assert values(rows_of(spark, tmp_path)) == list(range(40))
    assert ends_of(progress)[:2] == [
        {topic_name: {"0": 15, "1": 5}},
        {topic_name: {"0": 30, "1": 10}},
    ]
    assert progress[0]["sources"][0]["latestOffset"] == {topic_name: {"0": 30, "1": 10}}
    send(embedded_topics, topic_name, range(40, 45), partition=1)
    read_all(spark, wanted, tmp_path)
    assert values(rows_of(spark, tmp_path)) == list(range(45))


def test_replay_of_the_first_micro_batch_loses_nothing(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    embedded_topics.fill(topic_name, [ProducerRecord(b"-1")])
    wanted = options(embedded_topics, topic_name)
    del wanted["startingOffsets"]
    read_all(spark, wanted, tmp_path)
    send(embedded_topics, topic_name, range(3))
    (tmp_path / "checkpoint/commits/0").unlink()
    (tmp_path / "checkpoint/commits/.0.crc").unlink()
    read_all(spark, wanted, tmp_path)
    assert values(rows_of(spark, tmp_path)) == [0, 1, 2]


def test_new_topics_are_read_from_earliest(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    embedded_topics.fill(f"{topic_name}-a", [ProducerRecord(b"0")])
    wanted = options(embedded_topics, topic_name)
    del wanted["subscribe"]
    wanted["subscribePattern"] = f"{topic_name}-.*"
    query = start(spark, wanted, tmp_path, processingTime="0 seconds")
    try:
        query.processAllAvailable()

        asked(embedded_topics, f"{topic_name}-b", make=True)
        send(embedded_topics, f"{topic_name}-b", [1, 2])
        query.processAllAvailable()
    finally:
        query.stop()
    assert values(rows_of(spark, tmp_path)) == [0, 1, 2]


@pytest.mark.parametrize("fails", ["true", pytest.param("false", marks=pytest.mark.exhaustive)])
def test_deleted_or_recreated_topic_is_data_loss_or_skipped(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path, fails: str
) -> None:
    embedded_topics.fill(topic_name, [ProducerRecord(b"%d" % n) for n in range(3)])
    wanted = options(embedded_topics, topic_name, failOnDataLoss=fails)
    query = start(spark, wanted, tmp_path, processingTime="0 seconds")
    try:
        query.processAllAvailable()
        asked(embedded_topics, topic_name, make=False)
        asked(embedded_topics, topic_name, make=True)
        send(embedded_topics, topic_name, range(10, 16))
        if fails == "true":
            with pytest.raises(Exception, match=r"recreated|is gone"):
                query.processAllAvailable()
        else:
            query.processAllAvailable()
            rows = sorted(values(rows_of(spark, tmp_path)))
            assert rows == [0, 1, 2, *range(10, 16)]
    finally:
        query.stop()
