"""Tests that the broker's assignors compute Kafka's assignments for random groups."""

from __future__ import annotations

from collections import Counter

import pytest

from kproto.broker.groups.consumer.assignors import Assignment
from tests.support.availability import not_available
from tests.support.selection import rest_slow
from tools.reference import ReferenceUnavailableError
from tools.reference.coordinator_assignors import assigned, decided, decisions, known_class_path

pytestmark = [pytest.mark.reference, pytest.mark.slow]

SEED = 848


@pytest.mark.parametrize("groups", rest_slow([500, 3_000], 0, 1))
def test_the_coordinator_decides_as_kafkas(groups: int) -> None:
    try:
        known_class_path()
    except ReferenceUnavailableError as error:
        not_available("Kafka's own classes", error)
    wanted = list(decisions(groups, SEED))
    seen: Counter[tuple[str, bool]] = Counter()
    for decision, theirs in zip(wanted, decided(wanted), strict=True):
        assert some(assigned(decision)) == theirs, decision
        seen[decision.assignor, decision.group.is_homogeneous] += 1
    for name in ("uniform", "range", "simple"):
        assert all(seen[name, alike] > groups // 10 for alike in (True, False))


def some(found: Assignment) -> Assignment:
    """Returns the assignment without the members that have no partitions."""
    return {it: its for it, its in found.items() if its}
