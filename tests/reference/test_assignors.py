"""Random groups through several generations: our assignors decide what Kafka's classes decide.

Sticky members that are as good as each other are taken in the order in which they are given.
Kafka's class has them in that of a HashMap, so that they are given in that order here. Which of
some partitions moves back is chosen by a HashSet there: then sizes must be equal. Kafka's class
now and then gives a partition back to a member of an older generation that does not want its topic
any more; ours does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

from kproto.broker.coordinators import java_hash
from kproto.client.metadata.cluster import TopicPartition
from tools.reference import Reference
from tools.reference.assignors import ASSIGNORS, Group, assigned, groups
from tools.reference.pairs import RELEASES

pytestmark = [pytest.mark.reference, pytest.mark.slow]

SEED = 23
GROUPS = 1_500


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_ranges_and_turns_are_those_of_kafka(
    judges: dict[str, Reference], release: str, assignor: str
) -> None:
    wanted = list(groups(GROUPS, SEED, assignor))
    for group, theirs in zip(wanted, assigned(judges[release], assignor, wanted), strict=True):
        assert theirs is not None
        ours = ASSIGNORS[assignor](group.topics, group.members)
        assert _in_order(ours) == _in_order(theirs), group


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_shares_are_those_of_kafka(
    judges: dict[str, Reference], release: str, assignor: str
) -> None:
    wanted = list(groups(GROUPS, SEED, assignor))
    seen: Counter[str] = Counter()
    for group, theirs in zip(wanted, assigned(judges[release], assignor, wanted), strict=True):
        members = {member_id: group.members[member_id] for member_id in _hashed(group.members)}
        ours = ASSIGNORS[assignor](group.topics, members)
        if theirs is None or _gives_what_nobody_wants(group, theirs):
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
    """In the order in which a HashMap of Java's gives them: by bucket, then as they were put in."""

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
    return {member_id: sorted(places) for member_id, places in found.items()}


def _gives_what_nobody_wants(group: Group, found: Mapping[str, Iterable[TopicPartition]]) -> bool:
    return any(
        topic not in group.members[member_id].topics
        for member_id, places in found.items()
        for topic, _ in places
    )


def _sizes(found: Mapping[str, Iterable[TopicPartition]]) -> list[int]:
    return sorted(len(list(places)) for places in found.values())
