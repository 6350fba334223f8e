"""Tests which group protocol a member uses, by its settings and by the group's type."""

from __future__ import annotations

from typing import Any

import pytest

from kproto import ConfigurationError, TopicPattern, UnsupportedVersionError
from kproto.client.groups.group_protocol import GroupProtocol
from kproto.client.groups.heartbeat_phases import Phase
from kproto.client.groups.subscription import Subscription
from kproto.messages import (
    ApiVersionsRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
)
from tests.unit.client.groups.any_setting import PARTITIONS
from tests.unit.client.groups.consumer.scripted_member import (
    Setting,
    a_setting,
    protocol_with,
    versions_up_to,
)
from tests.unit.client.scripted_broker import HANG_UP


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"session_timeout_ms": 50_000}, "session_timeout_ms is ignored in a consumer"),
        (
            {"heartbeat_interval_ms": 1_000},
            "heartbeat_interval_ms is ignored in a consumer",
        ),
        ({"max_poll_interval_ms": 100_000}, None),
        ({"server_assignor": "range"}, None),
    ],
)
async def test_ignored_setting_is_logged_once_when_the_protocol_is_known(
    settings: dict[str, Any], warning: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_setting() as its:
        its.make(group_protocol="auto", explicit_settings=frozenset(settings), **settings)
        await its.joined()
        its.group.member_id = "another"  # the member loses all partitions and rejoins
        await its.pass_until(lambda: its.its.names[-2:] == ["lose", "assign"])
    lines = [it.getMessage() for it in caplog.records if "is ignored" in it.getMessage()]
    assert len(lines) == (warning is not None)
    assert not lines or str(warning) in lines[0]


async def test_setting_ignored_in_a_classic_group_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with a_setting() as its:
        its.group.state = "Stable"
        given: dict[str, Any] = {"server_assignor": "range", "session_timeout_ms": 50_000}
        its_kind = await protocol_with(
            its, group_protocol="auto", explicit_settings=frozenset(given), **given
        )
        assert its_kind is GroupProtocol.CLASSIC
    (line,) = [it.getMessage() for it in caplog.records if "is ignored" in it.getMessage()]
    assert line.startswith("group g: server_assignor is ignored in a classic group: its")


async def test_auto_uses_the_consumer_protocol_without_a_live_classic_group() -> None:
    async with a_setting() as its:
        assert await protocol_with(its, group_protocol="auto") is GroupProtocol.CONSUMER
        assert its.requests(JoinGroupRequest) == []


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Stable"])
async def test_auto_joins_a_live_classic_group_with_the_classic_protocol(state: str) -> None:
    async with a_setting() as its:
        its.group.state = state
        assert await protocol_with(its, group_protocol="auto") is GroupProtocol.CLASSIC
        assert its.heartbeats == []
        await its.member.leave(True)
        assert len(its.requests(LeaveGroupRequest)) == 1


async def test_empty_classic_group_is_not_live() -> None:
    async with a_setting() as its:
        its.group.state = "Empty"
        assert await protocol_with(its, group_protocol="auto") is GroupProtocol.CONSUMER


@pytest.mark.parametrize("settings", [{"group_protocol": "classic"}, {"assignors": ["range"]}])
async def test_member_with_classic_settings_does_not_describe_the_group(
    settings: dict[str, Any],
) -> None:
    async with a_setting() as its:
        protocol = await protocol_with(its, **({"group_protocol": "auto"} | settings))
        assert protocol is GroupProtocol.CLASSIC
        assert its.requests(DescribeGroupsRequest) == []


async def test_auto_uses_the_classic_protocol_with_an_old_coordinator() -> None:
    async with a_setting(version=-1) as its:
        assert await protocol_with(its, group_protocol="auto") is GroupProtocol.CLASSIC
        assert its.requests(DescribeGroupsRequest) == []
        await its.member.leave(True)
        its.make(group_protocol="consumer")
        its.member.start()
        error = await its.failed()
        assert isinstance(error, UnsupportedVersionError)
        assert 'use "classic"' in str(error)


async def test_known_old_brokers_are_not_asked_for_the_group_protocol() -> None:
    async with a_setting(version=-1) as its:
        await its.client.refresh()
        assert await protocol_with(its, group_protocol="auto") is GroupProtocol.CLASSIC
        assert its.broker.connections == 2  # the shared connection and that of the member
        await its.member.leave(True)
        its.make(Subscription.to(TopicPattern("t.*")), group_protocol="auto")
        its.member.start()
        assert "older than the consumer protocol" in str(await its.failed())


async def with_an_older_coordinator(
    its: Setting, wanted: str | Subscription = "t", **settings: Any
) -> None:
    """Joins, and then moves the group to a coordinator without ConsumerGroupHeartbeat."""
    its.make(wanted, **settings)
    await its.joined()
    answer = versions_up_to(-1)
    its.broker.answers[ApiVersionsRequest] = lambda asked: answer
    its.group.errors[ConsumerGroupHeartbeatRequest] = [HANG_UP]


async def test_member_becomes_classic_when_an_older_coordinator_takes_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The coordinator moves to an older broker during a rolling downgrade."""
    async with a_setting() as its:
        await with_an_older_coordinator(its, group_protocol="auto")
        await its.pass_until(lambda: its.member.protocol is GroupProtocol.CLASSIC)
        await its.pass_until(lambda: its.its.partitions == PARTITIONS)
        assert its.its.names == ["assign", "lose", "assign"]
        assert its.its.error is None
        assert its.requests(JoinGroupRequest)
        assert (
            "failed to send the leave request" not in caplog.text
        )  # the old coordinator does not know the member


async def test_member_becomes_classic_when_the_broker_disables_the_protocol() -> None:
    async with a_setting() as its:
        its.make(group_protocol="auto")
        await its.joined()
        its.group.errors[ConsumerGroupHeartbeatRequest] = ["UNSUPPORTED_VERSION"] * 9
        await its.pass_until(lambda: its.its.names == ["assign", "lose", "assign"])
        assert its.member.protocol is GroupProtocol.CLASSIC


@pytest.mark.parametrize(
    ("wanted", "protocol", "words"),
    [
        ("t", "consumer", "has no ConsumerGroupHeartbeat (KIP-848, Kafka 4.0)"),
        (Subscription.to(TopicPattern("t.*")), "auto", "older than the consumer protocol"),
    ],
)
async def test_older_coordinator_is_an_error_without_the_classic_protocol(
    wanted: str | Subscription, protocol: str, words: str
) -> None:
    async with a_setting() as its:
        await with_an_older_coordinator(its, wanted, group_protocol=protocol)
        await its.pass_until(lambda: its.its.error is not None)
        assert words in str(its.its.error)
        assert its.its.partitions == set()
        assert not its.requests(JoinGroupRequest)


async def test_auto_uses_the_classic_protocol_if_the_consumer_protocol_is_disabled() -> None:
    async with a_setting() as its:
        its.group.errors[ConsumerGroupHeartbeatRequest] = ["UNSUPPORTED_VERSION"] * 9
        assert await protocol_with(its, group_protocol="auto") is GroupProtocol.CLASSIC
        assert len(its.heartbeats) == 1


@pytest.mark.parametrize("name", ["GROUP_ID_NOT_FOUND", "INCONSISTENT_GROUP_PROTOCOL"])
async def test_group_that_became_classic_before_the_join_is_described_again(name: str) -> None:
    """The group changes its protocol between DescribeGroups and the join.

    The member describes the group again, and raises no error.
    """
    async with a_setting() as its:

        async def beat(asked: Any) -> Any:
            its.group.state = "Stable"
            return its.group.consumer_beat(asked, 69 if name == "GROUP_ID_NOT_FOUND" else 23)

        its.broker.answers[ConsumerGroupHeartbeatRequest] = beat
        assert await protocol_with(its, group_protocol="auto") is GroupProtocol.CLASSIC
        assert its.its.error is None


async def test_member_waits_until_the_group_is_converted_after_its_rebalance(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kafka 3.9.2 refuses to convert a group while one of its members has no assignment."""
    words = "Cannot upgrade: the embedded consumer protocol is malformed."
    async with a_setting() as its:
        left = [69] * 3

        def beat(asked: Any) -> Any:
            answer = its.group.consumer_beat(asked, left.pop() if left else 0)
            answer.error_message = words if answer.error_code else None
            return answer

        its.broker.answers[ConsumerGroupHeartbeatRequest] = beat
        its.member.start()
        await its.pass_until(lambda: its.its.partitions == PARTITIONS)
        assert its.its.error is None
    assert len([each for each in caplog.records if words in each.getMessage()]) == 1


async def test_member_uses_the_consumer_protocol_once_the_classic_members_left() -> None:
    async with a_setting() as its:
        states = ["Stable", "Empty", "Empty"]

        async def describe(asked: Any) -> Any:
            its.group.state = states.pop(0)
            return its.group.describe(asked, 0)

        its.broker.answers[DescribeGroupsRequest] = describe
        assert await protocol_with(its, group_protocol="auto") is GroupProtocol.CONSUMER
        assert states == []


async def test_group_of_neither_protocol_is_an_error() -> None:
    """An example is a share group: DescribeGroups returns no classic group of this id."""
    async with a_setting() as its:
        its.group.errors[ConsumerGroupHeartbeatRequest] = ["GROUP_ID_NOT_FOUND"] * 9
        its.group.errors[JoinGroupRequest] = ["INCONSISTENT_GROUP_PROTOCOL"] * 9
        its.make(group_protocol="auto")
        its.member.start()
        await its.pass_until(lambda: its.its.error is not None, 1)
        assert "no group of consumers" in str(its.its.error)
        assert len(its.heartbeats) == 2


async def test_group_is_described_again_after_the_membership_is_lost() -> None:
    async with a_setting() as its:
        assert await protocol_with(its, group_protocol="auto") is GroupProtocol.CONSUMER
        await its.until(lambda: its.is_in(Phase.STABLE))
        its.group.state = "Stable"
        its.group.member_id = "another"
        await its.pass_until(lambda: its.member.protocol is GroupProtocol.CLASSIC)
        await its.until(lambda: its.its.partitions == PARTITIONS)
        assert its.its.names == ["assign", "lose", "assign"]


async def test_missing_authorization_does_not_change_the_protocol() -> None:
    async with a_setting() as its:
        its.group.errors[DescribeGroupsRequest] = ["GROUP_AUTHORIZATION_FAILED"]
        its.make(group_protocol="auto")
        its.member.start()
        assert "READ on the group" in str(await its.failed())


async def test_topic_pattern_is_refused_in_a_classic_group() -> None:
    async with a_setting() as its:
        pattern = Subscription.to(TopicPattern("t.*"))
        with pytest.raises(ConfigurationError, match=r"re\.compile\('t\.\*'\)"):
            its.make(pattern, group_protocol="classic")
        with pytest.raises(ConfigurationError, match="because assignors are named"):
            its.make(pattern, group_protocol="auto", assignors=["range"])
        its.group.state = "Stable"
        its.make(pattern, group_protocol="auto")
        its.member.start()
        assert "with members" in str(await its.failed())
        assert await protocol_with(its, group_protocol="auto") is GroupProtocol.CLASSIC
        with pytest.raises(ConfigurationError, match="with members"):
            its.member.subscribe(pattern)
        assert its.its.partitions == PARTITIONS


async def test_member_ends_while_it_selects_the_protocol() -> None:
    async with a_setting() as its:
        its.group.state = "Stable"
        its.make(group_protocol="auto")
        its.member.start()
        await its.until(lambda: its.requests(DescribeGroupsRequest))
        await its.member.leave(True)
        await its.member.close()
        assert its.its.error is None
