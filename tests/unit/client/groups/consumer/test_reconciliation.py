"""Tests the difference between owned and assigned partitions, by topic id."""

from __future__ import annotations

from kproto.client.groups.reconciliation import (
    Difference,
    assigned_in,
    by_topic_id,
    difference,
    to_request,
)
from kproto.wire.uuid import Uuid

from .walks import IDS, T0, T1, T2, answer_of

T = IDS["t"]
NEW_ID = Uuid(b"a" * 16)


def name_of(topic_id: Uuid) -> str | None:
    return next((name for name, its in IDS.items() if its == topic_id), None)


def is_subscribed(topic: str) -> bool:
    return topic != "u"


def test_missing_assignment_is_none_and_empty_assignment_is_a_change() -> None:
    assert assigned_in(answer_of(1)) is None
    assert assigned_in(answer_of(1, [])) == frozenset()
    assigned = assigned_in(answer_of(1, [T0, T2, ("u", 1)]))
    assert assigned == frozenset([(T, 0), (T, 2), (IDS["u"], 1)])


def test_difference_has_revoked_and_added_partitions() -> None:
    owned = {T0: T, T1: T}
    found = difference(owned, frozenset([(T, 1), (T, 2)]), name_of, is_subscribed)
    assert found == Difference(frozenset([T0]), {T2: T}, frozenset())
    assert difference(owned, by_topic_id(owned), name_of, is_subscribed) == Difference(
        frozenset(), {}, frozenset()
    )


def test_unresolved_topic_id_is_left_out() -> None:
    found = difference({T0: T}, frozenset([(NEW_ID, 0), (T, 0)]), name_of, is_subscribed)
    assert found == Difference(frozenset(), {}, frozenset([NEW_ID]))


def test_unsubscribed_topic_is_revoked_before_the_next_assignment() -> None:
    found = difference({("u", 0): IDS["u"]}, frozenset([(IDS["u"], 0)]), name_of, is_subscribed)
    assert found.revoked == {("u", 0)}
    assert not found.added


def test_recreated_topic_is_revoked_and_added() -> None:
    """The partition with the old topic id is revoked, the partition with the new id is added.

    KIP-516 introduced topic ids.
    """
    found = difference({T0: NEW_ID}, frozenset([(T, 0)]), name_of, is_subscribed)
    assert found == Difference(frozenset([T0]), {T0: T}, frozenset())


def test_owned_partitions_are_grouped_by_topic() -> None:
    owned = by_topic_id({T1: T, T0: T, ("u", 3): IDS["u"]})
    shown = [(each.topic_id, each.partitions) for each in to_request(owned)]
    assert shown == [(T, [0, 1]), (IDS["u"], [3])]
    assert to_request(frozenset()) == []
