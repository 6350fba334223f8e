"""What holds for every assignor, and the small cases that one can follow by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.groups.assignors.ranges import assign_ranges
from kproto.client.groups.assignors.roundrobin import assign_in_turns
from kproto.client.groups.assignors.sticky import assign_cooperatively, assign_stickily
from kproto.client.groups.assignors.sticky_data import (
    Owned,
    cooperative_user_data,
    owned_cooperatively,
    owned_eagerly,
    sticky_user_data,
)
from kproto.client.groups.assignors.subscriptions import Assign, Subscription, java_sorted

ALL: list[Assign] = [assign_ranges, assign_in_turns, assign_stickily, assign_cooperatively]

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
def test_each_partition_goes_to_one_that_wants_it(
    assign: Assign, topics: dict[str, list[frozenset[str]]], members: dict[str, Subscription]
) -> None:
    found = assign(topics, members)
    assert found.keys() == members.keys()
    given_out = [place for places in found.values() for place in places]
    wanted = {topic for member in members.values() for topic in member.topics}
    there = {
        (topic, partition)
        for topic in wanted & topics.keys()
        for partition in range(len(topics[topic]))
    }
    assert sorted(given_out) == sorted(there)
    for member_id, places in found.items():
        assert {topic for topic, _ in places} <= set(members[member_id].topics)


@given(topics=topics_of_clusters, members=groups)
def test_cooperative_members_get_nothing_that_another_has_to_give_up(
    topics: dict[str, list[frozenset[str]]], members: dict[str, Subscription]
) -> None:
    found = assign_cooperatively(topics, members)
    given_out = [place for places in found.values() for place in places]
    assert len(set(given_out)) == len(given_out)
    for member_id, places in found.items():
        others = {
            place
            for other, member in members.items()
            if other != member_id
            for place in member.owned
            if place not in found[other]
        }
        assert not (set(places) - set(members[member_id].owned)) & others


@pytest.mark.parametrize("assign", [assign_stickily, assign_cooperatively])
@given(partitions=st.integers(0, 40), count=st.integers(1, 9), generation=st.integers(0, 2**31 - 1))
def test_who_wants_the_same_gets_the_same_share_and_keeps_it(
    assign: Assign, partitions: int, count: int, generation: int
) -> None:
    topics = {"t": [NO_RACKS] * partitions}
    members = {f"m{number}": Subscription(["t"]) for number in range(count)}
    first = {member_id: list(places) for member_id, places in assign(topics, members).items()}
    sizes = [len(places) for places in first.values()]
    assert max(sizes) - min(sizes) <= 1
    again = {
        member_id: Subscription(
            ["t"],
            owned=places,
            generation=generation,
            user_data=sticky_user_data(places, generation),
        )
        for member_id, places in first.items()
    }
    second = assign(topics, again)
    assert {member: set(places) for member, places in second.items()} == {
        member: set(places) for member, places in first.items()
    }


def test_ranges_are_runs_of_neighbours_and_the_first_get_one_more() -> None:
    topics = {"a": [NO_RACKS] * 5, "b": [NO_RACKS] * 2}
    members = {"y": Subscription(["a", "b"]), "x": Subscription(["b", "a"])}
    assert assign_ranges(topics, members) == {
        "x": [("a", 0), ("a", 1), ("a", 2), ("b", 0)],
        "y": [("a", 3), ("a", 4), ("b", 1)],
    }


def test_static_members_come_first_by_their_instance_ids() -> None:
    topics = {"t": [NO_RACKS] * 3}
    members = {
        "a": Subscription(["t"]),
        "b": Subscription(["t"], instance_id="2"),
        "c": Subscription(["t"], instance_id="1"),
    }
    for assign in (assign_ranges, assign_in_turns):
        assert assign(topics, members) == {"c": [("t", 0)], "b": [("t", 1)], "a": [("t", 2)]}


def test_a_range_is_near_its_consumer_where_racks_count() -> None:
    topics = {"t": [frozenset({"r2"}), frozenset({"r1"}), frozenset({"r2"}), frozenset({"r1"})]}
    members = {"a": Subscription(["t"], rack="r1"), "b": Subscription(["t"], rack="r2")}
    assert assign_ranges(topics, members) == {
        "a": [("t", 1), ("t", 3)],
        "b": [("t", 0), ("t", 2)],
    }


def test_of_two_claims_that_of_the_later_generation_counts() -> None:
    topics = {"t": [NO_RACKS] * 2}
    members = {
        "old": Subscription(["t"], owned=[("t", 0)], generation=1),
        "new": Subscription(["t"], owned=[("t", 0)], generation=2),
    }
    # What the old one claims he has to give up first, and is told so by what he is given.
    assert assign_cooperatively(topics, members)["new"] == [("t", 0)]


def test_user_data_is_that_of_kafkas_members() -> None:
    # By StickyAssignor of Kafka: topics, their partitions, and the generation behind them.
    data = bytes.fromhex("0000000100016100000002000000000000000300000007")
    assert sticky_user_data([("a", 0), ("a", 3)], 7) == data
    member = Subscription(["a"], user_data=data)
    assert owned_eagerly(member) == Owned([("a", 0), ("a", 3)], 7)
    # Version 0 had no generation.
    assert owned_eagerly(member._replace(user_data=data[:-4])) == Owned([("a", 0), ("a", 3)], None)
    assert owned_eagerly(member._replace(user_data=data[:7])) == Owned((), -1)
    assert cooperative_user_data(7) == bytes.fromhex("00000007")
    cooperative = Subscription(["a"], owned=[("a", 1)], user_data=cooperative_user_data(7))
    assert owned_cooperatively(cooperative) == Owned([("a", 1)], 7)


def test_texts_are_in_the_order_of_utf16_code_units() -> None:
    assert java_sorted(["\uffee", "\U0001f600", "a"]) == ["a", "\U0001f600", "\uffee"]
