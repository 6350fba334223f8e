"""Members of the consumer protocol (KIP-848) at real brokers, alone and beside classic ones."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kproto
from kproto import Client, ConfigurationError, KprotoError, TopicPattern
from kproto.client.groups.choosing import GroupMember
from kproto.client.groups.group_kinds import Kind
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
)
from kproto.messages.consumer_group_describe_response import DescribedGroup
from kproto.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from tests.kafka.members_of_groups import Members, all_of, shared, until
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START, StartKafka
from tests.support.group_owner import Reading, made_as
from tools.kafka import VERSIONS, KafkaNode

#: Sessions of two seconds, and heartbeats ten times a second; 3.9 has the protocol turned off.
SHORT = {
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.max.size": "3",
}

NEWEST = VERSIONS[0]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=VERSIONS)
def node(request: pytest.FixtureRequest) -> Iterator[KafkaNode]:
    """A broker of the consumer protocol, with short sessions."""
    try:
        kafka = KafkaNode(request.param, config=SHORT)
        kafka.start()
    except CANNOT_START as error:
        not_available(f"Kafka {request.param}", error)
    yield kafka
    kafka.close()


class Group(Members):
    """Some members, each of a client of its own as in a process of its own."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.owners: dict[tuple[str, int], Reading] = {}

    async def member(
        self, *wanted: str | re.Pattern[str] | TopicPattern, **settings: Any
    ) -> tuple[GroupMember, Reading]:
        """One more, of the consumer protocol unless it says otherwise."""
        its: dict[str, Any] = {
            "group_protocol": "consumer",
            "session_timeout_ms": 2_000,
            "heartbeat_interval_ms": 100,
        } | settings
        names = [each for each in wanted if isinstance(each, str)]
        subscription = Subscription.to(names or wanted[0])
        member, reading = made_as(
            GroupMember, await self.client(), GroupSettings(self.id, **its), subscription
        )
        reading.on_call = partial(self._owned, reading)
        self.members.append(member)
        member.start()
        return member, reading

    def _owned(self, reading: Reading, name: str, places: Collection[tuple[str, int]]) -> None:
        """What is given up is given up before anybody else begins with it."""
        for place in places:
            if name == "assign":
                assert place not in self.owners
                self.owners[place] = reading
            else:
                assert self.owners.pop(place) is reading

    async def described(self) -> DescribedGroup:
        """The group as one of the consumer protocol."""
        answer = await self.clients[0].request(ConsumerGroupDescribeRequest(group_ids=[self.id]))
        return answer.groups[0]

    async def classic_state(self) -> str:
        answer = await self.clients[0].request(DescribeGroupsRequest(groups=[self.id]))
        return answer.groups[0].group_state


async def failed(reading: Reading) -> str:
    """What a member is at its end for; what it had is gone then."""
    await until(lambda: reading.error is not None)
    assert reading.places == set()
    return str(reading.error)


# Members


