"""Tests members of classic groups on real brokers: join, rebalance, rejoin and removal."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Any

import pytest

from kproto import ConfigurationError, KprotoError
from kproto.client.groups.assignor import Assignor
from kproto.client.groups.assignors.subscriptions import Subscription as AssignorSubscription
from kproto.client.groups.assignors.subscriptions import TopicRacks
from kproto.client.groups.classic.member import ClassicMember
from tests.kafka.classic_members import Group
from tests.kafka.members_of_groups import all_of, shared, until
from tests.support.brokers import StartCluster, StartKafka
from tests.support.recording_listener import RecordingListener
from tools.kafka import VERSIONS, KafkaNode

#: For clusters: the controller detects a killed broker within two seconds.
QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}

COOPERATIVE = ("cooperative-sticky",)

pytestmark = pytest.mark.slow


@pytest.fixture
def node(node848: KafkaNode) -> KafkaNode:
    """Returns a broker that accepts short session timeouts."""
    return node848


def has_some(listener: RecordingListener) -> bool:
    return bool(listener.partitions)


def was_called(listener: RecordingListener) -> bool:
    return bool(listener.calls)


def beats_on(member: ClassicMember, before: int) -> bool:
    return member._counts.heartbeats > before


@pytest.mark.parametrize("assignors", [("range",), COOPERATIVE, ("roundrobin",), ("sticky",)])
async def test_partitions_are_shared_as_members_join_and_leave(
    node: KafkaNode, assignors: tuple[str, ...]
) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(6)
        first, its = await group.member(topic, assignors=assignors)
        await until(lambda: its.partitions == all_of(topic, 6))
        second, others = await group.member(topic, assignors=assignors)
        await until(lambda: shared(topic, 6, its, others))
        described = await group.described()
        assert (described.group_state, described.protocol_data) == ("Stable", assignors[0])
        assert len(described.members) == 2
        _third, thirds = await group.member(topic, assignors=assignors)
        await until(lambda: shared(topic, 6, its, others, thirds))
        await first.leave(True)
        assert its.partitions == set()
        assert its.names[-1] == "revoke"
        await until(lambda: shared(topic, 6, others, thirds))
        await second.leave(True)
        await until(lambda: thirds.partitions == all_of(topic, 6))
        for listener in (its, others, thirds):
            assert "lose" not in listener.names


async def test_cooperative_members_never_stop_reading_what_they_keep(node: KafkaNode) -> None:
    """KIP-429: in two rebalances, a member revokes only the partitions that move."""
    async with Group(node.bootstrap) as group:
        topic = await group.topic(6)
        _, its = await group.member(topic, assignors=COOPERATIVE)
        await until(lambda: its.partitions == all_of(topic, 6))
        _, others = await group.member(topic, assignors=COOPERATIVE)
        await until(lambda: shared(topic, 6, its, others))
        (revoked,) = [partitions for name, partitions in its.calls if name == "revoke"]
        assert set(revoked) == others.partitions
        assert len(revoked) == 3


async def test_partitions_have_one_owner_while_members_change(node: KafkaNode) -> None:
    """A partition is assigned to a member only after the former owner has revoked the partition."""
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        owners: dict[tuple[str, int], RecordingListener] = {}

        def track(listener: RecordingListener) -> None:
            def note(name: str, partitions: Collection[tuple[str, int]]) -> None:
                for partition in partitions:
                    if name == "assign":
                        assert partition not in owners
                        owners[partition] = listener
                    else:
                        assert owners.pop(partition) is listener

            listener.on_call = note

        for assignors in ((COOPERATIVE[0],), ("range",)):
            group.id += "-next"
            listeners: list[RecordingListener] = []
            members: list[ClassicMember] = []
            for _ in range(3):
                member, listener = await group.member(topic, start=False, assignors=assignors)
                track(listener)
                member.start()
                members.append(member)
                listeners.append(listener)
                await until(partial(shared, topic, 4, *listeners))
            for member in members[:2]:
                await member.leave(True)
            await until(partial(shared, topic, 4, listeners[2]))
            await members[2].leave(True)
            assert owners == {}


async def test_static_member_rejoins_without_a_rebalance(node: KafkaNode) -> None:
    """KIP-345: a static member that rejoins keeps its partitions.

    KIP-814: if the static member is the leader, it must not compute a new assignment.
    """
    async with Group(node.bootstrap) as group:
        topic = await group.topic(4)
        first, its = await group.member(topic, instance_id="one")
        await until(lambda: its.partitions == all_of(topic, 4))
        second, others = await group.member(topic, instance_id="two")
        await until(lambda: shared(topic, 4, its, others))
        for gone, had in ((first, its), (second, others)):
            before = set(had.partitions)
            generations = [each.identity and each.identity.generation for each in (first, second)]
            assert gone.identity is not None
            await gone.leave(False)
            assert gone.settings.instance_id is not None
            again, listener = await group.member(topic, instance_id=gone.settings.instance_id)
            await until(partial(has_some, listener))
            assert listener.partitions == before
            assert again.identity is not None
            assert again.identity.generation in generations
            stayed = others if gone is first else its
            assert stayed.calls[-1][0] == "assign" or gone is second


async def test_second_member_fences_the_first_with_its_instance_id(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(2)
        _, its = await group.member(topic, instance_id="one")
        await until(lambda: its.partitions)
        second, others = await group.member(topic, instance_id="one")
        await until(lambda: its.error is not None)
        assert "FENCED_INSTANCE_ID" in str(its.error)
        assert "instance one" in str(its.error)
        assert its.names[-1] == "lose"
        await until(lambda: others.partitions == all_of(topic, 2))
        assert second.identity is not None


async def test_custom_assignor_assigns_partitions(node: KafkaNode) -> None:
    """The test's assignor gives all partitions to the lowest member id, and sends user data."""
    async with Group(node.bootstrap) as group:
        seen: list[object] = []

        def first_takes_all(
            topics: TopicRacks, members: dict[str, AssignorSubscription]
        ) -> dict[str, list[tuple[str, int]]]:
            seen.append({each.user_data for each in members.values()})
            every = [(topic, at) for topic, racks in topics.items() for at in range(len(racks))]
            return {min(members): every}

        mine = Assignor(
            "mine",
            first_takes_all,  # type: ignore[arg-type]
            user_data=lambda topics, partitions, generation: b"hello",
        )
        topic = await group.topic(3)
        _, its = await group.member(topic, assignors=(mine,))
        await until(lambda: its.partitions == all_of(topic, 3))
        _, others = await group.member(topic, assignors=(mine,))
        await until(lambda: others.calls)
        await until(lambda: len(its.partitions) + len(others.partitions) == 3)
        assert seen[-1] == {b"hello"}


