"""Tests that the authorizer decides as KRaft's StandardAuthorizer does, for random ACLs."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.reference import KafkaJavaProgram
from tools.reference.pairs import RELEASES
from tools.reference.rights import cases, decide, decided_here

pytestmark = [pytest.mark.reference, pytest.mark.slow]

SEED = 11


@pytest.mark.parametrize("release", RELEASES)
def test_rights_are_decided_as_kafka_decides_them(
    judges: dict[str, KafkaJavaProgram], release: str
) -> None:
    wanted = list(cases(3_000, SEED))
    letters: Counter[str] = Counter()
    for case, theirs in zip(wanted, decide(judges[release], wanted), strict=True):
        assert decided_here(case) == theirs, case
        letters.update(theirs)
    assert min(letters["Y"], letters["N"]) > 8_000, "both answers were asked for"
