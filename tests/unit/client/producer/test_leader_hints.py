"""Tests leader hints: a former leader names the new leader, without Metadata (KIP-951)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto import Client, ClientSettings
from kproto.messages import InitProducerIdRequest, ProduceRequest
from kproto.messages.produce_response import LeaderIdAndEpoch, NodeEndpoint
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.unit.client.scripted_broker import Stored, produced
from tests.unit.client.scripted_cluster import ScriptedCluster, scripted_cluster

NOT_LEADER = 6

#: The manual clock never advances: a test in which the client waits for a backoff would not end.
PATIENT = ClientSettings(retry_backoff_ms=10_000, retry_backoff_max_ms=10_000)


def moved_to(cluster: ScriptedCluster, node: int, epoch: int) -> Any:
    """Returns an answer that refuses the batches and names `node` as the leader."""

    def answer(asked: ReceivedRequest) -> Any:
        response = produced(asked, NOT_LEADER)
        for topic in response.responses:
            for part in topic.partition_responses:
                part.current_leader = LeaderIdAndEpoch(leader_id=node, leader_epoch=epoch)
        port = cluster.brokers[node].port
        response.node_endpoints.append(NodeEndpoint(node_id=node, host="127.0.0.1", port=port))
        return response

    return answer


@pytest.mark.parametrize("known", [True, False])
async def test_new_leader_gets_the_batch_at_once(known: bool) -> None:
    async with scripted_cluster(2) as cluster:
        cluster.topic("t", [0])
        cluster.up = [0, 1] if known else [0]
        async with (
            Client(cluster.bootstrap, PATIENT, clock=ManualClock()) as client,
            client.producer() as producer,
        ):
            stored = Stored(cluster.brokers[1])
            await client.topic("t")
            before = len(cluster.asked_for())
            cluster.brokers[0].answers[ProduceRequest] = moved_to(cluster, 1, 5)
            sending = [asyncio.create_task(producer.send("t", b"%d" % at)) for at in range(20)]
            await asyncio.gather(*sending)
            await producer.send("t", b"last")
            assert stored.values() == [*(b"%d" % at for at in range(20)), b"last"]
            assert len(cluster.asked_for()) == before
            assert cluster.brokers[0].count(ProduceRequest) >= 1


@pytest.mark.parametrize("epoch", [0, -1])
async def test_outdated_hint_is_ignored(epoch: int) -> None:
    """The hint's leader epoch is not newer than the leader epoch in metadata.

    The client refreshes metadata after a backoff.
    """
    async with scripted_cluster(2) as cluster:
        cluster.topic("t", [0])
        clock = ManualClock()
        async with (
            Client(cluster.bootstrap, PATIENT, clock=clock) as client,
            client.producer() as producer,
        ):
            stored = Stored(cluster.brokers[0])
            await client.topic("t")
            cluster.brokers[0].answers[ProduceRequest] = moved_to(cluster, 1, epoch)
            sending = asyncio.create_task(producer.send("t", b"x"))
            await cluster.brokers[0].until(lambda: cluster.count(ProduceRequest) == [1, 0])
            await cluster.brokers[0].until(lambda: clock.next_timer_ms is not None)
            await asyncio.sleep(0.02)
            assert cluster.count(ProduceRequest) == [1, 0]
            cluster.brokers[0].answers[ProduceRequest] = stored.answer
            while not sending.done():
                await clock.advance(1_000)
                await asyncio.sleep(0.001)
            assert (await sending).offset == 0


async def test_brokers_that_name_each_other_cause_no_request_loop() -> None:
    async with scripted_cluster(2) as cluster:
        cluster.topic("t", [0])
        clock = ManualClock()
        async with (
            Client(cluster.bootstrap, PATIENT, clock=clock) as client,
            client.producer() as producer,
        ):
            await client.topic("t")
            stored = Stored(cluster.brokers[0])
            cluster.brokers[0].answers[ProduceRequest] = moved_to(cluster, 1, 5)
            cluster.brokers[1].answers[ProduceRequest] = moved_to(cluster, 0, 5)
            sending = asyncio.create_task(producer.send("t", b"x"))
            await cluster.brokers[0].until(lambda: cluster.count(ProduceRequest) == [1, 1])
            await asyncio.sleep(0.02)
            assert cluster.count(ProduceRequest) == [1, 1]
            cluster.brokers[0].answers[ProduceRequest] = stored.answer
            cluster.epochs["t"][0] = 6
            while not sending.done():
                await clock.advance(1_000)
                await asyncio.sleep(0.001)
            assert (await sending).offset == 0
            assert cluster.brokers[0].count(InitProducerIdRequest) <= 1
