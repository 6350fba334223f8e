"""One Spark session for all Spark tests, and topics with known content."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from kproto_pipeline.demo.publishing import embedded_broker

from kproto.client import Client, CompressionName, NewTopic, ProducerRecord
from tests.support.brokers import RunningKafka


@pytest.fixture(scope="session")
def spark(spark_environment: None) -> Iterator[object]:
    """Spark on two cores; the data source is registered."""
    with warnings.catch_warnings():
        # PySpark's own: it warns of a pandas that is newer than itself, and leaves sockets open.
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
    """Makes topics on a broker and fills them."""

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
        """A new topic with these records, in the order given; its name."""

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
    """Topics on the newest real broker; mark the test `kafka`."""
    return Topics(newest_kafka.bootstrap)


@pytest.fixture(scope="session")
def embedded(spark_environment: None) -> Iterator[str]:
    """An embedded broker in a process of its own."""
    with embedded_broker() as bootstrap:
        yield bootstrap


@pytest.fixture
def embedded_topics(embedded: str) -> Topics:
    """Topics on the embedded broker."""
    return Topics(embedded)
