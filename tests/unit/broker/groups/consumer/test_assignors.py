"""Tests the coordinator's assignors: balance, stickiness, and the order of topics and members.

`tests/reference/test_coordinator_assignors.py` compares the assignors with Kafka's assignors.
"""

from __future__ import annotations

import random

import pytest

from kproto.broker.consumer_group_settings import ASSIGNORS
from kproto.broker.groups.consumer.assignors import (
    ASSIGNOR_TABLE,
    Assignment,
    GroupSpec,
    MemberSpec,
    assign,
)
from kproto.broker.groups.consumer.consumer_group_member import Partitions
from kproto.broker.groups.java_order import bucket, uuid_hash
from kproto.wire.uuid import Uuid
from tests.support.selection import rest_slow

T, U, V = (Uuid(bytes([at]) * 16) for at in (1, 2, 3))
COUNTS = {T: 6, U: 3, V: 2}


def group(**members: tuple[set[Uuid], Partitions]) -> GroupSpec:
    specs = {it: MemberSpec(frozenset(topics), None, has) for it, (topics, has) in members.items()}
    alike = len({it.topics for it in specs.values()}) == 1
    return GroupSpec(specs, COUNTS, alike)


def test_the_table_has_what_may_be_set() -> None:
    assert tuple(ASSIGNOR_TABLE) == ASSIGNORS


@pytest.mark.parametrize("name", ASSIGNORS)
def test_group_without_members_or_topics_gets_no_assignment(name: str) -> None:
    assert not any(assign(name, GroupSpec({}, COUNTS, True)).values())
    assert not any(assign(name, group(a=(set(), {}), b=(set(), {}))).values())


def test_ranges() -> None:
    assert assign("range", group(a=({T, U}, {}), b=({T, U}, {}))) == {
        "a": {T: {0, 1, 2}, U: {0, 1}},
        "b": {T: {3, 4, 5}, U: {2}},
    }
    assert assign("range", group(a=({T, V}, {}), b=({V}, {}), c=({V}, {}))) == {
        "a": {T: {0, 1, 2, 3, 4, 5}, V: {0}},
        "b": {V: {1}},
        "c": {},
    }


def test_static_members_come_first_in_ranges() -> None:
    specs = {
        "a": MemberSpec(frozenset({T})),
        "y": MemberSpec(frozenset({T}), "2"),
        "z": MemberSpec(frozenset({T}), "1"),
    }
    found = assign("range", GroupSpec(specs, COUNTS, True))
    assert found == {"z": {T: {0, 1}}, "y": {T: {2, 3}}, "a": {T: {4, 5}}}


@pytest.mark.parametrize(
    ("first", "found"), [({T}, {"a": {T: {0, 1, 2}}, "b": {T: {3, 4, 5}}}), (set(), {})]
)
def test_homogeneous_group_uses_subscription_of_first_member(
    first: set[Uuid], found: Assignment
) -> None:
    specs = {"a": MemberSpec(frozenset(first)), "b": MemberSpec(frozenset({U}))}
    got = assign("range", GroupSpec(specs, COUNTS, True))
    assert {it: places for it, places in got.items() if places} == found


def test_member_with_one_more_partition_keeps_it() -> None:
    has = {T: frozenset({0, 1, 2, 3})}
    found = assign("uniform", group(a=({T, U, V}, {}), b=({T, U, V}, {}), c=({T, U, V}, has)))
    assert found["c"][T] == {0, 1, 2, 3}
    assert sorted(sum(map(len, its.values())) for its in found.values()) == [3, 4, 4]


@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_last_inserted_topic_of_a_bucket_comes_first(
    is_homogeneous: bool,
) -> None:
    assert {bucket(uuid_hash(it), 16) for it in (T, U, V)} == {0}
    topics = dict.fromkeys((T, U, V)).keys()
    first = assign("uniform", GroupSpec({"c": MemberSpec(topics)}, COUNTS, is_homogeneous))
    assert list(first["c"]) == [V, U, T]


def test_member_over_quota_loses_its_last_partitions() -> None:
    topics = dict.fromkeys((T, U, V)).keys()
    has = {U: frozenset(range(3)), T: frozenset(range(6)), V: frozenset(range(2))}
    specs = {"c": MemberSpec(topics, None, has), "d": MemberSpec(topics)}
    found = assign("uniform", GroupSpec(specs, COUNTS, True))
    assert found == {"c": {U: {0, 1, 2}, T: {0, 1, 2}}, "d": {T: {3, 4, 5}, V: {0, 1}}}


def test_unsubscribed_partitions_are_assigned_to_others() -> None:
    found = assign("uniform", group(a=({U}, {T: frozenset({0})}), b=({T}, {})))
    assert found == {"a": {U: {0, 1, 2}}, "b": {T: {0, 1, 2, 3, 4, 5}}}


@pytest.mark.parametrize("seed", rest_slow(range(200), 0, 40))
@pytest.mark.parametrize("name", ASSIGNORS)
def test_each_partition_has_one_owner_and_few_move(name: str, seed: int) -> None:
    chance = random.Random(seed)
    wanted = {f"m{it}": set(chance.sample([T, U, V], chance.randint(1, 3))) for it in range(5)}
    if chance.random() < 0.4:
        wanted = {it: {T, U, V} for it in wanted}
    first = assign(name, group(**{it: (topics, {}) for it, topics in wanted.items()}))
    check(first, wanted)
    has = {it: {t: frozenset(its) for t, its in places.items()} for it, places in first.items()}
    again = assign(name, group(**{it: (topics, has[it]) for it, topics in wanted.items()}))
    assert again == first
    del wanted["m0"]
    check(assign(name, group(**{it: (wanted[it], has[it]) for it in wanted})), wanted)


def check(found: Assignment, wanted: dict[str, set[Uuid]]) -> None:
    places = [
        (topic, index)
        for member, its in found.items()
        for topic, indexes in its.items()
        for index in indexes
        if topic in wanted[member]
    ]
    topics = set().union(*wanted.values())
    assert sorted(places) == sorted((it, at) for it in topics for at in range(COUNTS[it]))
    assert len(places) == sum(len(it) for its in found.values() for it in its.values())
