"""Tests streams with exactlyOnce: restarts, replays of committed micro-batches, and refusals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kproto import Client
from kproto.client import ProducerRecord
from tests.spark.conftest import Topics
from tests.spark.streams import options, planned, send

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:::pyspark")]


def run(spark: Any, topics: Topics, topic: str, folder: Path, value: str = "value") -> Any:
    """Copies all available records of `topic` to `topic`-copy; returns the ended query."""

    def start() -> Any:
        return (
            spark.readStream.format("kproto")
            .options(**options(topics, topic, maxOffsetsPerTrigger="4"))
            .load()
            .selectExpr("partition", f"{value} as value")
            .writeStream.format("kproto")
            .options(
                **{
                    "kafka.bootstrap.servers": topics.bootstrap,
                    "topic": f"{topic}-copy",
                    "exactlyOnce": "true",
                    "checkpointLocation": str(folder),
                }
            )
            .trigger(availableNow=True)
            .start()
        )

    query = planned(start)
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return query


def committed(topics: Topics, topic: str) -> list[list[int]]:
    """Returns the committed numbers of each partition."""

    async def read() -> list[list[int]]:
        found: list[list[int]] = [[], []]
        async with Client(topics.bootstrap) as client:
            reader = client.consumer(f"{topic}-copy", stop_at_end=True, read_committed=True)
            async for record in reader:
                found[record.partition].append(int(record.value or b""))
        return found

    return asyncio.run(read())


def replay_last_batch(folder: Path) -> None:
    """Makes the checkpoint as if the driver had been killed after its commit to the topic."""
    commits = sorted(folder.glob("commits/[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()
    commits[-1].with_name(f".{commits[-1].name}.crc").unlink(missing_ok=True)


def test_replayed_batch_is_written_once(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    topics, topic = embedded_topics, topic_name
    records = [ProducerRecord(b"%d" % n, partition=n % 2) for n in range(10)]
    topics.fill(topic, records, partitions=2)
    topics.fill(f"{topic}-copy", [], partitions=2)
    expected = [list(range(0, 10, 2)), list(range(1, 10, 2))]
    run(spark, topics, topic, tmp_path)
    assert committed(topics, topic) == expected
    replay_last_batch(tmp_path)
    send(topics, topic, [10, 12], partition=0)
    run(spark, topics, topic, tmp_path)
    expected[0] += [10, 12]
    assert committed(topics, topic) == expected
    replay_last_batch(tmp_path)
    with pytest.raises(Exception, match="differs from its first attempt"):
        run(spark, topics, topic, tmp_path, "concat(value, '0')")
    assert committed(topics, topic) == expected
    run(spark, topics, topic, tmp_path)
    assert committed(topics, topic) == expected


def test_batch_write_is_refused(spark: Any, embedded_topics: Topics) -> None:
    frame = spark.createDataFrame([("v",)], "value string")
    target = {"kafka.bootstrap.servers": embedded_topics.bootstrap, "topic": "t"}
    writing = frame.write.format("kproto").mode("append").options(**target, exactlyOnce="true")
    with pytest.raises(Exception, match="exactlyOnce is for streams"):
        writing.save()
