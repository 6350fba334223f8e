"""Provides one Spark session for all Spark tests, and topics with known records."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import pytest
from kproto_pipeline.demo.publishing import embedded_broker

from kproto.client import Client, CompressionName, NewTopic, ProducerRecord
from tests.support.brokers import RunningKafka


@pytest.fixture(scope="session")
def spark(spark_environment: None) -> Iterator[object]:
    """Yields a Spark session on two cores, with the data source registered."""
    with warnings.catch_warnings():
        # PySpark itself warns of a newer pandas, and leaves sockets open.
        warnings.simplefilter("ignore")
        from kproto_pipeline import register
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2]")
            .appName("kproto-tests")
            .config("spark.ui.enabled", "false")
            .config("spark.log.level", "ERROR")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
        register(session)
        yield session
        session.stop()


@dataclass(frozen=True)
class Topics:
    """Creates topics on a broker, and fills them."""

    bootstrap: str

    def fill(
        self,
        topic: str,
        records: Sequence[ProducerRecord],
        *,
        partitions: int = 1,
        compression: CompressionName = "none",
        batch_bytes: int = 1_000_000,
    ) -> str:
        """Creates a topic with these records, in this order; returns its name."""

        async def run() -> None:
            async with Client(self.bootstrap) as client:
                await client.create_topics(NewTopic(topic, partitions=partitions))
                if records:
                    async with client.producer(
                        compression=compression, batch_bytes=batch_bytes
                    ) as producer:
                        await producer.send_many(topic, records)

        asyncio.run(run())
        return topic


@pytest.fixture
def topics(newest_kafka: RunningKafka) -> Topics:
    """Returns an object that creates topics on the newest real broker.

    A test with this fixture needs the mark `kafka`.
    """
    return Topics(newest_kafka.bootstrap)


@pytest.fixture(scope="session")
def embedded(spark_environment: None) -> Iterator[str]:
    """Yields the address of an embedded broker in its own process."""
    with embedded_broker() as bootstrap:
        yield bootstrap


@pytest.fixture
def embedded_topics(embedded: str) -> Topics:
    """Returns an object that creates topics on the embedded broker."""
    return Topics(embedded)


@pytest.fixture
def no_undoing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the cleanup after a failure, because a killed process cannot clean up."""
    from kproto_pipeline.job import compaction, increment_writer, job_run

    for module in (compaction, increment_writer, job_run):
        monkeypatch.setattr(module, "cleanup_on_failure", lambda spark, undo: nullcontext())