async def refused(group: Group, *topics: str, **settings: Any) -> KprotoError:
    """Returns the error of a member that cannot join; checks that it has no partitions."""
    member, listener = await group.member(*topics, **settings)
    await until(lambda: listener.error is not None)
    assert listener.partitions == set()
    assert member._task is not None
    await asyncio.wait([member._task])
    assert listener.error is not None
    return listener.error


async def test_invalid_members_are_refused_with_their_errors(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:
        topic = await group.topic(1)
        error = await refused(group, topic, session_timeout_ms=50, heartbeat_interval_ms=10)
        assert "INVALID_SESSION_TIMEOUT" in str(error)
        assert "session_timeout_ms of 50" in str(error)
        _, its = await group.member(topic, assignors=("range",))
        await until(lambda: its.partitions)
        error = await refused(group, topic, assignors=("sticky",))
        assert "INCONSISTENT_GROUP_PROTOCOL" in str(error)
        assert "has sticky" in str(error)
        for _ in range(2):
            _, another = await group.member(topic, assignors=("range",))
            await until(partial(was_called, another))
        error = await refused(group, topic, assignors=("range",))
        assert "GROUP_MAX_SIZE_REACHED" in str(error)
        await until(lambda: its.partitions or its.calls)


async def test_wrong_assignor_fails_only_the_leader(node: KafkaNode) -> None:
    async with Group(node.bootstrap) as group:

        def wrong(
            topics: object, members: dict[str, AssignorSubscription]
        ) -> dict[str, list[tuple[str, int]]]:
            return {each: [("t", 0)] for each in members}

        topic = await group.topic(1)
        error = await refused(group, topic, assignors=(Assignor("mine", wrong),))  # type: ignore[arg-type]
        assert isinstance(error, ConfigurationError)
        assert "'mine'" in str(error)
        described = await group.described()
        assert described.members == []


@pytest.mark.exhaustive
async def test_members_keep_partitions_while_the_broker_restarts(
    start_kafka: StartKafka,
) -> None:
    kafka = start_kafka(VERSIONS[0], QUICK)
    async with Group(kafka.bootstrap) as group:
        topic = await group.topic(4)
        settings: dict[str, Any] = {"session_timeout_ms": 120_000}
        first, its = await group.member(topic, **settings)
        await until(lambda: its.partitions)
        second, others = await group.member(topic, **settings)
        await until(lambda: shared(topic, 4, its, others))
        identities = first.identity, second.identity
        calls = len(its.calls), len(others.calls)
        await asyncio.to_thread(kafka.kill)
        await asyncio.to_thread(kafka.start)
        beats = first._counts.heartbeats, second._counts.heartbeats
        await until(
            lambda: first._counts.heartbeats > beats[0] and second._counts.heartbeats > beats[1]
        )
        assert (first.identity, second.identity) == identities
        assert (len(its.calls), len(others.calls)) == calls
        await first.leave(True)
        await until(lambda: others.partitions == all_of(topic, 4))


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", VERSIONS)
async def test_members_keep_partitions_while_coordinators_move(
    start_cluster: StartCluster, version: str
) -> None:
    cluster = start_cluster(version, config=QUICK)
    async with Group(cluster.bootstrap) as group:
        topic = await group.topic(6)
        settings: dict[str, Any] = {"session_timeout_ms": 120_000, "assignors": COOPERATIVE}
        members = [await group.member(topic, **settings) for _ in range(2)]
        listeners = [listener for _, listener in members]
        await until(lambda: shared(topic, 6, *listeners))
        for _ in range(2):
            view = group.clients[-1]._view
            node = await view.group_coordinator(group.id)
            beats = [member._counts.heartbeats for member, _ in members]
            await asyncio.to_thread(cluster.node(node).kill)
            for (member, _), before in zip(members, beats, strict=True):
                await until(partial(beats_on, member, before))
            assert shared(topic, 6, *listeners)
            await asyncio.to_thread(cluster.node(node).start)
            await asyncio.to_thread(cluster.wait_for_all)
        assert all("lose" not in listener.names for listener in listeners)
        await members[0][0].leave(True)
        await until(lambda: listeners[1].partitions == all_of(topic, 6))
