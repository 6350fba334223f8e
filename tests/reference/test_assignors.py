"""Random groups through several generations: our assignors decide what Kafka's classes decide.

Where sticky members are as good as each other, the order of Java's HashMap chooses between them.
Then equal sizes, as many partitions that stay where they are, and as many in the right rack count.
Kafka's class now and then gives a partition back to a member of an older generation that does not
want its topic any more; ours does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

from kproto.client.cluster.metadata import TopicPartition
from kproto.client.groups.assignors.sticky_data import owned_cooperatively, owned_eagerly
from tools.reference import Reference
from tools.reference.assignors import ASSIGNORS, Group, assigned, groups
from tools.reference.pairs import RELEASES

pytestmark = [pytest.mark.reference, pytest.mark.slow]

SEED = 23
GROUPS = 3_000


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
        ours = ASSIGNORS[assignor](group.topics, group.members)
        if theirs is None or _gives_what_nobody_wants(group, theirs):
            seen["Kafka's class is wrong"] += 1
            continue
        if _in_order(ours) == _in_order(theirs):
            seen["the same"] += 1
        else:
            assert _worth(group, assignor, ours) == _worth(group, assignor, theirs), group
    assert seen["the same"] > 0.98 * GROUPS
    assert seen["Kafka's class is wrong"] < 0.01 * GROUPS


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


def _worth(
    group: Group, assignor: str, found: Mapping[str, Iterable[TopicPartition]]
) -> tuple[list[int], int, int]:
    """The sizes in order, how many partitions stay, and how many are in the member's rack.

    Of cooperative members the sum of sizes: who has to wait for a partition is chosen, too.
    """
    owned_by = owned_eagerly if assignor == "sticky" else owned_cooperatively
    sizes = []
    stay = near = 0
    for member_id, places in found.items():
        member = group.members[member_id]
        its = set(places)
        sizes.append(len(its))
        stay += len(its.intersection(owned_by(member).partitions))
        near += sum(member.rack in group.topics[topic][partition] for topic, partition in its)
    return sorted(sizes) if assignor == "sticky" else [sum(sizes)], stay, near
