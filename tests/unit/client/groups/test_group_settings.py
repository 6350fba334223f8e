"""Tests group settings, subscriptions and assignors by name, and their error messages."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kproto.client.groups.assignor import ASSIGNORS, Assignor, resolve_assignors
from kproto.client.groups.group_protocol import (
    GroupProtocol,
    initial_protocol,
    is_live_classic,
    may_change_protocol,
)
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription, TopicPattern
from kproto.client.metadata.cluster import TopicInfo
from kproto.messages import DescribeGroupsResponse
from kproto.messages.describe_groups_response import DescribedGroup
from kproto.protocol.error_codes import code_of
from kproto.wire.errors import BrokerResponseError, ConfigurationError
from kproto.wire.uuid import ZERO_UUID


def nothing(topics: Any, members: Any) -> dict[str, Any]:
    return {}


MINE = Assignor("mine", nothing)


@pytest.mark.parametrize(
    ("settings", "protocol", "changes"),
    [
        ({}, GroupProtocol.CONSUMER, True),
        ({"group_protocol": "consumer"}, GroupProtocol.CONSUMER, False),
        ({"group_protocol": "classic"}, GroupProtocol.CLASSIC, False),
        ({"server_assignor": "range"}, GroupProtocol.CONSUMER, True),
        ({"assignors": ("range", "cooperative-sticky")}, GroupProtocol.CLASSIC, False),
        ({"assignors": (MINE,)}, GroupProtocol.CLASSIC, False),
    ],
)
def test_settings_select_the_group_protocol(
    settings: dict[str, Any], protocol: GroupProtocol, changes: bool
) -> None:
    """Setting `assignors` selects the classic protocol, even with the default assignors."""
    its = GroupSettings("g", **settings)
    assert initial_protocol(its) is protocol
    assert may_change_protocol(its) is changes


def test_heartbeat_interval_is_not_checked_in_the_consumer_protocol() -> None:
    settings = GroupSettings("g", group_protocol="consumer", session_timeout_ms=2_000)
    assert settings.session_timeout_ms < settings.heartbeat_interval_ms


@pytest.mark.parametrize(
    ("state", "is_live"),
    [
        ("Stable", True),
        ("PreparingRebalance", True),
        ("CompletingRebalance", True),
        ("Empty", False),
        ("Dead", False),
        ("", False),
    ],
)
def test_state_decides_if_a_classic_group_is_live(state: str, is_live: bool) -> None:
    others = DescribedGroup(group_id="other", group_state="Stable")
    answer = DescribeGroupsResponse(
        groups=[others, DescribedGroup(group_id="g", group_state=state)]
    )
    assert is_live_classic(answer, "g") is is_live
    assert not is_live_classic(answer, "h")


def test_missing_group_is_not_live_and_unauthorized_group_raises() -> None:
    """DescribeGroups v6 also returns GROUP_ID_NOT_FOUND for groups of another type."""
    code = code_of("GROUP_ID_NOT_FOUND")
    gone = DescribedGroup(group_id="g", error_code=code, group_state="Dead")
    assert not is_live_classic(DescribeGroupsResponse(groups=[gone]), "g")
    gone.error_code = code_of("GROUP_AUTHORIZATION_FAILED")
    with pytest.raises(BrokerResponseError, match="describing group 'g'"):
        is_live_classic(DescribeGroupsResponse(groups=[gone]), "g")


def test_defaults_equal_those_of_the_java_consumer() -> None:
    settings = GroupSettings("g")
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 3_000)
    assert settings.max_poll_interval_ms == 300_000
    assert [each.name for each in settings.resolved_assignors] == ["range", "cooperative-sticky"]
    assert not settings.cooperative
    assert (settings.auto_commit, settings.auto_commit_interval_ms) == (True, 5_000)
    assert (settings.leaves, settings.is_static) == (True, False)


@pytest.mark.parametrize(
    ("instance_id", "leave", "leaves"),
    [(None, "auto", True), ("i", "auto", False), (None, False, False), ("i", True, True)],
)
def test_leave_setting_decides_if_a_member_leaves(
    instance_id: str | None, leave: Any, leaves: bool
) -> None:
    assert GroupSettings("g", instance_id, leave=leave).leaves is leaves


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"group_id": ""}, "group is ''"),
        ({"group_id": 7}, "group is 7"),
        ({"instance_id": ""}, "instance_id is ''"),
        ({"instance_id": ".."}, "instance_id"),
        ({"instance_id": "a b"}, "'_' and '-'"),
        ({"instance_id": "x" * 250}, "1 to 249 characters"),
        ({"session_timeout_ms": 0}, "session_timeout_ms is 0"),
        ({"session_timeout_ms": 2**31}, "2147483647"),
        ({"heartbeat_interval_ms": True}, "heartbeat_interval_ms is True"),
        ({"heartbeat_interval_ms": 45_000}, "must be smaller"),
        ({"max_poll_interval_ms": -1}, "max_poll_interval_ms"),
        ({"auto_commit_interval_ms": 1.5}, "auto_commit_interval_ms"),
        ({"auto_commit": "no"}, "auto_commit is 'no'"),
        ({"leave": "never"}, "leave is 'never'"),
        ({"leave": 1}, "leave is 1"),
        ({"assignors": ()}, "assignors is empty"),
        ({"assignors": 3}, "assignors is 3"),
        ({"assignors": ("rage",)}, "range, roundrobin, sticky, cooperative-sticky"),
        ({"assignors": ("range", "range")}, "'range' twice"),
        ({"group_protocol": "newest"}, "'auto', 'consumer', 'classic'"),
        ({"group_protocol": None}, "group_protocol is None"),
        ({"server_assignor": ""}, "server_assignor is ''"),
        ({"server_assignor": 3}, "server_assignor is 3"),
        ({"server_assignor": "range", "group_protocol": "classic"}, "name `assignors`"),
        ({"assignors": (MINE,), "group_protocol": "consumer"}, "has 'mine' of the user"),
        ({"assignors": (MINE,), "server_assignor": "range"}, "leave out group_protocol"),
        (
            {"group_protocol": "consumer", "session_timeout_ms": 6_000},
            "the broker decides when a session times out: set group.consumer.session",
        ),
        ({"group_protocol": "consumer", "heartbeat_interval_ms": 1}, "consumer.heartbeat.interval"),
        ({"group_protocol": "consumer", "assignors": ("range",)}, "by server_assignor"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        GroupSettings(**({"group_id": "g", "explicit_settings": frozenset(settings)} | settings))


def test_assignors_are_found_by_name_and_custom_ones_are_kept() -> None:
    mine = Assignor("mine", nothing)
    assert resolve_assignors("sticky") == (ASSIGNORS["sticky"],)
    assert resolve_assignors(mine) == (mine,)
    assert resolve_assignors(["range", mine]) == (ASSIGNORS["range"], mine)
    assert list(ASSIGNORS) == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert [each.name for each in ASSIGNORS.values() if each.cooperative] == ["cooperative-sticky"]


@pytest.mark.parametrize(
    "given", [("", nothing), (None, nothing), ("mine", None), ("mine", 3), ("a", nothing, False, 3)]
)
def test_invalid_assignor_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError):
        Assignor(*given)


# Subscriptions


def info(name: str, **more: Any) -> TopicInfo:
    return TopicInfo(name, ZERO_UUID, {}, **more)


def test_subscription_to_names_matches_these_topics() -> None:
    assert Subscription.to("t").topics == {"t"}
    wanted = Subscription.to(["t", "u", "t"])
    assert wanted.among([info("v")]) == {"t", "u"}
    assert wanted.includes("u")
    assert not wanted.includes("v")
    assert str(wanted) == "t, u"


def test_pattern_must_match_the_whole_name() -> None:
    wanted = Subscription.to(re.compile("orders-.*|x"))
    topics = [info(name) for name in ("orders-a", "my-orders-a", "x", "xy", "orders-\n")]
    assert wanted.among(topics) == {"orders-a", "x"}
    assert wanted.includes("orders-b")
    assert not wanted.includes("old-orders-b")
    assert str(wanted) == "pattern 'orders-.*|x'"


def test_pattern_skips_internal_topics_and_topics_with_errors() -> None:
    wanted = Subscription.to(re.compile(".*"))
    topics = [info("__consumer_offsets", internal=True), info("t"), info("u", error_code=29)]
    assert wanted.among(topics) == {"t"}


def test_topic_pattern_is_not_matched_by_the_client() -> None:
    wanted = Subscription.to(TopicPattern("orders-.*"))
    assert wanted.among([info("orders-a")]) == frozenset()
    assert wanted.includes("anything")
    assert str(wanted) == "pattern 'orders-.*' of the broker"
    assert wanted == Subscription.to(TopicPattern("orders-.*"))


@pytest.mark.parametrize("text", ["", None, b"t", re.compile("t")])
def test_invalid_topic_pattern_is_refused(text: Any) -> None:
    with pytest.raises(ConfigurationError, match="TopicPattern"):
        TopicPattern(text)


@pytest.mark.parametrize("wanted", [[], "", [""], 3, [3], re.compile(b"t"), None, b"t"])
def test_invalid_subscription_is_refused(wanted: Any) -> None:
    with pytest.raises(ConfigurationError):
        Subscription.to(wanted)
