"""Tests that kproto's assignors compute Kafka's assignments for random groups.

Each group has several generations. If several members suit equally, kproto's sticky assignors take
them in input order, and Kafka's class takes them in HashMap order. So the test passes the members
to kproto in HashMap order. If one of several partitions must move back to its former owner, a
HashSet in Kafka's class decides which; in this case the test compares only the number of partitions
of each member. For some groups Kafka's class raises an exception, or assigns a partition to a
member that does not subscribe to its topic; the test skips these groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

from kproto.broker.coordinators import java_hash
from kproto.client.metadata.cluster import TopicPartition
from tools.reference import KafkaJavaProgram
from tools.reference.assignors import ASSIGNORS, AssignorInput, assigned, groups
from tools.reference.pairs import RELEASES

pytestmark = [pytest.mark.reference, pytest.mark.slow]

SEED = 23
GROUPS = 1_500


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_range_and_roundrobin_assignments_equal_those_of_kafka(
    judges: dict[str, KafkaJavaProgram], release: str, assignor: str
) -> None:
    wanted = list(groups(GROUPS, SEED, assignor))
    for group, theirs in zip(wanted, assigned(judges[release], assignor, wanted), strict=True):
        assert theirs is not None
        ours = ASSIGNORS[assignor](group.topics, group.members)
        assert _in_order(ours) == _in_order(theirs), group


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_assignments_equal_those_of_kafka(
    judges: dict[str, KafkaJavaProgram], release: str, assignor: str
) -> None:
    wanted = list(groups(GROUPS, SEED, assignor))
    seen: Counter[str] = Counter()
    for group, theirs in zip(wanted, assigned(judges[release], assignor, wanted), strict=True):
        members = {member_id: group.members[member_id] for member_id in _hashed(group.members)}
        ours = ASSIGNORS[assignor](group.topics, members)
        if theirs is None or _assigns_unsubscribed_topics(group, theirs):
            seen["Kafka's class is wrong"] += 1
            continue
        if _in_order(ours) == _in_order(theirs):
            seen["the same"] += 1
        else:
            assert _sizes(ours) == _sizes(theirs), group
            seen["another moves back"] += 1
    assert seen["another moves back"] < 0.002 * GROUPS
    assert seen["Kafka's class is wrong"] < 0.01 * GROUPS


def _hashed(names: Iterable[str]) -> list[str]:
    """Returns names in the order of a Java HashMap: by bucket, then by insertion."""

    found = list(names)
    buckets = 16
    while 4 * len(found) > 3 * buckets:
        buckets *= 2

    def bucket(name: str) -> int:
        code = java_hash(name) & 0xFFFF_FFFF
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(found, key=bucket)


def _in_order(
    found: Mapping[str, Iterable[TopicPartition]],
) -> dict[str, list[TopicPartition]]:
    return {member_id: sorted(tps) for member_id, tps in found.items()}


def _assigns_unsubscribed_topics(
    group: AssignorInput, found: Mapping[str, Iterable[TopicPartition]]
) -> bool:
    return any(
        topic not in group.members[member_id].topics
        for member_id, tps in found.items()
        for topic, _ in tps
    )


def _sizes(found: Mapping[str, Iterable[TopicPartition]]) -> list[int]:
    return sorted(len(list(tps)) for tps in found.values())
