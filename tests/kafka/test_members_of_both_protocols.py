"""Tests members of both group protocols on real brokers, in unusual conditions.

The tests cover members that are lost or slow, have pending revocations, or subscribe to topics that
change.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import pytest

from kproto.client.groups.subscription import Subscription
from kproto.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from tests.kafka import classic_members, consumer_members
from tests.kafka.members_of_groups import all_of, shared, until
from tools.kafka import KafkaNode

pytestmark = pytest.mark.slow


class GroupProtocolCase(NamedTuple):
    """A group protocol: the class of its groups, and the settings of its members."""

    group: Callable[[str], Any]
    settings: dict[str, Any]


COOPERATIVE = GroupProtocolCase(classic_members.Group, {"assignors": ("cooperative-sticky",)})
EAGER = GroupProtocolCase(classic_members.Group, {"assignors": ("range",)})
CONSUMER = GroupProtocolCase(consumer_members.Group, {})


async def short_session(group: Any, kind: GroupProtocolCase, node: KafkaNode) -> dict[str, Any]:
    """Returns member settings with a short session timeout.

    In a KIP-848 group the session timeout is a group config, so for such a group the function sets
    the config on the broker.
    """
    if kind is CONSUMER:
        await group.brief(node.version)
    return {**kind.settings, "session_timeout_ms": consumer_members.BRIEF_MS}


both_protocols = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(EAGER, id="classic", marks=pytest.mark.exhaustive),
        pytest.param(CONSUMER, id="consumer"),
    ],
)
#: Members that keep their partitions while others join.
incremental_protocols = pytest.mark.parametrize(
    "kind", [pytest.param(COOPERATIVE, id="classic"), pytest.param(CONSUMER, id="consumer")]
)
all_protocols = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(EAGER, id="eager", marks=pytest.mark.exhaustive),
        pytest.param(COOPERATIVE, id="cooperative", marks=pytest.mark.exhaustive),
        pytest.param(CONSUMER, id="consumer"),
    ],
)


async def two_members(group: Any, topic: str, **settings: Any) -> tuple[Any, Any, Any]:
    """Starts two members that share four partitions; returns the first, and both listeners."""
    first, its = await group.member(topic, **settings)
    await until(lambda: its.partitions)
    _, others = await group.member(topic, **settings)
    await until(lambda: shared(topic, 4, its, others))
    return first, its, others


@pytest.mark.exhaustive
@both_protocols
async def test_vanished_member_is_replaced_after_its_session(
    node848: KafkaNode, kind: GroupProtocolCase
) -> None:
    async with kind.group(node848.bootstrap) as group:
        topic = await group.topic(4)
        settings = await short_session(group, kind, node848)
        first, its, others = await two_members(group, topic, **settings)
        await first.close()
        for tp in its.partitions:
            getattr(group, "owners", {}).pop(tp, None)
        await until(lambda: others.partitions == all_of(topic, 4))


@pytest.mark.exhaustive
@both_protocols
async def test_member_without_responses_loses_its_partitions_in_time(
    node848: KafkaNode, kind: GroupProtocolCase
) -> None:
    """The member must lose its partitions before the broker assigns them to another member."""
    async with kind.group(node848.bootstrap) as group:
        topic = await group.topic(4)
        settings = await short_session(group, kind, node848)
        first, its, others = await two_members(group, topic, **settings)
        had = set(its.partitions)
        events: list[str] = []
        noted = others.on_call

        def note_others(name: str, partitions: Collection[tuple[str, int]]) -> None:
            if name == "assign" and had & set(partitions):
                events.append("others begin" if "lose" in its.names else "two_members read")
            noted(name, partitions)

        others.on_call = note_others

        async def lost(group_id: str) -> int:
            return 999

        # The heartbeats reach no broker, because the coordinator has an unknown node id.
        first._view.group_coordinator = lost
        await until(lambda: had <= others.partitions)
        assert its.names[-1] == "lose"
        assert its.partitions == set()
        assert events == ["others begin"]


@pytest.mark.exhaustive
@both_protocols
async def test_slow_member_leaves_and_rejoins_on_its_next_poll(
    node848: KafkaNode, kind: GroupProtocolCase
) -> None:
    async with kind.group(node848.bootstrap) as group:
        topic = await group.topic(4)
        first, its, others = await two_members(group, topic, **kind.settings)
        its.is_late = True
        await until(lambda: others.partitions == all_of(topic, 4))
        assert its.names[-1] == "lose"
        assert first.identity is None
        its.is_late = False
        first.on_poll()
        await until(lambda: shared(topic, 4, its, others))


@all_protocols
async def test_revocation_waits_for_records_in_flight(
    node848: KafkaNode, kind: GroupProtocolCase
) -> None:
    """A revocation can last longer than the session timeout, because heartbeats continue."""
    async with kind.group(node848.bootstrap) as group:
        topic = await group.topic(4)
        settings = await short_session(group, kind, node848)
        first, its = await group.member(topic, **settings)
        await until(lambda: its.partitions)
        its.revoke_gate = asyncio.Event()
        _, others = await group.member(topic, **settings)
        await until(lambda: "waits" in its.names)
        counts = first._view.observer.group(group.id)
        before = counts.heartbeats
        await until(lambda: counts.heartbeats >= before + 25)
        assert others.partitions == set()
        assert first.identity is not None
        its.revoke_gate.set()
        await until(lambda: shared(topic, 4, its, others))
        assert "lose" not in its.names


@both_protocols
async def test_partitions_are_lost_if_revocation_takes_too_long(
    node848: KafkaNode, kind: GroupProtocolCase
) -> None:
    async with kind.group(node848.bootstrap) as group:
        topic = await group.topic(4)
        _, its = await group.member(topic, **kind.settings)
        await until(lambda: its.partitions)
        its.revoke_gate = asyncio.Event()
        _, others = await group.member(topic, **kind.settings)
        await until(lambda: "waits" in its.names)
        its.is_late = True
        await until(lambda: others.partitions == all_of(topic, 4))
        assert its.names[-2:] == ["waits", "lose"]


# Topics


@pytest.mark.exhaustive
@both_protocols
async def test_assignment_follows_topics_that_grow_appear_and_vanish(
    node848: KafkaNode, kind: GroupProtocolCase
) -> None:
    async with kind.group(node848.bootstrap) as group:
        topic = await group.topic(1)
        later = f"group-{uuid.uuid4().hex}"
        _, its = await group.member(topic, later, **kind.settings)
        await until(lambda: its.partitions == all_of(topic, 1))
        await group.topic(2, later)
        await until(lambda: its.partitions == all_of(topic, 1) | all_of(later, 2))
        client = group.clients[0]
        grown = CreatePartitionsTopic(name=topic, count=3, assignments=None)
        answer = await client.request(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000))
        assert [each.error_code for each in answer.results] == [0]
        await until(lambda: its.partitions == all_of(topic, 3) | all_of(later, 2))
        await client.delete_topics(later)
        await until(lambda: its.partitions == all_of(topic, 3))
        await group.topic(2, later)
        await until(lambda: its.partitions == all_of(topic, 3) | all_of(later, 2))


@both_protocols
async def test_compiled_pattern_includes_new_topics(
    node848: KafkaNode, kind: GroupProtocolCase
) -> None:
    async with kind.group(node848.bootstrap) as group:
        prefix = f"group-{uuid.uuid4().hex}"
        await group.topic(1, f"x-{prefix}-a")
        _, its = await group.member(re.compile(f"{prefix}-.*"), **kind.settings)
        one = await group.topic(1, f"{prefix}-a")
        await until(lambda: its.partitions == all_of(one, 1))
        another = await group.topic(2, f"{prefix}-b")
        await until(lambda: its.partitions == all_of(one, 1) | all_of(another, 2))


@incremental_protocols
async def test_assignment_follows_subscribe_and_unsubscribe(
    node848: KafkaNode, kind: GroupProtocolCase
) -> None:
    async with kind.group(node848.bootstrap) as group:
        one, another = await group.topic(2), await group.topic(2)
        member, its = await group.member(one, **kind.settings)
        await until(lambda: its.partitions == all_of(one, 2))
        member.subscribe(Subscription.to([one, another]))
        await until(lambda: its.partitions == all_of(one, 2) | all_of(another, 2))
        assert "revoke" not in its.names
        member.subscribe(Subscription.to(another))
        await until(lambda: its.partitions == all_of(another, 2))
        member.unsubscribe()
        await until(lambda: not its.partitions and member.identity is None)
        assert "lose" not in its.names
        member.subscribe(Subscription.to(one))
        await until(lambda: its.partitions == all_of(one, 2))
        if kind is CONSUMER:
            return  # no rebalance is needed
        generation = member.identity and member.identity.generation
        member.request_rejoin("a test wants it")
        await until(lambda: member.identity and member.identity.generation != generation)