async def test_members_come_and_go(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(6)
        first, its = await group.member(topic)
        await until(lambda: its.places == all_of(topic, 6))
        second, others = await group.member(topic)
        await until(lambda: shared(topic, 6, its, others))
        assert [name for name in its.names if name == "revoke"] == ["revoke"]  # what moves alone
        _, thirds = await group.member(topic)
        await until(lambda: shared(topic, 6, its, others, thirds))
        described = await group.described()
        ids = {member.identity.member_id for member in group.members if member.identity}
        assert {each.member_id for each in described.members} == ids
        await first.leave(True)
        assert its.places == set()
        await until(lambda: shared(topic, 6, others, thirds))
        await second.leave(True)
        await until(lambda: thirds.places == all_of(topic, 6))
        for reading in (its, others, thirds):
            assert "lose" not in reading.names


async def test_a_static_member_comes_back_without_a_rebalance(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        first, its = await group.member(topic, instance_id="one")
        await until(lambda: its.places == all_of(topic, 4))
        _, others = await group.member(topic, instance_id="two")
        await until(lambda: shared(topic, 4, its, others))
        had, calls = set(its.places), list(others.calls)
        await first.leave(False)
        _, again = await group.member(topic, instance_id="one")
        await until(lambda: again.places)
        assert again.places == had
        assert others.calls == calls


async def test_two_with_one_instance_id(node: KafkaNode) -> None:
    """The second waits for as long as the first may be one that was killed."""
    async with Group(node.bootstrap) as group:
        topic = await group.topic(2)
        _, its = await group.member(topic, instance_id="one")
        await until(lambda: its.places)
        _, others = await group.member(topic, instance_id="one")
        assert "UNRELEASED_INSTANCE_ID" in await failed(others)
        assert its.places == all_of(topic, 2)


async def test_a_static_member_that_was_killed_comes_back_after_its_session(
    node: KafkaNode,
) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(2)
        first, its = await group.member(topic, instance_id="one")
        await until(lambda: its.places)
        group.owners.clear()
        await first.close()
        _, again = await group.member(topic, instance_id="one", session_timeout_ms=4_000)
        await until(lambda: again.places == all_of(topic, 2))


async def test_a_member_that_hears_nothing_gives_up_by_its_own_clock(node: KafkaNode) -> None:
    """The others get its partitions when its session is over; by then it reads them no more."""
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        first, its = await group.member(topic)
        await until(lambda: its.places)
        _, others = await group.member(topic)
        await until(lambda: shared(topic, 4, its, others))

        async def lost(group_id: str) -> int:
            return 999

        # Its heartbeats go nowhere: no node of that id is there.
        first._view.group_coordinator = lost  # type: ignore[method-assign]
        await until(lambda: others.places == all_of(topic, 4))
        assert its.names[-1] == "lose"


async def test_who_is_gone_without_a_word_is_replaced_after_its_session(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        first, its = await group.member(topic)
        await until(lambda: its.places)
        _, others = await group.member(topic)
        await until(lambda: shared(topic, 4, its, others))
        await first.close()
        for place in its.places:
            del group.owners[place]
        await until(lambda: others.places == all_of(topic, 4))


async def test_who_is_slow_leaves_and_comes_back_when_it_asks(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        first, its = await group.member(topic)
        await until(lambda: its.places)
        _, others = await group.member(topic)
        await until(lambda: shared(topic, 4, its, others))
        its.is_late = True
        await until(lambda: others.places == all_of(topic, 4))
        assert its.names[-1] == "lose"
        assert first.identity is None
        its.is_late = False
        first.asked()
        await until(lambda: shared(topic, 4, its, others))


async def test_what_is_in_hands_is_waited_for(node: KafkaNode) -> None:
    """For longer than a session: heartbeats go on meanwhile, and commits."""
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        first, its = await group.member(topic)
        await until(lambda: its.places)
        its.held = asyncio.Event()
        _, others = await group.member(topic)
        await until(lambda: "waits" in its.names)
        counts = group.clients[1]._view.observer.group(group.id)
        before = counts.heartbeats
        await until(lambda: counts.heartbeats >= before + 25)
        assert others.places == set()
        assert first.identity is not None
        its.held.set()
        await until(lambda: shared(topic, 4, its, others))
        assert "lose" not in its.names


async def test_what_is_in_hands_for_too_long_is_lost(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        _, its = await group.member(topic)
        await until(lambda: its.places)
        its.held = asyncio.Event()
        _, others = await group.member(topic)
        await until(lambda: "waits" in its.names)
        its.is_late = True
        await until(lambda: others.places == all_of(topic, 4))
        assert its.names[-1] == "lose"


async def test_a_member_that_somebody_has_put_out_joins_again(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(2)
        first, its = await group.member(topic)
        await until(lambda: its.places)
        assert first.identity is not None
        put_out = ConsumerGroupHeartbeatRequest(
            group_id=group.id, member_id=first.identity.member_id, member_epoch=-1
        )
        assert (await group.clients[0].request(put_out)).error_code == 0
        await until(lambda: "lose" in its.names)
        await until(lambda: its.places == all_of(topic, 2))


# Topics


async def test_topics_that_grow_appear_and_go(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(1)
        later = f"group-{uuid.uuid4().hex}"
        _, its = await group.member(topic, later)
        await until(lambda: its.places == all_of(topic, 1))
        await group.topic(2, later)
        await until(lambda: its.places == all_of(topic, 1) | all_of(later, 2))
        client = group.clients[0]
        grown = CreatePartitionsTopic(name=topic, count=3, assignments=None)
        answer = await client.request(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000))
        assert [each.error_code for each in answer.results] == [0]
        await until(lambda: its.places == all_of(topic, 3) | all_of(later, 2))
        await client.delete_topics(later)
        await until(lambda: its.places == all_of(topic, 3))
        await group.topic(2, later)
        await until(lambda: its.places == all_of(topic, 3) | all_of(later, 2))


async def test_other_topics_and_none(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        one, two = await group.topic(2), await group.topic(2)
        member, its = await group.member(one)
        await until(lambda: its.places == all_of(one, 2))
        member.subscribe(Subscription.to([one, two]))
        await until(lambda: its.places == all_of(one, 2) | all_of(two, 2))
        assert "revoke" not in its.names
        member.subscribe(Subscription.to(two))
        await until(lambda: its.places == all_of(two, 2))
        member.unsubscribe()
        await until(lambda: not its.places and member.identity is None)
        assert "lose" not in its.names
        member.subscribe(Subscription.to(one))
        await until(lambda: its.places == all_of(one, 2))


async def test_a_compiled_pattern_is_matched_here(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        prefix = f"group-{uuid.uuid4().hex}"
        await group.topic(1, f"x-{prefix}-a")
        _, its = await group.member(re.compile(f"{prefix}-.*"))
        one = await group.topic(1, f"{prefix}-a")
        await until(lambda: its.places == all_of(one, 1))
        two = await group.topic(2, f"{prefix}-b")
        await until(lambda: its.places == all_of(one, 1) | all_of(two, 2))


async def test_a_pattern_of_the_broker(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        prefix = f"group-{uuid.uuid4().hex}"
        await group.topic(1, f"x-{prefix}-a")
        one = await group.topic(1, f"{prefix}-a")
        member, its = await group.member(TopicPattern(f"{prefix}-[ab]"))
        if node.version != NEWEST:
            assert "re.compile" in await failed(its)
            return
        await until(lambda: its.places == all_of(one, 1))
        two = await group.topic(2, f"{prefix}-b")
        other, _ = await group.member(one)  # who joins has the broker look again at once
        await other.leave(True)
        await until(lambda: its.places == all_of(one, 1) | all_of(two, 2))
        member.subscribe(Subscription.to(two))
        await until(lambda: its.places == all_of(two, 2))
        member.subscribe(Subscription.to(TopicPattern("[")))
        assert "INVALID_REGULAR_EXPRESSION" in await failed(its)


async def test_a_topic_that_may_be_no_topic(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        _, its = await group.member("no topic!")
        assert "'no topic!'" in await failed(its)


# What the broker does not take


async def test_assignors_of_the_broker(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        member, its = await group.member(topic, server_assignor="range")
        await until(lambda: its.places == all_of(topic, 4))
        assert (await group.described()).assignor_name == "range"
        await member.leave(True)
        _, others = await group.member(topic, server_assignor="best")
        assert "no assignor 'best'" in await failed(others)


async def test_a_group_that_is_full(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(3)
        readings = [(await group.member(topic))[1] for _ in range(3)]
        await until(lambda: shared(topic, 3, *readings))
        _, more = await group.member(topic)
        assert "group.consumer.max.size" in await failed(more)
        assert shared(topic, 3, *readings)


# Groups of the other kind


async def test_a_new_group_is_one_of_the_consumer_protocol(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        first, its = await group.member(topic, group_protocol="auto")
        await until(lambda: its.places)
        second, others = await group.member(topic, group_protocol="auto")
        await until(lambda: shared(topic, 4, its, others))
        assert (first.kind, second.kind) == (Kind.CONSUMER, Kind.CONSUMER)


async def test_a_classic_group_with_members_stays_one(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        classic, its = await group.member(topic, group_protocol="classic", session_timeout_ms=6_000)
        await until(lambda: its.places)
        second, others = await group.member(topic, group_protocol="auto", session_timeout_ms=6_000)
        await until(lambda: shared(topic, 4, its, others))
        assert second.kind is Kind.CLASSIC
        assert await group.classic_state() == "Stable"
        await classic.leave(True)
        await until(lambda: others.places == all_of(topic, 4))
        second.unsubscribe()  # and with it the last member: the group is empty
        await until(lambda: second.identity is None and not others.places)
        second.subscribe(Subscription.to(topic))
        await until(lambda: others.places == all_of(topic, 4))
        assert (await group.described()).group_state == "Stable"  # of the consumer protocol


async def test_assignors_that_are_named_mean_a_classic_group(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(2)
        settings = {"assignors": ["range"], "session_timeout_ms": 6_000}
        member, its = await group.member(topic, group_protocol="auto", **settings)
        await until(lambda: its.places)
        assert member.kind is Kind.CLASSIC
        assert await group.classic_state() == "Stable"


async def test_a_pattern_of_the_broker_in_a_classic_group(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(2)
        _, its = await group.member(topic, group_protocol="classic", session_timeout_ms=6_000)
        await until(lambda: its.places)
        _, others = await group.member(TopicPattern("a.*"), group_protocol="auto")
        assert "re.compile('a.*')" in await failed(others)
        assert isinstance(others.error, ConfigurationError)


async def test_a_classic_group_is_converted_on_line_and_back(node: KafkaNode) -> None:
    """Who says "consumer" converts it; classic members go on in it, and keep what they read."""
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        classic: dict[str, Any] = {
            "group_protocol": "classic",
            "session_timeout_ms": 6_000,
            "assignors": ["cooperative-sticky"],
        }
        _, its = await group.member(topic, **classic)
        await until(lambda: its.places == all_of(topic, 4))
        newer, others = await group.member(topic)
        await until(lambda: shared(topic, 4, its, others))
        assert len((await group.described()).members) == 2
        third, thirds = await group.member(topic, group_protocol="auto")
        await until(lambda: shared(topic, 4, its, others, thirds))
        assert third.kind is Kind.CONSUMER  # as the group is one of that by now
        assert "lose" not in its.names
        await third.leave(True)
        await newer.leave(True)  # the last of the consumer protocol: the group is classic again
        await until(lambda: its.places == all_of(topic, 4))
        assert await group.classic_state() in ("Stable", "PreparingRebalance")


async def test_a_classic_group_that_may_not_be_converted(start_kafka: StartKafka) -> None:
    kafka = start_kafka(NEWEST, SHORT | {"group.consumer.migration.policy": "disabled"})
    async with Group(kafka.bootstrap) as group:
        topic = await group.topic(2)
        _, its = await group.member(topic, group_protocol="classic", session_timeout_ms=6_000)
        await until(lambda: its.places)
        _, others = await group.member(topic)
        assert "group.consumer.migration.policy" in await failed(others)
        assert its.places == all_of(topic, 2)


async def test_a_cluster_that_has_the_protocol_turned_off(start_kafka: StartKafka) -> None:
    kafka = start_kafka(NEWEST, {"group.coordinator.rebalance.protocols": "classic"})
    async with Group(kafka.bootstrap) as group:
        topic = await group.topic(2)
        _, its = await group.member(topic)
        assert 'group_protocol="classic"' in await failed(its)
        member, others = await group.member(topic, group_protocol="auto", session_timeout_ms=6_000)
        await until(lambda: others.places == all_of(topic, 2))
        assert member.kind is Kind.CLASSIC


async def test_members_keep_what_they_read_while_the_broker_restarts(
    start_kafka: StartKafka,
) -> None:
    config = SHORT | {"group.consumer.session.timeout.ms": "45000"}
    kafka = start_kafka(NEWEST, config)
    async with Group(kafka.bootstrap) as group:
        topic = await group.topic(4)
        _, its = await group.member(topic, session_timeout_ms=45_000)
        await until(lambda: its.places == all_of(topic, 4))
        kafka.stop()
        kafka.start()
        _, others = await group.member(topic, session_timeout_ms=45_000)
        await until(lambda: shared(topic, 4, its, others))
        assert "lose" not in its.names


# Records


@pytest.mark.parametrize("protocol", ["auto", "consumer"])
async def test_each_record_is_read_once(node: KafkaNode, protocol: Any) -> None:
    """Members come and go, one at a time, while 400 records are read."""
    async with Client(node.bootstrap) as client:
        topic = f"group-{uuid.uuid4().hex}"
        await client.create_topics(kproto.NewTopic(topic, partitions=3))
        async with client.producer() as producer:
            values = [kproto.ProducerRecord(b"%d" % at, partition=at % 3) for at in range(400)]
            await producer.send_many(topic, values)
        seen: list[tuple[int, int]] = []
        all_seen = asyncio.Event()

        async def read(until: int) -> None:
            async with client.consumer(topic, group=topic, group_protocol=protocol) as consumer:
                async for record in consumer:
                    seen.append((record.partition, record.offset))
                    await asyncio.sleep(0.005)
                    if len(seen) == 400:
                        all_seen.set()
                    if len(seen) >= until:
                        break

        tasks = [asyncio.create_task(read(count)) for count in (400, 100, 200)]
        await all_seen.wait()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for partition in range(3):
            offsets = [offset for its, offset in seen if its == partition]
            assert offsets == list(range(len(offsets)))
        assert len(seen) == 400


async def test_a_commit_of_who_is_no_member_any_more(node: KafkaNode) -> None:
    async with Client(node.bootstrap) as client:
        topic = f"group-{uuid.uuid4().hex}"
        await client.create_topics(kproto.NewTopic(topic))
        async with client.producer() as producer:
            await producer.send(topic, b"one")
        async with client.consumer(
            topic, group=topic, group_protocol="consumer", auto_commit=False
        ) as consumer:
            record = await anext(aiter(consumer))
            member = consumer._member
            assert isinstance(member, GroupMember)
            assert member.identity is not None
            put_out = ConsumerGroupHeartbeatRequest(
                group_id=topic, member_id=member.identity.member_id, member_epoch=-1
            )
            await client.request(put_out)
            with pytest.raises(kproto.CommitFailedError, match="not assigned") as raised:
                await consumer.commit(record)
            assert isinstance(raised.value, KprotoError)
            assert (await anext(aiter(consumer))).value == b"one"


@pytest.mark.parametrize("start", ["earliest", "latest"])
async def test_a_topic_made_anew_is_read_from_its_start(node: KafkaNode, start: Any) -> None:
    settings = kproto.ClientSettings(metadata_max_age_ms=500, retry_backoff_max_ms=200)
    async with Client(node.bootstrap, settings) as client, Client(node.bootstrap) as other:
        topic = f"group-{uuid.uuid4().hex}"
        await other.create_topics(kproto.NewTopic(topic))
        async with client.consumer(
            topic, group=topic, group_protocol="consumer", start=start
        ) as consumer:
            records = aiter(consumer)
            await until(lambda: consumer.assignment)
            assert await consumer.position((topic, 0)) == 0
            async with other.producer() as producer:
                await producer.send_many(topic, [b"old"] * 5)
            for _ in range(5):
                assert (await anext(records)).value == b"old"
            coming = asyncio.ensure_future(anext(records))
            await other.delete_topics(topic)
            await until(lambda: not consumer.assignment)
            await other.create_topics(kproto.NewTopic(topic))
            async with other.producer() as producer:
                await producer.send_many(topic, [b"new-%d" % at for at in range(3)])
            record = await coming
            assert (record.value, record.offset) == (b"new-0", 0)
            assert [(await anext(records)).value for _ in range(2)] == [b"new-1", b"new-2"]


# Beside other clients


class Peer:
    """A member of another client, in a process of its own, and what it has by what it tells."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.changes: list[list[int]] = []
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            what, *rest = json.loads(line)
            if what == "assigned":
                self.changes.append(rest[0])

    async def end(self) -> None:
        """Leave in order."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._listening


@asynccontextmanager
async def peer(python: Path, name: str, *arguments: str) -> AsyncIterator[Peer]:
    script = Path(__file__).parents[1] / "interop" / "peer_scripts" / f"grouped_{name}.py"
    process = await asyncio.create_subprocess_exec(
        python, script, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    member = Peer(process)
    try:
        yield member
    finally:
        await member.end()


@pytest.mark.peers
@pytest.mark.parametrize("name", ["aiokafka", "confluent_kafka"])
async def test_a_group_of_another_client_is_joined_and_converted(
    node: KafkaNode, peers_python: Path, name: str
) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        async with peer(peers_python, name, node.bootstrap, topic, group.id) as other:
            await until(lambda: other.changes and len(other.changes[-1]) == 4)
            # It goes by roundrobin, which is none of ours: the group is classic, and stays that.
            _, its = await group.member(topic, group_protocol="auto", session_timeout_ms=6_000)
            assert "no assignor in common" in await failed(its)
            _, newer = await group.member(topic)
            await until(lambda: len(newer.places) == 2)
            members = (await group.described()).members
            assert len(members) == 2
            await until(lambda: len(other.changes[-1]) == 2)
        await until(lambda: newer.places == all_of(topic, 4))


@pytest.mark.peers
async def test_beside_librdkafka_of_the_same_protocol(node: KafkaNode, peers_python: Path) -> None:
    """It speaks the protocol with Kafka 4 alone."""
    if node.version != NEWEST:
        return
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        arguments = (node.bootstrap, topic, group.id)
        async with peer(peers_python, "consumer_protocol", *arguments) as other:
            await until(lambda: other.changes)
            member, its = await group.member(topic, group_protocol="auto")
            await until(lambda: len(its.places) == 2)
            assert member.kind is Kind.CONSUMER
            await member.leave(True)
            _, again = await group.member(topic)
            await until(lambda: len(again.places) == 2)
        await until(lambda: again.places == all_of(topic, 4))
