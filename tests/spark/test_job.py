"""Tests the job on the embedded and on a real broker: each record gets exactly one status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kproto_cloudevents import CloudEvent, to_kafka
from kproto_pipeline.job import CountMismatchError, JobCounts, OutputExistsError, run_job
from kproto_pipeline.job.increment_writer import reconciled_counts
from kproto_pipeline.job.job_cleanup import cleanup_on_failure

from kproto.client import ProducerRecord
from tests.spark.conftest import Topics


def event(number: int, kind: str = "a", mode: Any = "binary") -> ProducerRecord:
    written = to_kafka(
        CloudEvent(
            id=str(number),
            source="/test",
            type=f"org.example.{kind}",
            time="2013-01-01T10:15:00Z",
            datacontenttype="application/json",
            data={"n": number},
        ),
        mode=mode,
        key=b"%d" % number,
    )
    return ProducerRecord(written.value, written.key, written.headers)


BROKEN = [
    ProducerRecord(b"no event", b"k1", [("other", b"h")]),
    ProducerRecord(None, b"k2"),
    ProducerRecord(b"\xff\x00", None, [("ce_specversion", b"1.0"), ("ce_id", None)]),
]
RECORDS = [
    event(1),
    event(2, "b", mode="structured"),
    event(1),
    *BROKEN,
    event(3),
    event(2, "b"),
    event(1),
]


def options(topics: Topics, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic}


@pytest.mark.spark
@pytest.mark.parametrize(
    "broker", ["embedded_topics", pytest.param("topics", marks=pytest.mark.kafka)]
)
def test_records_get_a_status_and_are_counted_and_written(
    spark: Any, broker: str, request: pytest.FixtureRequest, topic_name: str, tmp_path: Path
) -> None:
    topics: Topics = request.getfixturevalue(broker)
    topics.fill(topic_name, RECORDS, partitions=3)
    output = tmp_path / "events"
    counts = run_job(spark, options(topics, topic_name), str(output))
    assert counts == JobCounts(read=9, valid=3, invalid=3, duplicates=3, written=6)

    assert [entry.name for entry in tmp_path.iterdir()] == ["events"]
    folders = {str(path.parent.relative_to(output)) for path in output.rglob("*.parquet")}
    assert folders == {
        "increment=000001/status=valid/type=org.example.a",
        "increment=000001/status=valid/type=org.example.b",
        "increment=000001/status=invalid/type=__HIVE_DEFAULT_PARTITION__",
    }
    rows = spark.read.parquet(str(output)).collect()
    valid = {row["id"]: row for row in rows if row["status"] == "valid"}
    assert {number: row["data"] for number, row in valid.items()} == {
        n: b'{"n":%s}' % n.encode() for n in "123"
    }
    assert all(row["error"] is None and row["value"] is None for row in valid.values())
    letters = {(row["key"], row["value"]): row for row in rows if row["status"] == "invalid"}
    assert set(letters) == {(record.key, record.value) for record in BROKEN}
    for record in BROKEN:
        letter = letters[record.key, record.value]
        assert [(h["key"], h["value"]) for h in letter["headers"] or ()] == list(record.headers)
    assert "no ce_ header" in letters[b"k1", b"no event"]["error"]
    assert "ce_id: the required attribute is missing" in letters[None, b"\xff\x00"]["error"]


@pytest.mark.spark
def test_first_of_equal_events_is_valid(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    embedded_topics.fill(topic_name, [event(1), event(2), event(1)])
    output = tmp_path / "events"
    run_job(spark, options(embedded_topics, topic_name), str(output))
    rows = spark.read.parquet(str(output)).orderBy("offset").collect()
    assert [(row["id"], row["offset"]) for row in rows] == [("1", 0), ("2", 1)]


@pytest.mark.spark
def test_an_empty_topic_is_an_empty_output(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    embedded_topics.fill(topic_name, [])
    output = tmp_path / "events"
    counts = run_job(spark, options(embedded_topics, topic_name), str(output))
    assert counts == JobCounts(0, 0, 0, 0, 0)
    assert output.is_dir()


@pytest.mark.spark
def test_output_is_replaced_only_with_overwrite(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    embedded_topics.fill(topic_name, RECORDS)
    output = tmp_path / "events"
    output.mkdir()
    (output / "mine").write_text("kept")
    with pytest.raises(OutputExistsError, match="events exists"):
        run_job(spark, options(embedded_topics, topic_name), str(output))
    assert (output / "mine").read_text() == "kept"
    first = run_job(spark, options(embedded_topics, topic_name), str(output), overwrite=True)
    again = run_job(spark, options(embedded_topics, topic_name), str(output), overwrite=True)
    assert first == again
    assert [entry.name for entry in tmp_path.iterdir()] == ["events"]
    assert not (output / "mine").exists()


@pytest.mark.spark
@pytest.mark.exhaustive
def test_failed_job_changes_nothing(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    output = tmp_path / "events"
    with pytest.raises(Exception, match="UNKNOWN_TOPIC_OR_PARTITION"):
        run_job(spark, options(embedded_topics, topic_name), str(output))
    assert list(tmp_path.iterdir()) == []
    output.mkdir()
    (output / "mine").write_text("kept")
    with pytest.raises(Exception, match="UNKNOWN_TOPIC_OR_PARTITION"):
        run_job(spark, options(embedded_topics, topic_name), str(output), overwrite=True)
    assert [entry.name for entry in output.iterdir()] == ["mine"]


@pytest.mark.exhaustive
@pytest.mark.spark
def test_cleanup_waits_for_running_tasks(spark: Any, tmp_path: Path) -> None:
    """One task fails, so the job fails; the cleanup must wait until the other task has ended."""
    begun = tmp_path / "begun"

    def write(number: int) -> None:
        while number:  # until Spark kills the task
            begun.write_text("again")
        while not begun.exists():
            pass
        raise ValueError("of its own")

    running: list[int] = []

    def undo() -> None:
        executors = spark.sparkContext.statusTracker().getExecutorInfos()
        running.append(sum(executor.numRunningTasks for executor in executors))

    with pytest.raises(Exception, match="of its own"), cleanup_on_failure(spark, undo):
        spark.sparkContext.parallelize(range(2), 2).foreach(write)
    assert running == [0]
    assert not spark.sparkContext.getJobTags()


@pytest.mark.parametrize(
    ("seen", "written"),
    [
        ({"read": 9, "valid": 3, "invalid": 3, "duplicate": 2}, {"valid": 3, "invalid": 3}),
        ({"read": 9, "valid": 3, "invalid": 3, "duplicate": 3}, {"valid": 2, "invalid": 3}),
        ({"read": 9, "valid": 3, "invalid": 3, "duplicate": 3}, {"valid": 3}),
    ],
)
def test_differing_counts_are_an_error(seen: dict[str, int], written: dict[str, int]) -> None:
    with pytest.raises(CountMismatchError, match="9 records were read"):
        reconciled_counts(seen, written)
