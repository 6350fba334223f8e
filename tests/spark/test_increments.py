"""Tests incremental runs: new records, duplicates, data loss, streams, a table format."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kproto_pipeline.job import JobCounts, JobSettings, OutputExistsError, run
from kproto_pipeline.job.settings import DeadLetterSettings, OutputSettings
from kproto_pipeline.spark.planning.offset_ranges import DataLossError

from kproto.client import Client, NewTopic, ProducerRecord
from tests.spark.conftest import Topics
from tests.spark.test_job import BROKEN, event
from tests.spark.test_killed_jobs import Reports, ids

pytestmark = pytest.mark.spark


def send(topics: Topics, topic: str, *records: ProducerRecord) -> None:
    async def sending() -> None:
        async with Client(topics.bootstrap) as client, client.producer() as producer:
            await producer.send_many(topic, records)

    asyncio.run(sending())


def settings(topics: Topics, topic: str, folder: Path, **source: str) -> JobSettings:
    given = {"kafka.bootstrap.servers": topics.bootstrap, **source}
    if "subscribePattern" not in source:
        given["subscribe"] = topic
    return JobSettings(given, OutputSettings(str(folder / "lake")), mode="incremental")


def test_run_continues_where_the_last_one_ended(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    embedded_topics.fill(topic_name, [event(1), event(2), BROKEN[0]], partitions=2)
    wanted = settings(embedded_topics, topic_name, tmp_path)
    first = run(spark, replace(wanted, mode="once"))
    assert first.counts == JobCounts(3, 2, 1, 0, 3)
    with pytest.raises(OutputExistsError):
        run(spark, replace(wanted, mode="once"))
    assert run(spark, wanted).counts == JobCounts()
    send(embedded_topics, topic_name, event(2), event(3), BROKEN[1])
    second = run(spark, wanted)
    assert second.increments == [2]
    assert second.counts == JobCounts(3, 1, 1, 1, 2)
    # Without a time window, events of earlier increments are no duplicates.
    send(embedded_topics, topic_name, event(2), event(2))
    third = run(spark, replace(wanted, window_s=0))
    assert third.counts == JobCounts(2, 1, 0, 1, 1)
    assert ids(tmp_path / "lake") == {"1": 1, "2": 2, "3": 1}


@pytest.mark.exhaustive
def test_record_without_a_timestamp_is_compared_with_all_increments(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    """If a timestamp does not fit in microseconds, the record counts as without a timestamp."""
    day, no_time = 86_400_000, 2**62
    first = 1_700_000_000_000

    def at(number: int, time: int) -> ProducerRecord:
        return event(number)._replace(timestamp=time)

    async def made() -> None:
        async with Client(embedded_topics.bootstrap) as client:
            any_time = {"message.timestamp.after.max.ms": str(2**63 - 1)}
            await client.create_topics(NewTopic(topic_name, configs=any_time))

    asyncio.run(made())
    send(embedded_topics, topic_name, at(1, no_time), at(2, first))
    wanted = settings(embedded_topics, topic_name, tmp_path)
    assert run(spark, wanted).counts.valid == 2
    send(embedded_topics, topic_name, at(3, first + 9 * day), at(1, first + 9 * day))
    assert run(spark, wanted).counts == JobCounts(2, 1, 0, 1, 1)
    send(embedded_topics, topic_name, at(4, first + 20 * day), at(2, no_time))
    assert run(spark, wanted).counts == JobCounts(2, 1, 0, 1, 1)
    assert ids(tmp_path / "lake") == {"1": 1, "2": 1, "3": 1, "4": 1}


@pytest.mark.slow
@pytest.mark.exhaustive
def test_new_topics_are_read_and_lost_ones_reported(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    a, b = f"{topic_name}-a", f"{topic_name}-b"
    embedded_topics.fill(a, [event(1)])
    wanted = settings(embedded_topics, "", tmp_path, subscribePattern=f"{topic_name}-.*")
    assert run(spark, wanted).counts.valid == 1
    embedded_topics.fill(b, [event(2)], partitions=3)
    assert run(spark, wanted).counts.valid == 1

    async def recreated_partitions() -> None:
        async with Client(embedded_topics.bootstrap) as client:
            await client.delete_topics(a)
            await client.create_topics(NewTopic(a))

    asyncio.run(recreated_partitions())
    send(embedded_topics, a, event(3), event(4), event(1))
    with pytest.raises(DataLossError, match=f"{a}-0: the topic was recreated"):
        run(spark, wanted)
    passing = replace(wanted, source={**wanted.source, "failOnDataLoss": "false"})
    told: list[str] = []
    found = run(spark, passing, listener=Reports(told))
    assert found.counts == JobCounts(3, 2, 0, 1, 2)
    assert f"{a}-0: the topic was recreated" in told[1]
    assert ids(tmp_path / "lake") == {"1": 1, "2": 1, "3": 1, "4": 1}

    async def deleted() -> None:
        async with Client(embedded_topics.bootstrap) as client:
            await client.delete_topics(b)

    asyncio.run(deleted())
    with pytest.raises(DataLossError, match=f"{b}-0: read up to .*is gone"):
        run(spark, wanted)
    assert run(spark, passing).counts == JobCounts()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_stream_reads_records_that_arrive_while_it_runs(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    embedded_topics.fill(topic_name, [event(1), BROKEN[0]])
    wanted = replace(
        settings(embedded_topics, topic_name, tmp_path),
        mode="stream",
        interval_s=0.01,
        dead_letters=DeadLetterSettings(str(tmp_path / "dead"), "json"),
    )
    coming = [[event(2), event(1)], [BROKEN[1]], [event(3)]]

    def enough(result: Any) -> bool:
        if len(result.increments) == 4 - len(coming) and coming:
            send(embedded_topics, topic_name, *coming.pop(0))
        return bool(result.counts.read == 6)

    found = run(spark, wanted, enough=enough)
    assert found.counts == JobCounts(6, 3, 2, 1, 5)
    assert ids(tmp_path / "lake") == {"1": 1, "2": 1, "3": 1}
    assert spark.read.json(str(tmp_path / "dead")).count() == 2
    assert not list(tmp_path.rglob("status=invalid"))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_table_format_is_written_at_least_once(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    """A run is killed after it has written to the table, before its increment is finished.

    The next run must recognize these events in the table, and must not write them again.
    """
    embedded_topics.fill(topic_name, [event(1), event(2)])
    options = {
        "url": f"jdbc:derby:{tmp_path}/db;create=true",
        "dbtable": "events",
        "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        "createTableColumnTypes": "source VARCHAR(99), id VARCHAR(99), status VARCHAR(9)",
    }
    columns = ("source", "id", "timestamp", "status")
    wanted = replace(
        settings(embedded_topics, topic_name, tmp_path),
        output=OutputSettings(None, "jdbc", (), False, columns, str(tmp_path / "state"), options),
    )
    told: list[str] = []

    def killed(step: str) -> None:
        if step == "written aside":
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        run(spark, wanted, listener=Reports(told), on_step=killed)
    assert "the format jdbc is written at least once" in told[0]
    send(embedded_topics, topic_name, event(4))
    again = run(spark, wanted)
    # The killed increment has the same offsets again, and the new record is in another one.
    assert again.increments == [1, 2]
    assert again.counts == JobCounts(3, 1, 0, 2, 1)
    send(embedded_topics, topic_name, event(3), event(1))
    assert run(spark, wanted).counts == JobCounts(2, 1, 0, 1, 1)
    rows = spark.read.format("jdbc").options(**options).load().collect()
    assert sorted(row["id"] for row in rows) == ["1", "2", "3", "4"]
