"""Settings of a member, subscriptions and assignors by name: what works, and the words if not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kproto.client.cluster.metadata import TopicInfo
from kproto.client.groups.assignor import ASSIGNORS, Assignor, assignors_called
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.wire.errors import ConfigurationError
from kproto.wire.uuid import ZERO_UUID


def nothing(topics: Any, members: Any) -> dict[str, Any]:
    return {}


def test_the_defaults_are_those_of_java() -> None:
    settings = GroupSettings("g")
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 3_000)
    assert settings.max_poll_interval_ms == 300_000
    assert [each.name for each in settings.chosen] == ["range", "cooperative-sticky"]
    assert not settings.cooperative
    assert (settings.auto_commit, settings.auto_commit_interval_ms) == (True, 5_000)
    assert (settings.leaves, settings.is_static) == (True, False)


@pytest.mark.parametrize(
    ("instance_id", "leave", "leaves"),
    [(None, "auto", True), ("i", "auto", False), (None, False, False), ("i", True, True)],
)
def test_who_leaves(instance_id: str | None, leave: Any, leaves: bool) -> None:
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
    ],
)
def test_what_cannot_work(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        GroupSettings(**({"group_id": "g"} | settings))


def test_assignors_by_name_and_ones_own() -> None:
    mine = Assignor("mine", nothing)
    assert assignors_called("sticky") == (ASSIGNORS["sticky"],)
    assert assignors_called(mine) == (mine,)
    assert assignors_called(["range", mine]) == (ASSIGNORS["range"], mine)
    assert list(ASSIGNORS) == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert [each.name for each in ASSIGNORS.values() if each.cooperative] == ["cooperative-sticky"]


@pytest.mark.parametrize(
    "given", [("", nothing), (None, nothing), ("mine", None), ("mine", 3), ("a", nothing, False, 3)]
)
def test_no_assignor(given: Any) -> None:
    with pytest.raises(ConfigurationError):
        Assignor(*given)


# Subscriptions


def info(name: str, **more: Any) -> TopicInfo:
    return TopicInfo(name, ZERO_UUID, {}, **more)


def test_names() -> None:
    assert Subscription.to("t").topics == {"t"}
    wanted = Subscription.to(["t", "u", "t"])
    assert wanted.among([info("v")]) == {"t", "u"}
    assert wanted.wants("u")
    assert not wanted.wants("v")
    assert str(wanted) == "t, u"


def test_the_whole_name_matches_a_pattern() -> None:
    wanted = Subscription.to(re.compile("orders-.*|x"))
    topics = [info(name) for name in ("orders-a", "my-orders-a", "x", "xy", "orders-\n")]
    assert wanted.among(topics) == {"orders-a", "x"}
    assert wanted.wants("orders-b")
    assert not wanted.wants("old-orders-b")
    assert str(wanted) == "pattern 'orders-.*|x'"


def test_internal_topics_and_those_with_errors_match_nothing() -> None:
    wanted = Subscription.to(re.compile(".*"))
    topics = [info("__consumer_offsets", internal=True), info("t"), info("u", error_code=29)]
    assert wanted.among(topics) == {"t"}


@pytest.mark.parametrize("wanted", [[], "", [""], 3, [3], re.compile(b"t"), None, b"t"])
def test_no_subscription(wanted: Any) -> None:
    with pytest.raises(ConfigurationError):
        Subscription.to(wanted)
