"""Tests offset expiration in several batches and after failed writes.

Also tests when empty groups are deleted.
"""

from __future__ import annotations

import pytest

from kproto import BrokerResponseError
from kproto.broker.groups.consumer import ConsumerHeartbeat
from kproto.broker.groups.coordinator_records import group_record
from kproto.broker.groups.group_coordinator import OFFSETS_TOPIC
from kproto.broker.groups.group_metadata import GroupMetadata

from .test_offsets_topic import DAY_MS, Play, deleted


async def test_expired_offsets_are_removed_in_several_batches() -> None:
    play = Play(message_max_bytes=300)
    play.state.topics.add(play.state.plan_topic("many", 20))
    for index in range(20):
        assert play.commit(("many", index, 5), retention_ms=index % 2 or -1) == ["NONE"]
    await play.wait(1)
    assert len(play.fetch()) == 10
    assert max(it.size_in_bytes for it in play.partition.log) <= 300
    await play.wait(7 * DAY_MS)
    assert play.fetch() == {}
    assert play.written()[-1][0] == "g gone", "that batch is the last"


def test_offsets_of_deleted_topic_are_removed_in_several_batches() -> None:
    play = Play(message_max_bytes=300)
    play.state.topics.add(play.state.plan_topic("many", 20))
    for index in range(20):
        play.commit(("many", index, 5))
    now = play.context().now
    group = play.state.group_coordinator.find(play.find(), "g", now)
    assert group is not None
    with pytest.raises(BrokerResponseError, match="UNKNOWN_SERVER_ERROR"):
        play.state.group_coordinator.delete(group, now)
    assert len(play.fetch()) == 20, (
        "a requested deletion happens completely or not at all, as in Kafka"
    )
    deleted(play, "many")
    assert play.fetch() == {}


def test_empty_group_with_unknown_empty_time_is_deleted() -> None:
    play = Play()
    play.find()
    now = play.context().now
    old = GroupMetadata("consumer", 4, None, None, None)
    play.state.group_coordinator.append("g", [group_record("g", old)], now)
    assert play.state.group_coordinator.find(play.find(), "g", now) is None
    assert play.written() == [("g", 1), ("g gone", 1)]


async def test_removed_offsets_are_not_removed_again_after_a_failed_batch() -> None:
    play = Play(message_max_bytes=300)
    play.state.topics.add(play.state.plan_topic("many", 20))
    for index in range(20):
        play.commit(("many", index, 5), retention_ms=1)
    await play.wait(1)
    play.state.storage_limit.limit = play.state.storage_limit.used + 800
    left = len(play.fetch())
    assert 0 < left < 20
    assert len(play.fetch()) == left
    play.state.storage_limit.limit += 10_000
    assert play.fetch() == {}
    gone = [what for what, _ in play.written() if what.endswith("gone")]
    assert len(gone) == len(set(gone)) == 20 + 1


async def test_consumer_group_is_deleted_with_its_last_offset() -> None:
    play = Play()
    node, now = play.find(), play.context().now
    group = play.state.group_coordinator.get_or_create_consumer_group(node, "g", now)
    asked = ConsumerHeartbeat("m", 0, rebalance_timeout_ms=1, topics=frozenset({"t"}), owned={})
    group.heartbeat(asked, "", now)
    group.leave(ConsumerHeartbeat("m", -1), now)
    assert play.commit(("t", 0, 5)) == ["NONE"]
    await play.wait(7 * DAY_MS - 1)
    assert play.fetch() == {("t", 0): 5}
    await play.wait(1)
    now = play.context().now
    assert play.state.group_coordinator.find(node, "g", now) is None
    play.state.move_leader(OFFSETS_TOPIC, play.partition.index, node % 3 + 1)
    assert play.state.group_coordinator.find(node % 3 + 1, "g", now) is None


async def test_an_empty_group_of_the_consumer_protocol_is_kept_for_the_retention() -> None:
    play = Play()
    node, now = play.find(), play.context().now
    group = play.state.group_coordinator.get_or_create_consumer_group(node, "g", now)
    asked = ConsumerHeartbeat("m", 0, rebalance_timeout_ms=1, topics=frozenset({"t"}), owned={})
    group.heartbeat(asked, "", now)
    group.leave(ConsumerHeartbeat("m", -1), now)
    await play.wait(599_999)
    assert play.state.group_coordinator.find(node, "g", play.context().now) is group
    await play.wait(1)
    assert play.state.group_coordinator.find(node, "g", play.context().now) is None
