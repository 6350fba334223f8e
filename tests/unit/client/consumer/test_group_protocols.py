"""Tests group consumers of both group protocols (classic, KIP-848) on the embedded broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from kproto import (
    Client,
    CommitFailedError,
    ConfigurationError,
    GroupConsumer,
    KprotoError,
    NewTopic,
    ProducerRecord,
    TopicPattern,
)
from kproto.broker import Broker, BrokerSettings
from kproto.client.groups.group_protocol import GroupProtocol
from kproto.client.groups.protocol_selection import GroupMember
from kproto.messages import ConsumerGroupDescribeRequest, DescribeGroupsRequest

QUICK = BrokerSettings(
    group_consumer_min_heartbeat_interval_ms=10,
    group_consumer_heartbeat_interval_ms=10,
)
VALUES = [b"%d" % at for at in range(12)]


@asynccontextmanager
async def client_of_a_broker(
    topic: str = "t", settings: BrokerSettings = QUICK
) -> AsyncIterator[Client]:
    async with Broker(settings=settings) as broker, Client(broker.bootstrap) as client:
        await client.create_topics(NewTopic(topic, partitions=4))
        async with client.producer() as producer:
            records = [ProducerRecord(each, partition=int(each) % 4) for each in VALUES]
            await producer.send_many(topic, records)
        yield client


def protocol_of(consumer: GroupConsumer) -> GroupProtocol:
    assert isinstance(consumer._member, GroupMember)
    return consumer._member.protocol


async def until(holds: Callable[[], object]) -> None:
    while not holds():  # noqa: ASYNC110 - a condition, and no event
        await asyncio.sleep(0.001)


async def read(consumer: GroupConsumer, count: int, **more: Any) -> list[bytes | None]:
    records = aiter(consumer)
    return [(await anext(records)).value for _ in range(count)]


async def test_new_group_uses_the_consumer_protocol() -> None:
    async with client_of_a_broker() as client:
        async with client.consumer("t", group="g") as consumer:
            assert sorted(await read(consumer, 12)) == sorted(VALUES)  # type: ignore[type-var]
            assert protocol_of(consumer) is GroupProtocol.CONSUMER
        async with client.consumer("t", group="g", start="none") as consumer:
            assert await consumer.lag() == {}
            await until(lambda: len(consumer.assignment) == 4)
            assert set((await consumer.lag()).values()) == {0}  # every record is committed


async def test_topic_pattern_is_matched_by_the_broker() -> None:
    async with (
        client_of_a_broker("orders-1") as client,
        client.consumer(TopicPattern("orders-[0-9]"), group="g") as consumer,
    ):
        assert sorted(await read(consumer, 12)) == sorted(VALUES)  # type: ignore[type-var]
        consumer.subscribe(TopicPattern("("))
        with pytest.raises(KprotoError, match="INVALID_REGULAR_EXPRESSION"):
            await anext(aiter(consumer))


async def test_converted_group_reads_each_record_once() -> None:
    """A classic member continues after the group is converted to the consumer protocol."""
    async with (
        client_of_a_broker() as client,
        client.consumer(
            "t",
            group="g",
            group_protocol="classic",
            assignors=["cooperative-sticky"],
            heartbeat_interval_ms=10,
            max_partition_fetch_bytes=1,
        ) as classic,
    ):
        seen = await read(classic, 1)
        records = aiter(classic)
        async with client.consumer("t", group="g", group_protocol="consumer") as newer:
            assert protocol_of(classic) is GroupProtocol.CLASSIC

            async def go_on(records: Any) -> None:
                async for record in records:
                    seen.append(record.value)

            reading = [asyncio.create_task(go_on(each)) for each in (records, aiter(newer))]
            await until(lambda: len(newer.assignment) == 2 and len(classic.assignment) == 2)
            await until(lambda: len(seen) == 12)
            for task in reading:
                task.cancel()
            await asyncio.wait(reading)
        assert sorted(seen) == sorted(VALUES)  # type: ignore[type-var]


async def test_consumer_protocol_member_waits_for_the_first_classic_rebalance(
    caplog: pytest.LogCaptureFixture,
) -> None:
    delayed = replace(QUICK, group_initial_rebalance_delay_ms=200)
    async with (
        client_of_a_broker(settings=delayed) as client,
        client.consumer(
            "t",
            group="g",
            group_protocol="classic",
            heartbeat_interval_ms=10,
            max_partition_fetch_bytes=1,
        ) as classic,
    ):
        described = DescribeGroupsRequest(groups=["g"])
        while not (await client.request(described)).groups[0].members:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        async with client.consumer("t", group="g", group_protocol="consumer") as newer:
            await until(lambda: len(newer.assignment) == 2 and len(classic.assignment) == 2)
    assert "can be converted: UNKNOWN_SERVER_ERROR" in caplog.text


@asynccontextmanager
async def stale_classic_member(
    client: Client,
) -> AsyncIterator[tuple[GroupConsumer, list[bytes | None]]]:
    """Yields a classic member with a stale generation, and the values that it has read.

    The member has processed two records and committed the first. Meanwhile a member of the consumer
    protocol has joined and left, which the classic member has not noticed.
    """
    async with client.consumer(
        "t",
        group="g",
        group_protocol="classic",
        auto_commit_interval_ms=60_000,
        max_partition_fetch_bytes=1,
    ) as classic:
        records = aiter(classic)
        seen = [(await anext(records)).value]
        seen.append((await anext(records)).value)
        await classic.commit()
        seen.append((await anext(records)).value)
        async with client.consumer("t", group="g", group_protocol="consumer"):
            request = ConsumerGroupDescribeRequest(group_ids=["g"])
            while len((await client.request(request)).groups[0].members) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        yield classic, seen


async def test_records_processed_in_a_stale_generation_are_redelivered() -> None:
    async with client_of_a_broker() as client, stale_classic_member(client) as (classic, seen):
        with pytest.raises(CommitFailedError, match="ILLEGAL_GENERATION"):
            await classic.commit({("t", 0): 3})
        again = await read(classic, 11)
        assert sorted([*seen[:1], *again]) == sorted(VALUES)  # type: ignore[type-var]


async def test_failed_last_commit_is_logged_and_records_are_redelivered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with client_of_a_broker() as client:
        async with stale_classic_member(client) as (_, seen):
            pass
        assert "processed offsets were not committed" in caplog.text
        assert "ILLEGAL_GENERATION" in caplog.text
        async with client.consumer("t", group="g") as consumer:
            again = await read(consumer, 11)
        assert sorted([*seen[:1], *again]) == sorted(VALUES)  # type: ignore[type-var]


async def test_enforce_rebalance_is_ignored_in_the_consumer_protocol(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        client_of_a_broker() as client,
        client.consumer("t", group="g", group_protocol="consumer") as consumer,
    ):
        await until(lambda: len(consumer.assignment) == 4)
        with caplog.at_level(logging.INFO, "kproto.client"):
            consumer.enforce_rebalance("as you like")
            await until(lambda: "ignores the request to rebalance (as you like)" in caplog.text)
        assert len(consumer.assignment) == 4


async def test_topic_pattern_needs_a_group() -> None:
    async with client_of_a_broker() as client:
        with pytest.raises(KprotoError, match="TopicPattern"):
            client.consumer(TopicPattern("t"))  # type: ignore[call-overload]


async def test_settings_without_effect_are_refused_or_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        await client.create_topics("t")
        with pytest.raises(ConfigurationError, match=r"^session_timeout_ms is ignored"):
            client.consumer("t", group="g", group_protocol="consumer", session_timeout_ms=45_000)
        with pytest.raises(ConfigurationError, match=r"^assignors is ignored"):
            client.consumer("t", group="g", group_protocol="consumer", assignors=["range"])
        manual = client.consumer(
            [("t", 0)], group="g", instance_id="i", leave_timeout_ms=1, auto_commit=False
        )
        async with manual:
            pass
    lines = [it.getMessage() for it in caplog.records if "is ignored" in it.getMessage()]
    assert [line.split()[2] for line in lines] == ["instance_id", "leave_timeout_ms"]
    assert lines[0].endswith("here: a consumer with assigned partitions is no member of the group")


@pytest.mark.parametrize(
    "name",
    ["session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"],
)
async def test_classic_properties_are_refused_with_the_consumer_protocol(name: str) -> None:
    value = "range" if name.startswith("partition") else "1000"
    properties = {"bootstrap.servers": "a:1", "group.protocol": "consumer", "group.id": "g"}
    client = Client.from_properties(properties | {name: value})
    with pytest.raises(ConfigurationError, match="with group_protocol 'consumer'"):
        client.consumer("t")
    await client.close()
