"""Tests a batch reader after pickling, as Spark passes it to tasks; tasks have no session."""

from __future__ import annotations

import pickle

import kproto_pipeline
import pyarrow as pa
import pytest
from kproto_pipeline.spark.data_source import KprotoDataSource

from kproto.client import ProducerRecord
from tests.spark.conftest import Topics

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
