"""The rows of a batch are those of Spark's JVM connector, same topic and options, real brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kproto.client import ProducerRecord
from tests.spark.conftest import Topics
from tests.support.spark_programs import SparkPrograms, spark_programs
from tools.spark.environments import connector_jars, python_with_connector

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def beside(spark_environment: None) -> Iterator[SparkPrograms]:
    """A Spark that has both: the JVM connector, and our data source."""
    with spark_programs(python_with_connector(), {"spark.jars": connector_jars()}) as programs:
        yield programs


def test_nulls_and_headers(beside: SparkPrograms, topics: Topics, topic_name: str) -> None:
    topics.fill(
        topic_name,
        [
            ProducerRecord(b"v", b"k", [("a", b"1"), ("a", None)]),
            ProducerRecord(None, b"k"),
            ProducerRecord(b"", None, [("", b"")]),
        ],
        partitions=2,
    )
    found = beside.run(
        "same_rows",
        {
            "options": {
                "kafka.bootstrap.servers": topics.bootstrap,
                "subscribe": topic_name,
                "includeHeaders": "true",
            }
        },
    )
    ours, theirs = found.pop("types")
    assert found == {"kafka": 3, "kproto": 3, "lacking": 0, "added": 0}
    assert ours == theirs
