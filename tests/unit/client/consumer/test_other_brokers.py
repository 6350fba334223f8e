"""Reading near by (KIP-392), and leaders that responses name (KIP-951): two brokers, one log."""

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
#: Who waits before he tries again shows it: a test ends before.
PATIENT = replace(QUICK, retry_backoff_ms=30_000, retry_backoff_max_ms=60_000)

ID = Uuid(bytes(15) + b"\x07")

Answer = Callable[[ReceivedRequest], Any]


class TwoBrokers:
    """Nodes 0 and 1, which tell of `leader` and `epoch`; fetches are in `asked`, by node.

    `faults` has what a node answers to its next fetches in place of records. Where it `prefers`,
    the leader sends every reader that names its rack to node 1, as Kafka's does.
    """

    def __init__(self, brokers: list[ScriptedBroker]) -> None:
        self.brokers = brokers
        self.logs = [ScriptedLog(broker) for broker in brokers]
        self.logs[1].batches = self.logs[0].batches
        self.logs[1].following = self.logs[0].following
        self.leader = 0
        self.epoch = 3
        self.known = [0, 1]
        self.asked: list[int] = []
        self.faults: list[list[Any]] = [[], []]
        self.prefers = False
        for node, broker in enumerate(brokers):
            broker.answers[MetadataRequest] = self.metadata
            broker.answers[FetchRequest] = self._fetching(node)
            self.logs[node].sessions = BrokerSessions()

    def append(self, value: bytes) -> None:
        end = self.logs[0].end(("t", 0))
        self.logs[0].append(batch(end, [value], partition_leader_epoch=self.epoch))

    def metadata(self, asked: ReceivedRequest) -> Any:
        answer = self.brokers[0].metadata(asked)
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
        async def fetch(asked: ReceivedRequest) -> Any:
            self.asked.append(node)
            faults = self.faults[node]
            fault = faults.pop(0) if faults else None
            assert isinstance(asked.message, FetchRequest)
            names_rack = bool(asked.message.rack_id)
            if fault is None and self.prefers and node == self.leader and names_rack:
                fault = PREFER
            if fault == HANG_UP:
                return fault
            if fault is not None:
                saying = dict(fault)
                if code := saying.pop("error_code", 0):
                    self.logs[node].errors = [code]
                self.logs[node].sayings = [saying]
            answer = await self.logs[node].fetch(asked)
            if fault and "preferred_read_replica" in fault:
                for topic in answer.responses:
                    for part in topic.partitions:
                        part.records = b""
            if asked.version >= 16 and fault and "current_leader" in fault:
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
        made = TwoBrokers([first, second])
        await client.refresh(["t"])
        yield made, client


async def take(consumer: Consumer, count: int) -> list[bytes | None]:
    records = aiter(consumer)
    return [(await anext(records)).value for _ in range(count)]


# Reading near by


async def test_the_replica_that_the_leader_prefers_is_read() -> None:
    async with two() as (it, client):
        it.append(b"a")
        it.faults[0] = [PREFER]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
            it.append(b"b")
            assert await take(consumer, 1) == [b"b"]
        assert it.asked[:2] == [0, 1]
        assert set(it.asked[1:]) == {1}
        assert {fetch.rack_id for fetch in it.logs[0].fetches} == {"b"}


async def test_it_is_read_for_as_long_as_metadata_counts() -> None:
    async with two(replace(QUICK, metadata_max_age_ms=30)) as (it, client):
        it.append(b"a")
        it.faults[0] = [PREFER]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
            waiting = asyncio.create_task(take(consumer, 1))
            await it.brokers[0].until(lambda: it.asked.count(0) >= 3)
            it.append(b"b")
            assert await waiting == [b"b"]


NOT_LEADER: Any = {"error_code": 6}
GONE: Any = {"error_code": 1}
NOT_YET: Any = {"error_code": 78}


@pytest.mark.parametrize("fault", [HANG_UP, NOT_LEADER, GONE, NOT_YET, {"error_code": 9}])
async def test_after_an_error_of_the_replica_the_leader_is_asked(fault: Any) -> None:
    async with two() as (it, client):
        it.append(b"a")
        it.append(b"b")
        it.faults = [[PREFER], [fault]]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 2) == [b"a", b"b"]
        assert it.asked[:3] == [0, 1, 0]


async def test_an_offset_out_of_a_followers_range_is_asked_of_the_leader_at_once() -> None:
    async with two(PATIENT) as (it, client):
        it.append(b"a")
        it.faults = [[PREFER], [GONE]]
        async with client.consumer("t", max_wait_ms=5, start={("t", 0): 0}) as consumer:
            assert await take(consumer, 1) == [b"a"]
        assert it.asked[:3] == [0, 1, 0]
        assert it.brokers[0].count(ListOffsetsRequest) == 0


