"""Tests that a commit in flight to a frozen coordinator does not wait for `api_timeout_ms`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

import pytest

from kproto import Client
from kproto.broker import Cluster, SilentConnection
from kproto.broker.faults.outcomes import Outcome
from kproto.messages import OffsetCommitRequest
from kproto.protocol.connection import ReceivedRequest
from tests.unit.client.scripted_broker import quick

SETTINGS = replace(
    quick(metadata_wait_ms=5_000, delivery_timeout_ms=10_000),
    request_timeout_ms=500,
    api_timeout_ms=40_000,
)


@pytest.mark.parametrize("membership", ["manual", "classic", "consumer"])
async def test_commit_in_flight_is_sent_to_the_new_coordinator(
    membership: Literal["manual", "classic", "consumer"],
) -> None:
    async with Cluster(brokers=3) as cluster:
        cluster.create_topic("t", partitions=1, replication_factor=3)
        async with Client(cluster.bootstrap, SETTINGS) as client:
            async with client.producer() as producer:
                await producer.send_many("t", [b"1", b"2"])
            consumer = (
                client.consumer([("t", 0)], group="g", start="earliest", auto_commit=False)
                if membership == "manual"
                else client.consumer(
                    "t", group="g", start="earliest", auto_commit=False, group_protocol=membership
                )
            )
            async with consumer:
                while not await consumer.poll(timeout_ms=1_000):
                    pass
                await consumer.poll(timeout_ms=10)  # the records are processed
                frozen = cluster.coordinator("g")
                cluster.move_leader("t", 0, frozen % 3 + 1)
                received = asyncio.Event()

                def freeze(request: ReceivedRequest) -> Outcome:
                    received.set()
                    cluster.control(SilentConnection(), node=frozen)
                    return SilentConnection()(request)

                cluster.control(freeze, request=OffsetCommitRequest, node=frozen, times=1)
                commit = asyncio.create_task(consumer.commit())
                await received.wait()
                for partition in cluster.topics["__consumer_offsets"].partitions:
                    cluster.move_leader("__consumer_offsets", partition.index, frozen % 3 + 1)
                async with asyncio.timeout(SETTINGS.api_timeout_ms / 2_000):
                    await commit
                committed = (await consumer.committed(("t", 0)))["t", 0]
                assert committed is not None
                assert committed.offset == 2
