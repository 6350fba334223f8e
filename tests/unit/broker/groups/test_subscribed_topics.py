"""Tests reading subscribed topics from JoinGroup metadata: complete, truncated or invalid."""

from __future__ import annotations

import pytest

from kproto.broker.groups.classic_members import subscribed_topics
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


def said(version: int, *topics: str, user_data: bytes | None = None) -> bytes:
    subscription = ConsumerProtocolSubscription(topics=topics, user_data=user_data)
    return version.to_bytes(2, "big") + subscription.encode(version)


@pytest.mark.parametrize("version", ConsumerProtocolSubscription.VALID_VERSIONS)
def test_topics_of_all_members_are_united(version: int) -> None:
    members = [said(version, "t", "u"), said(0, "u", "v", user_data=b"data"), said(0)]
    assert subscribed_topics(members) == frozenset("tuv")
    assert subscribed_topics([]) == frozenset()


def test_newer_version_is_read_as_version_0() -> None:
    assert subscribed_topics([b"\0\x09" + said(3, "t")[2:] + b"more"]) == frozenset("t")


@pytest.mark.parametrize("user_data", [None, b"", b"data"])
def test_truncated_subscription_is_unreadable(user_data: bytes | None) -> None:
    whole = said(0, "t", "u", user_data=user_data)
    assert subscribed_topics([whole]) == frozenset("tu")
    for size in range(len(whole)):
        assert subscribed_topics([whole[:size]]) is None, size
        assert subscribed_topics([said(0, "v"), whole[:size]]) is None


@pytest.mark.parametrize(
    "metadata", [b"", b"\xff\xff", b"\xff\xff" + said(0, "t")[2:], b"\0\0\xff"]
)
def test_invalid_subscription_is_unreadable(metadata: bytes) -> None:
    assert subscribed_topics([metadata]) is None
