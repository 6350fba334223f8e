"""Tests the assignor of share groups: balance, stickiness, and partitions without a share state.

`tests/reference/test_coordinator_assignors.py` compares the assignor with Kafka's assignor.
"""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.groups.consumer.assignors import Assignment, GroupSpec, MemberSpec
from kproto.broker.groups.consumer.consumer_group_member import Partitions
from kproto.broker.groups.share.simple_assignor import assign_simple
from kproto.wire.uuid import Uuid

T, U = (Uuid(bytes([at]) * 16) for at in (1, 2))


def group(counts: dict[Uuid, int], **members: tuple[set[Uuid], Partitions]) -> GroupSpec:
    specs = {it: MemberSpec(frozenset(topics), None, has) for it, (topics, has) in members.items()}
    alike = len({frozenset(it.topics) for it in specs.values()}) == 1
    return GroupSpec(specs, counts, alike)


def all_of(counts: dict[Uuid, int]) -> Partitions:
    return {it: frozenset(range(count)) for it, count in counts.items()}


def test_members_without_topics_get_no_partitions() -> None:
    assert not any(assign_simple(GroupSpec({}, {}, True), {}).values())
    assert not any(assign_simple(group({T: 2}, a=(set(), {})), all_of({T: 2})).values())


def test_only_partitions_with_a_share_state_are_assigned() -> None:
    found = assign_simple(group({T: 3}, a=({T}, {}), b=({T}, {})), {T: frozenset({1})})
    assert found == {"a": {T: {1}}, "b": {T: {1}}}


def test_a_member_alone_gets_all_partitions_and_keeps_its_own() -> None:
    counts = {T: 3, U: 2}
    alone = assign_simple(group(counts, a=({T, U}, {})), all_of(counts))
    assert alone == {"a": {T: {0, 1, 2}, U: {0, 1}}}
    has = {"a": {T: frozenset({0, 2})}, "b": {T: frozenset({1, 3})}}
    found = assign_simple(group({T: 4}, a=({T}, has["a"]), b=({T}, has["b"])), all_of({T: 4}))
    assert found == {"a": {T: {0, 2}}, "b": {T: {1, 3}}}


def test_each_topic_is_balanced_over_its_subscribers() -> None:
    counts = {T: 2, U: 2}
    found = assign_simple(group(counts, a=({T, U}, {}), b=({U}, {})), all_of(counts))
    assert found["a"][T] == {0, 1}
    assert len(found["a"][U]) == len(found["b"][U]) == 1


def test_a_topic_whose_partitions_were_all_revoked_stays_without_partitions() -> None:
    counts = {T: 1, U: 1}
    both = {T: frozenset({0}), U: frozenset({0})}
    found = assign_simple(group(counts, a=({T}, both), b=({T, U}, {})), all_of(counts))
    assert found["a"] == {T: {0}, U: set()}
    left: Partitions = {T: frozenset({0}), U: frozenset()}
    alone = assign_simple(group({T: 1, U: 0}, a=({T, U}, left)), all_of({T: 1, U: 0}))
    assert alone == {"a": {T: {0}, U: set()}}
    assert assign_simple(group({T: 1}, a=({T}, left)), all_of({T: 1})) == {"a": {T: {0}}}


@given(partitions=st.integers(1, 12), members=st.integers(1, 30))
def test_members_and_partitions_are_balanced(partitions: int, members: int) -> None:
    counts = {T: partitions}
    spec = group(counts, **{f"m{at}": ({T}, {}) for at in range(members)})
    found = assign_simple(spec, all_of(counts))
    sharing = math.ceil(members / partitions)
    assert {at: holders(found, at) for at in range(partitions)} == dict.fromkeys(
        range(partitions), sharing
    )
    sizes = [len(found[it].get(T, ())) for it in spec.members]
    assert max(sizes) - min(sizes) <= 1


def holders(found: Assignment, index: int) -> int:
    return sum(index in its.get(T, ()) for its in found.values())
