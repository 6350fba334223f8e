"""Tests fetches from followers (KIP-392) and leaders named in responses (KIP-951)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from kproto import Client, Consumer
from kproto.client.fetch.partition_state import TopicPartitionState
from kproto.client.settings import ClientSettings
from kproto.messages import FetchRequest, ListOffsetsRequest, MetadataRequest
from kproto.messages.fetch_response import LeaderIdAndEpoch, NodeEndpoint
from kproto.messages.metadata_response import MetadataResponseBroker
from kproto.protocol.connection import ReceivedRequest
from kproto.wire.uuid import Uuid
from tests.unit.client.broker_sessions import BrokerSessions
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = replace(quick(metadata_wait_ms=100, delivery_timeout_ms=1000), rack="b")
#: These backoffs are so long that a test times out if the consumer waits before a retry.
PATIENT = replace(QUICK, retry_backoff_ms=30_000, retry_backoff_max_ms=60_000)

ID = Uuid(bytes(15) + b"\x07")

Answer = Callable[[ReceivedRequest], Any]


class TwoBrokers:
    """Nodes 0 and 1, with one log; both nodes report `leader` and `epoch` in Metadata.

    `fetched_from` lists the node of each fetch. `faults` has for each node the errors or hints of
    its next fetches. If `prefers` is set, the leader names node 1 as the preferred replica to each
    consumer with a rack, as Kafka does.
    """

    def __init__(self, brokers: list[ScriptedBroker]) -> None:
        self.brokers = brokers
        self.logs = [ScriptedLog(broker) for broker in brokers]
        self.logs[1].batches = self.logs[0].batches
        self.logs[1].following = self.logs[0].following
        self.leader = 0
        self.epoch = 3
        self.known = [0, 1]
        self.fetched_from: list[int] = []
        self.faults: list[list[Any]] = [[], []]
        self.prefers = False
        for node, broker in enumerate(brokers):
            broker.answers[MetadataRequest] = self.metadata
            broker.answers[FetchRequest] = self._fetching(node)
            self.logs[node].sessions = BrokerSessions()

    def append(self, value: bytes) -> None:
        end = self.logs[0].end(("t", 0))
        self.logs[0].append(batch(end, [value], partition_leader_epoch=self.epoch))

    def metadata(self, request: ReceivedRequest) -> Any:
        answer = self.brokers[0].metadata(request)
        answer.brokers.clear()
        for node in self.known:
            answer.brokers.append(
                MetadataResponseBroker(
                    node_id=node, host="127.0.0.1", port=self.brokers[node].port, rack="ab"[node]
                )
            )
        for topic in answer.topics:
            for part in topic.partitions:
                part.leader_id = self.leader
                part.leader_epoch = self.epoch
        return answer

    def _fetching(self, node: int) -> Answer:
        async def fetch(request: ReceivedRequest) -> Any:
            self.fetched_from.append(node)
            faults = self.faults[node]
            fault = faults.pop(0) if faults else None
            assert isinstance(request.message, FetchRequest)
            names_rack = bool(request.message.rack_id)
            if fault is None and self.prefers and node == self.leader and names_rack:
                fault = PREFER
            if fault == HANG_UP:
                return fault
            if fault is not None:
                saying = dict(fault)
                if code := saying.pop("error_code", 0):
                    self.logs[node].errors = [code]
                self.logs[node].sayings = [saying]
            answer = await self.logs[node].fetch(request)
            if fault and "preferred_read_replica" in fault:
                for topic in answer.responses:
                    for part in topic.partitions:
                        part.records = b""
            if request.version >= 16 and fault and "current_leader" in fault:
                port = self.brokers[1].port
                answer.node_endpoints.append(
                    NodeEndpoint(node_id=1, host="127.0.0.1", port=port, rack="b")
                )
            return answer

        return fetch

    def metadata_asked(self) -> int:
        return sum(broker.count(MetadataRequest) for broker in self.brokers)


PREFER: Any = {"preferred_read_replica": 1}


@asynccontextmanager
async def two(settings: ClientSettings = QUICK) -> AsyncIterator[tuple[TwoBrokers, Client]]:
    async with (
        ScriptedBroker({"t": 1}) as first,
        ScriptedBroker({"t": 1}) as second,
        Client(first.bootstrap, settings) as client,
    ):
        made = TwoBrokers([first, second])  # both share one log
        await client.refresh(["t"])
        yield made, client


async def take(consumer: Consumer, count: int) -> list[bytes | None]:
    records = aiter(consumer)
    return [(await anext(records)).value for _ in range(count)]


# Preferred replicas


async def test_preferred_replica_is_fetched_from() -> None:
    async with two() as (it, client):
        it.append(b"a")
        it.faults[0] = [PREFER]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
            it.append(b"b")
            assert await take(consumer, 1) == [b"b"]
            # The end of the consumer ends its fetch session at the leader with one more fetch.
            assert it.fetched_from[:2] == [0, 1]
            assert set(it.fetched_from[1:]) == {1}
            assert {fetch.rack_id for fetch in it.logs[0].fetches} == {"b"}


async def test_preferred_replica_expires_with_metadata() -> None:
    async with two(replace(QUICK, metadata_max_age_ms=30)) as (it, client):
        it.append(b"a")
        it.faults[0] = [PREFER]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
            waiting = asyncio.create_task(take(consumer, 1))
            await it.brokers[0].until(lambda: it.fetched_from.count(0) >= 3)
            it.append(b"b")
            assert await waiting == [b"b"]


NOT_LEADER: Any = {"error_code": 6}
GONE: Any = {"error_code": 1}
NOT_YET: Any = {"error_code": 78}


@pytest.mark.parametrize("fault", [HANG_UP, NOT_LEADER, GONE, NOT_YET, {"error_code": 9}])
async def test_error_of_a_replica_returns_to_the_leader(fault: Any) -> None:
    async with two() as (it, client):
        it.append(b"a")
        it.append(b"b")
        it.faults = [[PREFER], [fault]]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 2) == [b"a", b"b"]
        assert it.fetched_from[:3] == [0, 1, 0]


async def test_offset_out_of_range_at_a_follower_is_fetched_from_the_leader() -> None:
    async with two(PATIENT) as (it, client):
        it.append(b"a")
        it.faults = [[PREFER], [GONE]]
        async with client.consumer("t", max_wait_ms=5, start={("t", 0): 0}) as consumer:
            assert await take(consumer, 1) == [b"a"]
        assert it.fetched_from[:3] == [0, 1, 0]
        assert it.brokers[0].count(ListOffsetsRequest) == 0


async def test_lagging_follower_does_not_cause_a_truncation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with two(PATIENT) as (it, client):
        it.append(b"a")
        it.append(b"b")
        async with client.consumer("t", max_wait_ms=5, start={("t", 0): 0}) as consumer:
            assert await take(consumer, 2) == [b"a", b"b"]
            it.logs[1].epochs["t", 0] = (3, 1)
            it.faults[0] = [PREFER]
            asked = len(it.fetched_from)
            it.append(b"c")
            assert await take(consumer, 1) == [b"c"]
            assert it.fetched_from[asked : asked + 3] == [0, 1, 0]
        assert caplog.text == ""


async def test_replica_missing_in_metadata_is_not_fetched_from() -> None:
    async with two() as (it, client):
        it.append(b"a")
        it.faults[0] = [PREFER]
        it.known = [0]
        await client.refresh(["t"])
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
        assert set(it.fetched_from) == {0}


async def test_missing_preferred_replica_triggers_a_metadata_refresh() -> None:
    settings = replace(QUICK, retry_backoff_max_ms=150)
    async with two(settings) as (it, client):
        it.append(b"a")
        it.prefers = True
        it.known = [0]
        await client.refresh(["t"])
        asked = it.metadata_asked()
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
            assert it.fetched_from == [0, 0], "the second fetch names no rack"
            waiting = asyncio.create_task(take(consumer, 1))
            await it.brokers[0].until(lambda: it.metadata_asked() > asked)
            it.known = [0, 1]  # metadata has the replica again
            await it.brokers[1].until(lambda: 1 in it.fetched_from)
            it.append(b"b")
            assert await waiting == [b"b"]


async def test_unreachable_replica_returns_to_the_leader() -> None:
    async with two(replace(QUICK, retry_backoff_max_ms=60_000)) as (it, client):
        it.append(b"a")
        it.prefers = True
        it.faults[1] = [HANG_UP]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
        assert it.fetched_from[:3] == [0, 1, 0]
        assert [fetch.rack_id for fetch in it.logs[0].fetches][:2] == ["b", ""]


def test_preferred_replica_is_used_until_its_deadline() -> None:
    state = TopicPartitionState(("t", 0), ClientSettings(), position=5)
    assert state.select_node(0, 1.0, {0, 1}) == 0
    state.prefer_replica(1, 10.0)
    assert state.select_node(0, 9.9, {0, 1}) == 1
    assert state.select_node(0, 10.0, {0, 1}) == 0
    assert state.select_node(0, 9.9, {0, 1}) == 0, "the leader names the next preferred replica"
    state.prefer_replica(1, 10.0)
    assert state.select_node(0, 9.9, {0}) == 0


# Leaders named in responses


def hint(leader: int, epoch: int, code: int = 6) -> Any:
    return {
        "error_code": code,
        "current_leader": LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
    }


@pytest.mark.parametrize("code", [6, 74])
async def test_leader_named_in_a_response_is_fetched_from_at_once(code: int) -> None:
    async with two(PATIENT) as (it, client):
        it.append(b"a")
        it.faults[0] = [hint(1, 4, code)]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            before = it.metadata_asked()
            assert await take(consumer, 1) == [b"a"]
            assert it.metadata_asked() == before
        assert it.fetched_from[:2] == [0, 1]
        assert client.cluster.leader("t", 0) == 1


async def test_leader_named_in_a_response_may_be_an_unknown_broker() -> None:
    async with two(PATIENT) as (it, client):
        it.known = [0]
        for broker in it.brokers:

            def metadata(request: ReceivedRequest) -> Any:
                answer = it.metadata(request)
                for topic in answer.topics:
                    topic.topic_id = ID
                return answer

            broker.answers[MetadataRequest] = metadata
        for log in it.logs:
            log.names[ID] = "t"
        await client.refresh(["t"])
        assert set(client.cluster.brokers) == {0}
        it.append(b"a")
        it.faults[0] = [hint(1, 4)]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
        assert it.fetched_from[:2] == [0, 1]
        assert set(client.cluster.brokers) == {0, 1}


@pytest.mark.parametrize("old", [hint(1, 3), hint(1, 2), hint(-1, -1), hint(0, 3), hint(9, 4)])
async def test_leader_hint_with_an_old_epoch_is_ignored(old: Any) -> None:
    async with two() as (it, client):
        it.append(b"a")
        it.faults[0] = [old]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            before = it.metadata_asked()
            assert await take(consumer, 1) == [b"a"]
            assert it.metadata_asked() > before
        assert set(it.fetched_from) == {0}


async def test_position_is_validated_at_the_leader_named_in_a_response() -> None:
    async with two() as (it, client):
        it.append(b"a")
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
            it.faults[0] = [hint(1, 4)]
            it.leader, it.epoch = 1, 4
            it.append(b"b")
            assert await take(consumer, 1) == [b"b"]
        (asked,) = it.logs[1].asked_for_epochs
        assert asked.topics[0].partitions[0].current_leader_epoch == 4
