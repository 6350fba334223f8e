"""What lies between what is held and what is assigned, by the ids of topics."""

from __future__ import annotations

from kproto.client.groups.consumer.reconciliation import (
    Difference,
    assigned_in,
    difference,
    in_request,
    told_of,
)
from kproto.wire.uuid import Uuid

from .walks import IDS, T0, T1, T2, answer_of

T = IDS["t"]
ANEW = Uuid(b"a" * 16)


def name_of(topic_id: Uuid) -> str | None:
    return next((name for name, its in IDS.items() if its == topic_id), None)


def wants(topic: str) -> bool:
    return topic != "u"


def test_nothing_said_is_no_change_and_nothing_assigned_is_one() -> None:
    assert assigned_in(answer_of(1)) is None
    assert assigned_in(answer_of(1, [])) == frozenset()
    told = assigned_in(answer_of(1, [T0, T2, ("u", 1)]))
    assert told == frozenset([(T, 0), (T, 2), (IDS["u"], 1)])


def test_what_goes_and_what_comes() -> None:
    held = {T0: T, T1: T}
    found = difference(held, frozenset([(T, 1), (T, 2)]), name_of, wants)
    assert found == Difference(frozenset([T0]), {T2: T}, frozenset())
    assert difference(held, told_of(held), name_of, wants) == Difference(
        frozenset(), {}, frozenset()
    )


def test_a_topic_without_a_name_is_left_out() -> None:
    found = difference({T0: T}, frozenset([(ANEW, 0), (T, 0)]), name_of, wants)
    assert found == Difference(frozenset(), {}, frozenset([ANEW]))


def test_what_is_not_subscribed_to_is_given_up_before_the_broker_says_so() -> None:
    found = difference({("u", 0): IDS["u"]}, frozenset([(IDS["u"], 0)]), name_of, wants)
    assert found.revoked == {("u", 0)}
    assert not found.added


def test_a_topic_made_anew_is_another_one() -> None:
    """KIP-516: the old one is given up, and the new one begun."""
    found = difference({T0: ANEW}, frozenset([(T, 0)]), name_of, wants)
    assert found == Difference(frozenset([T0]), {T0: T}, frozenset())


def test_partitions_are_told_by_topic() -> None:
    told = told_of({T1: T, T0: T, ("u", 3): IDS["u"]})
    shown = [(each.topic_id, each.partitions) for each in in_request(told)]
    assert shown == [(T, [0, 1]), (IDS["u"], [3])]
    assert in_request(frozenset()) == []