async def test_a_follower_that_lacks_what_was_read_does_not_truncate_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with two(PATIENT) as (it, client):
        it.append(b"a")
        it.append(b"b")
        async with client.consumer("t", max_wait_ms=5, start={("t", 0): 0}) as consumer:
            assert await take(consumer, 2) == [b"a", b"b"]
            it.logs[1].epochs["t", 0] = (3, 1)
            it.faults[0] = [PREFER]
            asked = len(it.asked)
            it.append(b"c")
            assert await take(consumer, 1) == [b"c"]
            assert it.asked[asked : asked + 3] == [0, 1, 0]
        assert caplog.text == ""


async def test_a_replica_that_has_left_is_not_asked() -> None:
    async with two() as (it, client):
        it.append(b"a")
        it.faults[0] = [PREFER]
        it.known = [0]
        await client.refresh(["t"])
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
        assert set(it.asked) == {0}


async def test_a_replica_that_metadata_lacks_is_looked_for() -> None:
    settings = replace(QUICK, retry_backoff_max_ms=150)
    async with two(settings) as (it, client):
        it.append(b"a")
        it.prefers = True
        it.known = [0]
        await client.refresh(["t"])
        asked = it.metadata_asked()
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
            assert it.asked == [0, 0], "the leader is not asked again whom it prefers"
            waiting = asyncio.create_task(take(consumer, 1))
            await it.brokers[0].until(lambda: it.metadata_asked() > asked)
            it.known = [0, 1]  # it has come back
            await it.brokers[1].until(lambda: 1 in it.asked)
            it.append(b"b")
            assert await waiting == [b"b"]


async def test_while_a_replica_is_away_the_leader_is_read() -> None:
    async with two(replace(QUICK, retry_backoff_max_ms=60_000)) as (it, client):
        it.append(b"a")
        it.prefers = True
        it.faults[1] = [HANG_UP]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            assert await take(consumer, 1) == [b"a"]
        assert it.asked[:3] == [0, 1, 0]
        assert [fetch.rack_id for fetch in it.logs[0].fetches][:2] == ["b", ""]


def test_until_when_a_replica_is_read() -> None:
    state = TopicPartitionState(("t", 0), ClientSettings(), position=5)
    assert state.read_from(0, 1.0, {0, 1}) == 0
    state.prefer_replica(1, 10.0)
    assert state.read_from(0, 9.9, {0, 1}) == 1
    assert state.read_from(0, 10.0, {0, 1}) == 0
    assert state.read_from(0, 9.9, {0, 1}) == 0, "the leader is asked whom it prefers now"
    state.prefer_replica(1, 10.0)
    assert state.read_from(0, 9.9, {0}) == 0


# Leaders that responses name


def hint(leader: int, epoch: int, code: int = 6) -> Any:
    return {
        "error_code": code,
        "current_leader": LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
    }


@pytest.mark.parametrize("code", [6, 74])
async def test_the_leader_that_a_response_names_is_asked_at_once(code: int) -> None:
    async with two(PATIENT) as (it, client):
        it.append(b"a")
        it.faults[0] = [hint(1, 4, code)]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            before = it.metadata_asked()
            assert await take(consumer, 1) == [b"a"]
            assert it.metadata_asked() == before
        assert it.asked[:2] == [0, 1]
        assert client.cluster.leader("t", 0) == 1


async def test_the_broker_that_a_response_names_need_not_be_known() -> None:
    async with two(PATIENT) as (it, client):
        it.known = [0]
        for broker in it.brokers:

            def metadata(asked: ReceivedRequest) -> Any:
                answer = it.metadata(asked)
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
        assert it.asked[:2] == [0, 1]
        assert set(client.cluster.brokers) == {0, 1}


@pytest.mark.parametrize("old", [hint(1, 3), hint(1, 2), hint(-1, -1), hint(0, 3), hint(9, 4)])
async def test_a_hint_that_is_no_news_is_none(old: Any) -> None:
    async with two() as (it, client):
        it.append(b"a")
        it.faults[0] = [old]
        async with client.consumer("t", max_wait_ms=5) as consumer:
            before = it.metadata_asked()
            assert await take(consumer, 1) == [b"a"]
            assert it.metadata_asked() > before
        assert set(it.asked) == {0}


async def test_what_was_read_is_validated_at_the_leader_that_was_named() -> None:
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
