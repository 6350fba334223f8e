"""Tests KIP-848 members on real brokers, also together with classic members."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kproto import ConfigurationError, TopicPattern
from kproto.client.groups.consumer.member import ConsumerMember
from kproto.client.groups.group_protocol import GroupProtocol
from kproto.client.groups.subscription import Subscription
from kproto.messages import (
    ConsumerGroupHeartbeatRequest,
)
from tests.kafka.consumer_members import BRIEF_MS, NEWEST, SHORT, Group, config_of, failed
from tests.kafka.members_of_groups import all_of, shared, until
from tests.support.brokers import StartKafka
from tools.kafka import KafkaNode

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def log_members(caplog: pytest.LogCaptureFixture) -> None:
    """Shows the log lines of the members if a test fails."""
    caplog.set_level("INFO", logger="kproto.client")


#: States of a classic group with members.
CLASSIC_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable")


# Members


async def test_partitions_are_shared_as_members_join_and_leave(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(6)
        first, its = await group.member(topic)
        await until(lambda: its.partitions == all_of(topic, 6))
        second, others = await group.member(topic)
        await until(lambda: shared(topic, 6, its, others))
        # The first member revokes only partitions that move to the second one.
        assert [name for name in its.names if name == "revoke"] == ["revoke"]
        _, thirds = await group.member(topic)
        await until(lambda: shared(topic, 6, its, others, thirds))
        described = await group.described()
        ids = {member.identity.member_id for member in group.members if member.identity}
        assert {each.member_id for each in described.members} == ids
        await first.leave(True)
        assert its.partitions == set()
        await until(lambda: shared(topic, 6, others, thirds))
        await second.leave(True)
        await until(lambda: thirds.partitions == all_of(topic, 6))
        for listener in (its, others, thirds):
            assert "lose" not in listener.names


async def test_member_uses_the_session_timeout_of_its_group(node848: KafkaNode) -> None:
    """On Kafka 3.9, without group configs, the member assumes nine heartbeat intervals instead."""
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(1)
        await group.brief(node848.version)
        member, its = await group.member(topic, session_timeout_ms=45_000)
        await until(lambda: its.partitions)
        inner = member._member
        assert isinstance(inner, ConsumerMember)
        interval_ms = int(config_of(node848.version)["group.consumer.heartbeat.interval.ms"])
        has_group_configs = node848.version == NEWEST
        assert inner._membership.session_ms == (BRIEF_MS if has_group_configs else 9 * interval_ms)


async def test_static_member_rejoins_without_a_rebalance(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(4)
        first, its = await group.member(topic, instance_id="one")
        await until(lambda: its.partitions == all_of(topic, 4))
        _, others = await group.member(topic, instance_id="two")
        await until(lambda: shared(topic, 4, its, others))
        had, calls = set(its.partitions), list(others.calls)
        await first.leave(False)
        _, again = await group.member(topic, instance_id="one")
        await until(lambda: again.partitions)
        assert again.partitions == had
        assert others.calls == calls


@pytest.mark.exhaustive
async def test_second_member_with_an_instance_id_is_refused(node848: KafkaNode) -> None:
    """The broker refuses a second member with the same instance id until the session expires.

    The broker cannot know whether the first member was killed, so it keeps the first member as long
    as the first member's session lasts.
    """
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(2)
        await group.brief(node848.version)
        _, its = await group.member(topic, instance_id="one")
        await until(lambda: its.partitions)
        _, others = await group.member(topic, instance_id="one")
        assert "UNRELEASED_INSTANCE_ID" in await failed(others)
        assert its.partitions == all_of(topic, 2)


@pytest.mark.exhaustive
async def test_killed_static_member_rejoins_after_its_session(
    node848: KafkaNode,
) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(2)
        await group.brief(node848.version)
        first, its = await group.member(topic, instance_id="one")
        await until(lambda: its.partitions)
        group.owners.clear()
        await first.close()
        _, again = await group.member(topic, instance_id="one", session_timeout_ms=8_000)
        await until(lambda: again.partitions == all_of(topic, 2))


async def test_removed_member_joins_again(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(2)
        first, its = await group.member(topic)
        await until(lambda: its.partitions)
        assert first.identity is not None
        removal = ConsumerGroupHeartbeatRequest(
            group_id=group.id, member_id=first.identity.member_id, member_epoch=-1
        )
        assert (await group.clients[0].request(removal)).error_code == 0
        await until(lambda: "lose" in its.names)
        await until(lambda: its.partitions == all_of(topic, 2))


# Topics


@pytest.mark.exhaustive  # a broker evaluates patterns every 10 s
async def test_broker_side_pattern_assigns_matching_topics(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        prefix = f"group-{uuid.uuid4().hex}"
        await group.topic(1, f"x-{prefix}-a")
        one = await group.topic(1, f"{prefix}-a")
        member, its = await group.member(TopicPattern(f"{prefix}-[ab]"))
        if node848.version != NEWEST:
            assert "re.compile" in await failed(its)
            return
        await until(lambda: its.partitions == all_of(one, 1))
        two = await group.topic(2, f"{prefix}-b")
        other, _ = await group.member(one)  # a joining member makes the broker evaluate at once
        await other.leave(True)
        await until(lambda: its.partitions == all_of(one, 1) | all_of(two, 2))
        member.subscribe(Subscription.to(two))
        await until(lambda: its.partitions == all_of(two, 2))
        member.subscribe(Subscription.to(TopicPattern("[")))
        assert "INVALID_REGULAR_EXPRESSION" in await failed(its)


async def test_invalid_topic_name_fails_the_member(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        _, its = await group.member("no topic!")
        assert "'no topic!'" in await failed(its)


# Refused members


async def test_server_assignor_is_used_or_refused(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(4)
        member, its = await group.member(topic, server_assignor="range")
        await until(lambda: its.partitions == all_of(topic, 4))
        assert (await group.described()).assignor_name == "range"
        await member.leave(True)
        _, others = await group.member(topic, server_assignor="best")
        assert "no assignor 'best'" in await failed(others)


async def test_full_group_refuses_another_member(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(3)
        listeners = [(await group.member(topic))[1] for _ in range(3)]
        await until(lambda: shared(topic, 3, *listeners))
        _, more = await group.member(topic)
        assert "group.consumer.max.size" in await failed(more)
        assert shared(topic, 3, *listeners)


# Groups of the other protocol


async def test_new_group_uses_the_consumer_protocol(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(4)
        first, its = await group.member(topic, group_protocol="auto")
        await until(lambda: its.partitions)
        second, others = await group.member(topic, group_protocol="auto")
        await until(lambda: shared(topic, 4, its, others))
        assert (first.protocol, second.protocol) == (GroupProtocol.CONSUMER, GroupProtocol.CONSUMER)


async def test_classic_group_with_members_stays_classic(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(4)
        classic, its = await group.member(topic, group_protocol="classic", session_timeout_ms=6_000)
        await until(lambda: its.partitions)
        second, others = await group.member(topic, group_protocol="auto", session_timeout_ms=6_000)
        await until(lambda: shared(topic, 4, its, others))
        assert second.protocol is GroupProtocol.CLASSIC
        assert await group.classic_state() == "Stable"
        await classic.leave(True)
        await until(lambda: others.partitions == all_of(topic, 4))
        second.unsubscribe()  # the last member leaves, so the group is empty
        await until(lambda: second.identity is None and not others.partitions)
        second.subscribe(Subscription.to(topic))
        await until(lambda: others.partitions == all_of(topic, 4))
        assert (await group.described()).group_state == "Stable"  # now a consumer protocol group


async def test_named_assignors_select_the_classic_protocol(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(2)
        settings = {"assignors": ["range"], "session_timeout_ms": 6_000}
        member, its = await group.member(topic, group_protocol="auto", **settings)
        await until(lambda: its.partitions)
        assert member.protocol is GroupProtocol.CLASSIC
        assert await group.classic_state() == "Stable"


async def test_broker_side_pattern_is_refused_in_a_classic_group(node848: KafkaNode) -> None:
    async with Group(node848.bootstrap) as group:
        topic = await group.topic(2)
        _, its = await group.member(topic, group_protocol="classic", session_timeout_ms=6_000)
        await until(lambda: its.partitions)
        _, others = await group.member(TopicPattern("a.*"), group_protocol="auto")
        assert "re.compile('a.*')" in await failed(others)
        assert isinstance(others.error, ConfigurationError)


async def test_classic_group_is_converted_online_and_back(node848: KafkaNode) -> None:
    """A KIP-848 member converts a classic group by joining; the classic member loses no partitions.

    After the KIP-848 members have left, the group is classic again.
    """
    async with Group(node848.bootstrap) as group:
        topic = await group.known_topic(4)
        classic: dict[str, Any] = {
            "group_protocol": "classic",
            "session_timeout_ms": 45_000,
            "assignors": ["cooperative-sticky"],
        }
        _, its = await group.member(topic, **classic)
        await until(lambda: its.partitions == all_of(topic, 4))
        newer, others = await group.member(topic)
        await until(lambda: shared(topic, 4, its, others))
        assert len((await group.described()).members) == 2
        third, thirds = await group.member(topic, group_protocol="auto")
        await until(lambda: shared(topic, 4, its, others, thirds))
        assert third.protocol is GroupProtocol.CONSUMER  # the group is converted already
        assert "lose" not in its.names
        await third.leave(True)
        await newer.leave(True)  # the last consumer-protocol member: the group is classic again
        await until(lambda: its.partitions == all_of(topic, 4))
        assert await group.classic_state() in CLASSIC_STATES


@pytest.mark.exhaustive
async def test_classic_group_is_not_converted_against_the_migration_policy(
    start_kafka: StartKafka,
) -> None:
    kafka = start_kafka(NEWEST, SHORT | {"group.consumer.migration.policy": "disabled"})
    async with Group(kafka.bootstrap) as group:
        topic = await group.topic(2)
        _, its = await group.member(topic, group_protocol="classic", session_timeout_ms=6_000)
        await until(lambda: its.partitions)
        _, others = await group.member(topic)
        assert "group.consumer.migration.policy" in await failed(others)
        assert its.partitions == all_of(topic, 2)


@pytest.mark.exhaustive
async def test_auto_selects_classic_if_the_consumer_protocol_is_off(
    start_kafka: StartKafka,
) -> None:
    kafka = start_kafka(NEWEST, {"group.coordinator.rebalance.protocols": "classic"})
    async with Group(kafka.bootstrap) as group:
        topic = await group.topic(2)
        _, its = await group.member(topic)
        assert 'group_protocol="classic"' in await failed(its)
        member, others = await group.member(topic, group_protocol="auto", session_timeout_ms=6_000)
        await until(lambda: others.partitions == all_of(topic, 2))
        assert member.protocol is GroupProtocol.CLASSIC


@pytest.mark.exhaustive
async def test_members_keep_partitions_while_the_broker_restarts(
    start_kafka: StartKafka,
) -> None:
    config = SHORT | {"group.consumer.session.timeout.ms": "45000"}
    kafka = start_kafka(NEWEST, config)
    async with Group(kafka.bootstrap) as group:
        topic = await group.topic(4)
        _, its = await group.member(topic, session_timeout_ms=45_000)
        await until(lambda: its.partitions == all_of(topic, 4))
        kafka.stop()
        kafka.start()
        _, others = await group.member(topic, session_timeout_ms=45_000)
        await until(lambda: shared(topic, 4, its, others))
        assert "lose" not in its.names
