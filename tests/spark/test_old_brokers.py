"""Tests Spark's source and sink on real brokers of old releases, which store message sets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from kproto import Client
from tests.support.old_brokers import broker_version_of, new_topic, old_broker
from tools.kafka import KafkaNode
from tools.kafka.old_releases import has_headers

__all__ = ["old_broker"]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.exhaustive, pytest.mark.kafka]

ROWS = 500


def options(node: KafkaNode) -> dict[str, str]:
    """Returns the options of the source and the sink for a broker."""
    found = {"kafka.bootstrap.servers": node.bootstrap}
    release = broker_version_of(node)
    if release is not None:
        found["brokerVersion"] = release
    return found


@pytest.fixture
def topic(old_broker: KafkaNode) -> str:
    async def create() -> str:
        release = broker_version_of(old_broker)
        async with Client(old_broker.bootstrap, broker_version=release) as client:
            return await new_topic(old_broker, client, partitions=1)

    return asyncio.run(create())


def read(spark: SparkSession, node: KafkaNode, topic: str, **more: str) -> DataFrame:
    reader = spark.read.format("kproto").options(**options(node)).option("subscribe", topic)
    return reader.options(**more).load()


def write(rows: DataFrame, node: KafkaNode, topic: str, **more: str) -> None:
    writer = rows.write.format("kproto").mode("append").options(**options(node))
    writer.option("topic", topic).options(**more).save()


@pytest.mark.parametrize("codec", ["none", pytest.param("gzip", marks=pytest.mark.thorough)])
def test_rows_come_back(spark: Any, old_broker: KafkaNode, topic: str, codec: str) -> None:
    rows = spark.range(ROWS).selectExpr(
        "cast(cast(id as string) as binary) key",
        "cast(repeat(cast(id as string), 9) as binary) value",
    )
    write(rows, old_broker, topic, **{"kafka.compression.type": codec})
    found = (
        read(spark, old_broker, topic).where("value is not null").select("key", "value").collect()
    )
    assert sorted((int(row.key), bytes(row.value)) for row in found) == [
        (number, str(number).encode() * 9) for number in range(ROWS)
    ]


def test_events_come_back(spark: Any, old_broker: KafkaNode, topic: str) -> None:
    rows = spark.range(ROWS).selectExpr(
        "cast(id as string) id",
        "'/shop' source",
        "'order.placed' type",
        "'application/json' datacontenttype",
        "cast('{\"n\": 1}' as binary) data",
    )
    write(rows, old_broker, topic, cloudEvents="true")
    more = {} if has_headers(old_broker.version) else {"cloudEventsWithoutHeaders": "true"}
    found = read(spark, old_broker, topic, cloudEvents="true", **more).where("error is null")
    assert sorted(int(row.id) for row in found.collect()) == list(range(ROWS))


def test_headers_are_refused_if_they_cannot_be_stored(
    spark: Any, old_broker: KafkaNode, topic: str
) -> None:
    rows = spark.sql(
        "select cast('v' as binary) value, "
        "array(named_struct('key', 'h', 'value', cast('1' as binary))) headers"
    )
    if has_headers(old_broker.version):
        write(rows, old_broker, topic)
        return
    with pytest.raises(Exception, match=r"brokers are older than Kafka 0\.11") as caught:
        write(rows, old_broker, topic)
    assert "row 0 of this task" in str(caught.value)
    event = spark.sql("select '1' id, '/s' source, 't' type")
    with pytest.raises(Exception, match="structured mode in JSON"):
        write(event, old_broker, topic, cloudEvents="binary")


def test_stream_reads_an_old_broker(
    spark: Any, old_broker: KafkaNode, topic: str, tmp_path: Any
) -> None:
    write(spark.range(ROWS).selectExpr("cast(id as string) value"), old_broker, topic)
    rows = (
        spark.readStream.format("kproto")
        .options(**options(old_broker))
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "rows"))
    )
    query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "rows")).selectExpr("cast(value as string) value")
    numbers = [int(row.value) for row in found.where("value is not null").collect()]
    assert sorted(numbers) == list(range(ROWS))
