"""Tests start positions, including those of a recreated topic with outdated metadata."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kproto import Client, ConfigurationError, ProducerRecord
from kproto.broker import Broker
from kproto.client.fetch.start_options import start_time_ms
from kproto.messages import MetadataRequest
from kproto.testing.clock import ManualClock
from tests.unit.client.scripted_broker import ScriptedBroker, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = quick(metadata_wait_ms=500, delivery_timeout_ms=2000)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        broker.create_topic("other", partitions=1)
        yield broker


async def write(broker: Broker, topic: str, *values: bytes) -> None:
    async with Client(broker.bootstrap, QUICK) as client, client.producer() as producer:
        await producer.send_many(topic, [ProducerRecord(value, partition=0) for value in values])


async def recreate_topic(client: Client, broker: Broker, *, before: int, after: int) -> None:
    """Recreates topic `t`, which has `before` partitions, with `after` partitions.

    The metadata of `client` still has the old topic.
    """
    broker.create_topic("t", partitions=before)
    await client.topic("t")
    broker.delete_topic("t")
    broker.create_topic("t", partitions=after)


PARTITIONS = [("t", 0)]
SUBSCRIPTIONS = pytest.mark.parametrize("topics", ["t", PARTITIONS], ids=["topic", "assigned"])


@SUBSCRIPTIONS
@pytest.mark.parametrize("after", [1, 3])
async def test_consumer_with_old_metadata_reads_the_recreated_topic(
    broker: Broker, topics: Any, after: int
) -> None:
    """The consumer raises no error, because it returned no record of the old topic."""
    async with Client(broker.bootstrap, QUICK) as client:
        await recreate_topic(client, broker, before=2, after=after)
        await write(broker, "t", b"new", b"newer")
        async with client.consumer(topics, stop_at_end=True) as consumer:
            assert [record.value async for record in consumer] == [b"new", b"newer"]
            assert consumer.positions["t", 0] == 2
            assert len(consumer.positions) == (after if topics == "t" else 1)


async def test_stop_at_end_uses_the_end_of_the_recreated_topic(broker: Broker) -> None:
    """The old log was longer: with the old end offset, the consumer would wait forever."""
    broker.create_topic("t", partitions=1)
    await write(broker, "t", *[b"old"] * 5)
    async with (
        Client(broker.bootstrap, QUICK) as client,
        client.consumer(["t", "other"], stop_at_end=True) as consumer,
    ):
        assert consumer.positions == {("t", 0): 0, ("other", 0): 0}
        broker.delete_topic("t")
        broker.create_topic("t", partitions=1)
        await write(broker, "t", b"new")
        await write(broker, "other", b"after the end")
        assert [record.value async for record in consumer] == [b"new"]


async def test_topic_recreated_before_the_first_poll_is_read_to_its_end(broker: Broker) -> None:
    """Metadata is refreshed after the end offset of the old topic was read."""
    broker.create_topic("t", partitions=1)
    await write(broker, "t", *[b"old"] * 5)
    async with (
        Client(broker.bootstrap, QUICK) as client,
        client.consumer("t", stop_at_end=True) as consumer,
    ):
        broker.delete_topic("t")
        broker.create_topic("t", partitions=1)
        await write(broker, "t", b"new")
        await client.refresh(["t"])
        assert [record.value async for record in consumer] == [b"new"]


async def test_start_offsets_apply_to_the_recreated_topic(broker: Broker) -> None:
    async with Client(broker.bootstrap, QUICK) as client:
        await recreate_topic(client, broker, before=1, after=1)
        await write(broker, "t", b"0", b"1", b"2")
        async with client.consumer("t", start={("t", 0): 1}) as consumer:
            records = aiter(consumer)
            assert [(await anext(records)).value for _ in range(2)] == [b"1", b"2"]


async def test_latest_is_the_end_of_the_recreated_topic(broker: Broker) -> None:
    async with Client(broker.bootstrap, QUICK) as client:
        await recreate_topic(client, broker, before=1, after=1)
        await write(broker, "t", b"0", b"1")
        async with client.consumer("t", start="latest") as consumer:
            await write(broker, "t", b"2")
            assert (await anext(aiter(consumer))).value == b"2"


async def test_missing_start_offset_raises_on_each_poll(broker: Broker) -> None:
    broker.create_topic("t", partitions=1)
    await write(broker, "t", b"old")
    async with (
        Client(broker.bootstrap, QUICK) as client,
        client.consumer("t", start={("t", 0): 0}, stop_at_end=True) as consumer,
    ):
        broker.delete_topic("t")
        broker.create_topic("t", partitions=2)
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="has no offset for"):
                await anext(aiter(consumer))
        broker.delete_topic("t")
        broker.create_topic("t", partitions=1)
        await write(broker, "t", b"at last")
        await client.refresh(["t"])
        assert [record.value async for record in consumer] == [b"at last"]


async def test_stop_at_end_reads_partitions_missing_from_metadata() -> None:
    async with ScriptedBroker({"t": 1}) as scripted, Client(scripted.bootstrap, QUICK) as client:
        log = ScriptedLog(scripted)
        await client.topic("t")
        scripted.topics["t"] = 2
        log.append(batch(0, [b"in the new one"]), partition=1)
        consumer = client.consumer("t", stop_at_end=True)
        assert [record.value async for record in consumer] == [b"in the new one"]
        assert scripted.count(MetadataRequest) == 3  # start, topic, refresh


async def test_metadata_received_since_the_start_is_not_refreshed() -> None:
    async with ScriptedBroker({"t": 1}) as scripted, Client(scripted.bootstrap, QUICK) as client:
        ScriptedLog(scripted)
        assert [record async for record in client.consumer("t", stop_at_end=True)] == []
        assert scripted.count(MetadataRequest) == 2


# --- Start at a time ---

#: The times of the records of `timed_topic`, in seconds since 1970; the later ones are at even
#: offsets.
TIMES = (1_000, 900, 2_000, 950)


async def timed_topic(broker: Broker) -> None:
    """Creates topic `t`: partition 0 has a record for each of `TIMES`, partition 1 is empty."""
    broker.create_topic("t", partitions=2)
    async with Client(broker.bootstrap, QUICK) as client, client.producer() as producer:
        for each in TIMES:
            record = ProducerRecord(b"%d" % each, timestamp=each * 1000, partition=0)
            await producer.send_many("t", [record])


@pytest.mark.parametrize(
    ("start", "first"),
    [
        (datetime.fromtimestamp(0, UTC), 0),
        (datetime.fromtimestamp(1_000, UTC), 0),
        (datetime.fromtimestamp(1_001, UTC), 2),
        (datetime.fromtimestamp(1_000, UTC) + timedelta(microseconds=1), 2),
        (datetime.fromtimestamp(2_000, UTC).astimezone(), 2),
        (timedelta(seconds=1_500), 2),  # the clock says 3,000 s
        (timedelta(days=99), 0),
    ],
)
async def test_consumer_starts_at_the_first_record_at_or_after_a_time(
    broker: Broker, start: Any, first: int
) -> None:
    await timed_topic(broker)
    clock = ManualClock(start_ms=3_000_000)
    async with Client(broker.bootstrap, QUICK, clock=clock) as client:
        consumer = client.consumer("t", start=start, stop_at_end=True)
        assert [record.offset async for record in consumer] == list(range(first, len(TIMES)))


@pytest.mark.parametrize(
    ("start", "expected_ms"),
    [
        (datetime(1970, 1, 1, 0, 0, 5, 1_000, tzinfo=UTC), 5_001),
        (datetime(1970, 1, 1, 0, 0, 5, 1_001, tzinfo=UTC), 5_002),
        (datetime(1970, 1, 1, 0, 0, 5, 1_999, tzinfo=UTC), 5_002),
        (datetime(9999, 12, 31, 23, 59, 59, 999_001, tzinfo=UTC), 253_402_300_800_000),
        (timedelta(milliseconds=2), 8),
        (timedelta(milliseconds=2, microseconds=1), 8),
        (timedelta(milliseconds=2, microseconds=999), 8),
        (timedelta.max, 0),
    ],
)
def test_start_time_with_microseconds_is_rounded_up_to_ms(
    start: datetime | timedelta, expected_ms: int
) -> None:
    assert start_time_ms(start, now_ms=10) == expected_ms


async def test_partition_without_a_record_at_or_after_the_time_starts_at_its_end(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    await timed_topic(broker)
    start = datetime.fromtimestamp(1_500, UTC)
    caplog.set_level(logging.INFO, "kproto.client")
    async with Client(broker.bootstrap, QUICK) as client:
        async with client.consumer("t", start=start) as consumer:
            assert consumer.positions == {("t", 0): 2, ("t", 1): 0}
        assert "t[1] has no record at or after 1970-01-01 00:25:00+00:00" in caplog.text
        async with client.consumer("t", start=datetime.fromtimestamp(2_001, UTC)) as consumer:
            assert consumer.positions == {("t", 0): 4, ("t", 1): 0}
            await write(broker, "t", b"new")
            assert (await anext(aiter(consumer))).value == b"new"


@pytest.mark.parametrize(
    ("start", "matches"),
    [
        (datetime(2026, 1, 1), "no time zone; set one, as datetime.now"),  # noqa: DTZ001
        (datetime(1969, 1, 1, tzinfo=UTC), "before 1970"),
        (timedelta(seconds=-1), "not negative"),
        ("none", "'earliest', 'latest', an offset for each partition, a datetime"),
    ],
)
async def test_invalid_start_time_is_refused(start: Any, matches: str) -> None:
    with pytest.raises(ConfigurationError, match=matches):
        Client("localhost:1").consumer("t", start=start)
