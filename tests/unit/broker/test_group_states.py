"""Tests the description of groups for tests: members, offsets and lag, and waiting for a state."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from kproto import Client
from kproto.broker import Broker, BrokerSettings
from kproto.broker.group_states import GroupMember, GroupState, TopicPartition

FAST = BrokerSettings(
    group_consumer_heartbeat_interval_ms=50, group_consumer_min_heartbeat_interval_ms=50
)

ORDERS = TopicPartition("orders", 0)
MEMBER = GroupMember("m", "billing", (ORDERS,))


def state(name: str = "Stable", lag: int | None = 0, members: int = 1) -> GroupState:
    lags = {} if lag is None else {ORDERS: lag}
    return GroupState("billing", "classic", name, (MEMBER,) * members, {ORDERS: 3}, lags)


@pytest.mark.parametrize(
    ("group", "lag", "members", "reached"),
    [
        (state(lag=None), None, None, True),
        (state(lag=None), 0, None, False),
        (state(lag=1), 0, None, False),
        (state(lag=1), 1, None, True),
        (state(members=1), None, 2, False),
        (state(members=2), 0, 2, True),
        (state("PreparingRebalance"), None, 1, False),
        (state("PreparingRebalance"), 0, None, True),
        (state("Empty", members=0), 0, 0, True),
    ],
)
def test_group_has_reached_its_lag_and_its_members(
    group: GroupState, lag: int | None, members: int | None, reached: bool
) -> None:
    assert group.has_reached(lag=lag, members=members) is reached


def test_group_is_shown_on_one_line() -> None:
    assert str(state()) == (
        "billing (classic): Stable; members with their number of partitions: billing (1); "
        "orders-0: 3 committed, lag 0"
    )
    assert "none; no offsets" in str(state(lag=None, members=0))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_group_has_members_and_lag_of_unread_records(
    protocol: Literal["classic", "consumer"],
) -> None:
    async with Broker(FAST) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("orders", partitions=2)
        for value in (b"one", b"two"):
            broker.produce("orders", value)
        async with client.consumer(
            "orders", group="billing", start="earliest", group_protocol=protocol
        ) as consumer:
            records = aiter(consumer)
            await anext(records)
            joined = await broker.wait_for_group("billing", members=1)
            assert joined.protocol == protocol
            assert [tp for it in joined.members for tp in it.assignment] == [
                ("orders", 0),
                ("orders", 1),
            ]
            assert joined.lags == {("orders", 0): 2, ("orders", 1): 0}
            await anext(records)  # the first record is processed when the next one is asked for
            await consumer.commit()
            left = await broker.wait_for_group("billing", lag=1)
            assert (left.lag, left.offsets[ORDERS]) == (1, 1)


async def test_transaction_marker_at_the_end_is_no_lag() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("orders")
        async with client.producer(transactional_id="t") as producer, producer.transaction():
            await producer.send("orders", b"one")
        assert broker.end_offset("orders") == 2
        await client.commit_offsets("billing", {("orders", 0): 1})
        assert (await broker.wait_for_group("billing", lag=0)).lags == {("orders", 0): 0}
        broker.produce("orders", b"two")
        assert broker.groups["billing"].lag == 2  # the marker is between the records


async def test_partition_without_commit_counts_all_its_records() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("orders", partitions=2)
        for _ in range(3):
            broker.produce("orders", b"", partition=1)
        broker.delete_records("orders", 1, 1)
        await client.commit_offsets("billing", {("orders", 0): 0})
        assert broker.groups["billing"].lags == {("orders", 0): 0, ("orders", 1): 2}


async def test_wait_says_the_last_state_of_the_group() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        with pytest.raises(TimeoutError, match="there is no such group"):
            await broker.wait_for_group("billing", timeout_s=0)
        broker.create_topic("orders")
        broker.produce("orders", b"one")
        await client.commit_offsets("billing", {("orders", 0): 0})
        with pytest.raises(TimeoutError, match=r"lag=0.*the last state is: .*lag 1"):
            await broker.wait_for_group("billing", lag=0, timeout_s=0)


async def test_wait_ends_when_the_group_commits() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("orders")
        broker.produce("orders", b"one")
        waiting = asyncio.create_task(broker.wait_for_group("billing", lag=0))
        await client.commit_offsets("billing", {("orders", 0): 1})
        assert (await waiting).state == "Empty"
