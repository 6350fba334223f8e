"""Tests that the programs of the Spark pages run as printed.

Only the broker's address and the output folder are replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kproto_cloudevents import CloudEvent

from kproto.client import ProducerRecord
from tests.spark.conftest import Topics
from tests.spark.streams import planned
from tests.support.pages import blocks, page_text

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive]

(READ,) = blocks(page_text("docs/how-to/spark-read.md"), "python")
(SQL,) = blocks(page_text("docs/how-to/spark-read.md"), "sql")
STREAM, LAG = blocks(page_text("docs/how-to/spark-streams.md"), "python")
SINK, SETTING, ONCE = blocks(page_text("docs/how-to/spark-sink.md"), "python")
(JOB,) = blocks(page_text("docs/how-to/spark-job.md"), "python")


def test_setting_of_the_sink_page_can_be_changed_at_run_time(spark: Any) -> None:
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    before = spark.conf.get(name, None)
    try:
        exec(SETTING, {"spark": spark})
        assert spark.conf.get(name) == "2147483647"
    finally:
        spark.conf.unset(name)
    assert spark.conf.get(name, None) == before


def record(number: int) -> ProducerRecord:
    event = CloudEvent(id=str(number), source="/flights", type="departed", data={"n": number})
    key, value, headers = event.to_kafka_record()
    return ProducerRecord(value, key=key, headers=headers)


def test_programs_of_the_spark_pages_run(
    spark: Any, embedded_topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    embedded_topics.fill("flights", [record(number) for number in range(3)])
    scope: dict[str, Any] = {"spark": spark}

    def run(program: str, folder: str) -> None:
        """Runs a program whose output paths are changed: Java does not follow Python's `chdir`."""
        program = program.replace("localhost:9092", embedded_topics.bootstrap)
        exec(program.replace('"lake/', f'"{tmp_path}/{folder}/'), scope)

    run(READ, "")
    assert "|departed|    3|" in capsys.readouterr().out

    def start() -> Any:
        run(STREAM, "stream")
        return scope["query"]

    def start_once() -> Any:
        reading = spark.readStream.format("kproto").option("subscribe", "flights")
        reading = reading.option("kafka.bootstrap.servers", embedded_topics.bootstrap)
        once_scope = {"frame": reading.load().select("key", "value")}
        program = ONCE.replace("localhost:9092", embedded_topics.bootstrap)
        exec(program.replace('"lake/', f'"{tmp_path}/once/'), once_scope)
        return once_scope["query"]

    query = planned(start)
    try:
        scope["frame"] = spark.createDataFrame([("late", b"no event")], "key string, value binary")
        query.processAllAvailable()  # the first batch is empty, and stores the end offsets
        run(SINK, "")
        query.processAllAvailable()
        once = planned(start_once)
        once.processAllAvailable()
        once.stop()
        run(LAG, "")
        assert scope["lag"] == {"flights": 0}
    finally:
        query.stop()
    (row,) = spark.read.parquet(str(tmp_path / "stream" / "flights")).collect()
    assert (row["key"], row["value"]) == (b"late", b"no event")

    embedded_topics.fill("orders", [])
    *_, rows = [
        spark.sql(statement).collect()
        for statement in SQL.replace("localhost:9092", embedded_topics.bootstrap).split(";")
        if statement.strip()
    ]
    # Spark may write the two rows in two tasks, whose order is open.
    assert sorted(row[:2] for row in rows) == [(0, 0), (0, 1)]
    assert sorted(row[2] for row in rows) == ["one", "two"]
    options = f"`kafka.bootstrap.servers` '{embedded_topics.bootstrap}', subscribe 'orders'"
    with pytest.raises(Exception, match="instead of CREATE TABLE, use CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE kept USING kproto OPTIONS ({options})")

    scope["source"] = {
        "kafka.bootstrap.servers": embedded_topics.bootstrap,
        "subscribe": "flights",
    }
    run(JOB.replace("…", embedded_topics.bootstrap), "job")
    assert (tmp_path / "job" / "flights" / "increment=000001" / "_kproto.json").exists()
