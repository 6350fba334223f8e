"""Tests the properties of every assignor, and the expected assignments of small groups."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.groups.assignors.ranges import assign_ranges
from kproto.client.groups.assignors.roundrobin import assign_round_robin
from kproto.client.groups.assignors.sticky import assign_cooperative_sticky, assign_sticky
from kproto.client.groups.assignors.sticky_data import (
    MemberData,
    cooperative_member_data,
    cooperative_user_data,
    eager_member_data,
    sticky_user_data,
)
from kproto.client.groups.assignors.subscriptions import Assign, Subscription, java_sorted

ALL: list[Assign] = [assign_ranges, assign_round_robin, assign_sticky, assign_cooperative_sticky]

NO_RACKS: frozenset[str] = frozenset()

names = st.text("abc", min_size=1, max_size=3)
racks = st.frozensets(st.sampled_from(["r1", "r2", "r3"]), max_size=3)
topics_of_clusters = st.dictionaries(names, st.lists(racks, max_size=6), max_size=5)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(names, max_size=4),
    owned=st.lists(st.tuples(names, st.integers(-1, 6)), max_size=6),
    generation=st.integers(-1, 3),
    rack=st.none() | st.sampled_from(["", "r1", "r2"]),
    instance_id=st.none(),
    user_data=st.none()
    | st.binary(max_size=12)
    | st.builds(
        sticky_user_data,
        st.lists(st.tuples(names, st.integers(0, 6)), max_size=6),
        st.integers(-1, 3),
    ),
)
groups = st.dictionaries(st.text(max_size=4), subscriptions, min_size=1, max_size=6)


@pytest.mark.parametrize("assign", ALL[:3])
@given(topics=topics_of_clusters, members=groups)
def test_each_partition_is_assigned_to_one_subscriber(
    assign: Assign, topics: dict[str, list[frozenset[str]]], members: dict[str, Subscription]
) -> None:
    found = assign(topics, members)
    assert found.keys() == members.keys()
    assigned = [tp for tps in found.values() for tp in tps]
    wanted = {topic for member in members.values() for topic in member.topics}
    existing = {
        (topic, partition)
        for topic in wanted & topics.keys()
        for partition in range(len(topics[topic]))
    }
    assert sorted(assigned) == sorted(existing)
    for member_id, tps in found.items():
        assert {topic for topic, _ in tps} <= set(members[member_id].topics)


@given(topics=topics_of_clusters, members=groups)
def test_cooperative_member_gets_no_partition_that_another_must_revoke(
    topics: dict[str, list[frozenset[str]]], members: dict[str, Subscription]
) -> None:
    found = assign_cooperative_sticky(topics, members)
    assigned = [tp for tps in found.values() for tp in tps]
    assert len(set(assigned)) == len(assigned)
    for member_id, tps in found.items():
        others = {
            tp
            for other, member in members.items()
            if other != member_id
            for tp in member.owned
            if tp not in found[other]
        }
        assert not (set(tps) - set(members[member_id].owned)) & others


@pytest.mark.parametrize("assign", [assign_sticky, assign_cooperative_sticky])
@given(partitions=st.integers(0, 40), count=st.integers(1, 9), generation=st.integers(0, 2**31 - 1))
def test_members_of_one_subscription_get_equal_shares_and_keep_them(
    assign: Assign, partitions: int, count: int, generation: int
) -> None:
    topics = {"t": [NO_RACKS] * partitions}
    members = {f"m{number}": Subscription(["t"]) for number in range(count)}
    first = {member_id: list(tps) for member_id, tps in assign(topics, members).items()}
    sizes = [len(tps) for tps in first.values()]
    assert max(sizes) - min(sizes) <= 1
    again = {
        member_id: Subscription(
            ["t"],
            owned=tps,
            generation=generation,
            user_data=sticky_user_data(tps, generation),
        )
        for member_id, tps in first.items()
    }
    second = assign(topics, again)
    assert {member: set(tps) for member, tps in second.items()} == {
        member: set(tps) for member, tps in first.items()
    }


def test_ranges_are_consecutive_and_the_first_members_get_one_more() -> None:
    topics = {"a": [NO_RACKS] * 5, "b": [NO_RACKS] * 2}
    members = {"y": Subscription(["a", "b"]), "x": Subscription(["b", "a"])}
    assert assign_ranges(topics, members) == {
        "x": [("a", 0), ("a", 1), ("a", 2), ("b", 0)],
        "y": [("a", 3), ("a", 4), ("b", 1)],
    }


def test_static_members_are_ordered_first_by_instance_id() -> None:
    topics = {"t": [NO_RACKS] * 3}
    members = {
        "a": Subscription(["t"]),
        "b": Subscription(["t"], instance_id="2"),
        "c": Subscription(["t"], instance_id="1"),
    }
    for assign in (assign_ranges, assign_round_robin):
        assert assign(topics, members) == {"c": [("t", 0)], "b": [("t", 1)], "a": [("t", 2)]}


def test_range_prefers_replicas_in_the_members_rack() -> None:
    topics = {"t": [frozenset({"r2"}), frozenset({"r1"}), frozenset({"r2"}), frozenset({"r1"})]}
    members = {"a": Subscription(["t"], rack="r1"), "b": Subscription(["t"], rack="r2")}
    assert assign_ranges(topics, members) == {
        "a": [("t", 1), ("t", 3)],
        "b": [("t", 0), ("t", 2)],
    }


def test_ownership_of_the_later_generation_wins() -> None:
    topics = {"t": [NO_RACKS] * 2}
    members = {
        "old": Subscription(["t"], owned=[("t", 0)], generation=1),
        "new": Subscription(["t"], owned=[("t", 0)], generation=2),
    }
    # The old member must revoke the partition first, so no member gets the partition yet.
    assert assign_cooperative_sticky(topics, members)["new"] == [("t", 0)]


def test_user_data_has_the_bytes_of_kafkas_assignors() -> None:
    # Kafka's StickyAssignor writes topics with their partitions, then the generation.
    data = bytes.fromhex("0000000100016100000002000000000000000300000007")
    assert sticky_user_data([("a", 0), ("a", 3)], 7) == data
    member = Subscription(["a"], user_data=data)
    assert eager_member_data(member) == MemberData([("a", 0), ("a", 3)], 7)
    # Version 0 has no generation.
    assert eager_member_data(member._replace(user_data=data[:-4])) == MemberData(
        [("a", 0), ("a", 3)], None
    )
    assert eager_member_data(member._replace(user_data=data[:7])) == MemberData((), -1)
    assert cooperative_user_data(7) == bytes.fromhex("00000007")
    cooperative = Subscription(["a"], owned=[("a", 1)], user_data=cooperative_user_data(7))
    assert cooperative_member_data(cooperative) == MemberData([("a", 1)], 7)


def test_strings_are_sorted_by_utf16_code_units() -> None:
    assert java_sorted(["\uffee", "\U0001f600", "a"]) == ["a", "\U0001f600", "\uffee"]
