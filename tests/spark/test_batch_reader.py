"""Tests a batch reader after pickling, as Spark passes it to tasks; tasks have no session."""

from __future__ import annotations

import pickle

import kproto_pipeline
import pyarrow as pa
import pytest
from kproto_pipeline.spark.data_source import KprotoDataSource
from kproto_pipeline.spark.reading import partition_reader

from kproto.client import ProducerRecord
from tests.spark.conftest import Topics
from tests.support.spark_programs import spark_programs
from tools.spark.environments import CONNECTOR_PYSPARK, python_with_pyspark

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:::pyspark")]


def test_public_names_are_importable() -> None:
    for name in kproto_pipeline.__all__:
        assert getattr(kproto_pipeline, name).__name__ == name
    assert kproto_pipeline.KprotoDataSource is KprotoDataSource
    with pytest.raises(AttributeError, match="no attribute 'columnar'"):
        _ = kproto_pipeline.columnar


@pytest.mark.parametrize("events", ["false", "true"])
def test_pickled_reader_reads_pickled_partitions(
    embedded_topics: Topics, topic_name: str, events: str
) -> None:
    embedded_topics.fill(topic_name, [ProducerRecord(b"%d" % n, b"k") for n in range(7)])
    options = {
        "kafka.bootstrap.servers": embedded_topics.bootstrap,
        "subscribe": topic_name,
        "minPartitions": "3",
        "cloudEvents": events,
    }
    source = KprotoDataSource(options)
    reader = pickle.loads(pickle.dumps(source.reader(source.schema())))
    ranges = pickle.loads(pickle.dumps(reader.partitions()))
    assert len(ranges) == 3
    table = pa.Table.from_batches(batch for one in ranges for batch in reader.read(one))
    assert table.schema == reader._schema
    assert table["offset"].to_pylist() == list(range(7))
    assert table["value"].to_pylist() == [b"%d" % n for n in range(7)]


@pytest.mark.parametrize("accepted", ["false", "true"])
def test_events_of_event_grid_are_read_if_the_option_is_set(
    embedded_topics: Topics, topic_name: str, accepted: str
) -> None:
    document = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","dataschema":"#"}'
    event = ProducerRecord(document, headers=[("content-type", b"application/cloudevents+json")])
    embedded_topics.fill(topic_name, [event])
    source = KprotoDataSource(
        {
            "kafka.bootstrap.servers": embedded_topics.bootstrap,
            "subscribe": topic_name,
            "cloudEvents": "true",
            "cloudEventsEventGrid": accepted,
        }
    )
    reader = source.reader(source.schema())
    (offset_range,) = reader.partitions()
    table = pa.Table.from_batches(reader.read(offset_range))
    assert table["dataschema"].to_pylist() == ["#" if accepted == "true" else None]
    assert [error is None for error in table["error"].to_pylist()] == [accepted == "true"]


class TaskWithLimit:
    """A context of a task in which Spark limits the rows of a batch to 3."""

    @classmethod
    def get(cls) -> type[TaskWithLimit]:
        return cls

    @staticmethod
    def getLocalProperty(name: str) -> str | None:
        return "3" if name == "spark.sql.execution.arrow.maxRecordsPerOutputBatch" else None


def test_batch_has_at_most_the_rows_that_spark_accepts(
    embedded_topics: Topics, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded_topics.fill(topic_name, [ProducerRecord(b"%d" % n, b"k") for n in range(7)])
    source = KprotoDataSource(
        {"kafka.bootstrap.servers": embedded_topics.bootstrap, "subscribe": topic_name}
    )
    reader = source.reader(source.schema())
    (offset_range,) = reader.partitions()
    monkeypatch.setattr(partition_reader, "TaskContext", TaskWithLimit)
    batches = list(reader.read(offset_range))
    assert [batch.num_rows for batch in batches] == [3, 3, 1]
    assert pa.Table.from_batches(batches)["offset"].to_pylist() == list(range(7))


@pytest.mark.slow
@pytest.mark.thorough
def test_pyspark_with_a_row_limit_returns_each_row_once(
    spark_environment: None, embedded_topics: Topics, topic_name: str
) -> None:
    """PySpark 4.2.0 returns rows of a Python source twice if a batch exceeds the limit."""
    embedded_topics.fill(topic_name, [ProducerRecord(b"%d" % n, b"k") for n in range(100)])
    options = {"kafka.bootstrap.servers": embedded_topics.bootstrap, "subscribe": topic_name}
    limit = {"spark.sql.execution.arrow.maxRecordsPerOutputBatch": "20"}
    with spark_programs(python_with_pyspark(CONNECTOR_PYSPARK), limit) as programs:
        assert programs.run("counted", {"engine": "kproto", "options": options}) == 100
