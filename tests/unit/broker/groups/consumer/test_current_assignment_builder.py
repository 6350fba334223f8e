"""Tests that an assignment lists its topics in the order of Kafka's heartbeat responses."""

from __future__ import annotations

from kproto.broker.groups.consumer.consumer_group_member import ConsumerGroupMember, MemberState
from kproto.broker.groups.consumer.current_assignment_builder import reconcile
from kproto.broker.groups.java_order import bucket, grown_size, uuid_hash
from kproto.wire.uuid import Uuid

#: Topic ids that Kafka 4.4.0 puts into one hash bucket. LATER is added later, and written first.
FORMER = Uuid.parse("JKle41xoSXW68BR6Jn7oOg")
LATER = Uuid.parse("tEVb8VXXSkewIM9SY_Sxew")


def test_new_topic_precedes_the_one_in_its_hash_bucket() -> None:
    assert len({bucket(uuid_hash(it), grown_size(2)) for it in (FORMER, LATER)}) == 1
    member = ConsumerGroupMember(
        "a", epoch=2, state=MemberState.UNRELEASED_PARTITIONS, assigned={FORMER: {0: 2}}
    )
    target = {FORMER: frozenset([0]), LATER: frozenset([5])}
    found = reconcile(
        member, target, 3, subscribed=target, unreleased=(), owned=None, has_changed=False
    )
    assert list(found.assigned.items()) == [(LATER, {5: 3}), (FORMER, {0: 2})]
