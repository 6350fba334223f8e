"""Tests Delta and Iceberg tables: a killed increment is written once, and tables can grow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kproto_pipeline.job.increment_writer import STEPS
from kproto_pipeline.job.lake_packages import lake_package, lake_properties

from kproto.client import ProducerRecord
from tests.spark.conftest import Topics
from tests.spark.test_increments import send
from tests.spark.test_job import BROKEN, event
from tests.support.spark_programs import SparkPrograms, spark_programs
from tools.job_kills import FORMATS, kill_the_job
from tools.spark.environments import python_with_pyspark

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

TABLES = ["delta", "iceberg"]
#: The steps of an increment of a table, which has no dead letters.
TABLE_STEPS = [step for step in STEPS if step != "dead letters written"]


@pytest.fixture(params=TABLES)
def lake(
    spark_environment: None, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[SparkPrograms, dict[str, Any]]]:
    """Yields programs on a session with the jars of a format, and an output of this format."""
    version = FORMATS[request.param]
    assert version is not None
    package = lake_package(request.param, version)
    assert package is not None
    path = str(tmp_path / "lake")
    conf = {
        **lake_properties(request.param),
        "spark.master": "local[2]",
        "spark.jars.packages": package,
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    with spark_programs(python_with_pyspark(version), conf) as programs:
        yield programs, {"format": request.param, "path": path}


def test_increment_is_written_once_after_a_kill_at_each_step(
    lake: tuple[SparkPrograms, dict[str, Any]], embedded_topics: Topics, topic_name: str
) -> None:
    programs, output = lake
    embedded_topics.fill(topic_name, [])
    task: dict[str, Any] = {
        "source": {"kafka.bootstrap.servers": embedded_topics.bootstrap, "subscribe": topic_name},
        "output": output,
        "mode": "incremental",
    }
    wanted: list[list[str]] = []
    for number, step in enumerate(TABLE_STEPS):
        send(embedded_topics, topic_name, event(number), BROKEN[1])
        killed = programs.run("lake_job", {**task, "kill_at": step})
        assert killed["counts"] is None, step
        # More records arrive; the killed increment does not read them.
        send(embedded_topics, topic_name, event(100 + number), event(number))
        found = programs.run("lake_job", task)
        wanted += [["valid", str(number)], ["valid", str(100 + number)], ["invalid", ""]]
        assert found["rows"] == sorted(wanted), step
        last = 2 * number + 2
        was_published = step in ("published", "cleared")
        assert found["increments"] == ([last] if was_published else [last - 1, last]), step
        assert found["counts"][1] == (1 if was_published else 2), step


def test_table_gets_new_columns_by_option(
    lake: tuple[SparkPrograms, dict[str, Any]], embedded_topics: Topics, topic_name: str
) -> None:
    programs, output = lake
    embedded_topics.fill(topic_name, [event(1)])
    columns = ["source", "id", "timestamp", "status", "type"]
    task: dict[str, Any] = {
        "source": {"kafka.bootstrap.servers": embedded_topics.bootstrap, "subscribe": topic_name},
        "output": {**output, "columns": columns},
        "mode": "once",
    }
    assert programs.run("lake_job", task)["counts"] == [1, 1, 0, 0, 1]
    with pytest.raises(AssertionError, match="exists"):
        programs.run("lake_job", task)
    send(embedded_topics, topic_name, event(2), event(1))
    task |= {"output": {**output, "columns": [*columns, "data"]}, "mode": "incremental"}
    with pytest.raises(AssertionError, match=r"(?i)schema|column"):
        programs.run("lake_job", task)
    task["output"]["merge_schema"] = True
    found = programs.run("lake_job", task)
    assert found["counts"] == [2, 1, 0, 1, 1]
    assert found["rows"] == [["valid", "1"], ["valid", "2"]]
    assert sorted(found["columns"]) == sorted([*columns, "data"])


def test_merge_finds_duplicates_beyond_the_window(
    lake: tuple[SparkPrograms, dict[str, Any]], embedded_topics: Topics, topic_name: str
) -> None:
    programs, output = lake
    year = 365 * 86_400_000

    def at(number: int, years: int) -> ProducerRecord:
        return event(number)._replace(timestamp=1_500_000_000_000 + years * year)

    embedded_topics.fill(topic_name, [at(1, 0), at(2, 0)])
    task: dict[str, Any] = {
        "source": {"kafka.bootstrap.servers": embedded_topics.bootstrap, "subscribe": topic_name},
        "output": output,
        "mode": "incremental",
        "merge": True,
    }
    assert programs.run("lake_job", task)["counts"] == [2, 2, 0, 0, 2]
    send(embedded_topics, topic_name, at(1, 3), at(3, 3), at(2, 3), BROKEN[1], at(1, 4), at(2, 4))
    found = programs.run("lake_job", {**task, "kill_at": "written aside"})
    assert found["rows"] == [["valid", "1"], ["valid", "2"], ["valid", "3"]]
    found = programs.run("lake_job", task)
    assert found["increments"] == [2, 3, 4]
    # The first of the three was committed by the killed run; only its row in the table is counted.
    assert found["counts"] == [5, 1, 1, 3, 2]
    assert found["rows"] == [["invalid", ""], ["valid", "1"], ["valid", "2"], ["valid", "3"]]
    # Without MERGE, an event beyond the window is no duplicate.
    send(embedded_topics, topic_name, at(2, 6))
    assert programs.run("lake_job", {**task, "merge": False})["counts"] == [1, 1, 0, 0, 1]


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_delta_has_an_active_session_in_each_thread(
    lake: tuple[SparkPrograms, dict[str, Any]],
) -> None:
    """Without it, Delta cannot read the log of some killed commits."""
    programs, output = lake
    found = programs.run("session_of_a_table", {"path": output["path"]})
    assert found == {"before": False, "version": 0, "after": True}


@pytest.mark.parametrize("format_", TABLES)
def test_killed_command_writes_each_event_once(
    spark_environment: None, embedded: str, tmp_path: Path, format_: str
) -> None:
    result = kill_the_job(embedded, tmp_path, rounds=2, seed=7, format_=format_)
    assert result.exact, result
