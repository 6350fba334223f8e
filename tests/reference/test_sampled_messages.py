"""Compares kproto with Kafka's classes on a few messages and mutations, drawn by a seed.

The exhaustive tests compare all messages, and many more mutations.
"""

from __future__ import annotations

import random
from itertools import islice

import pytest

from tools.reference import KafkaJavaProgram
from tools.reference.comparison import compare
from tools.reference.conformance import unexpected
from tools.reference.findings import fuzz
from tools.reference.hostile import Disagreement, judge, judged_pairs, mutations, seeds
from tools.reference.pairs import forms
from tools.reference.samples import SAMPLES

pytestmark = [pytest.mark.reference, pytest.mark.slow]

SEED = 20_261_122
FORMS = 15
MUTATIONS = 8_000
FEW_PAIRS, FEW_MUTATIONS = 60, 20


def test_some_messages_are_the_same_in_bytes_and_json(judges: dict[str, KafkaJavaProgram]) -> None:
    all_forms = forms()
    drawn = random.Random(SEED).sample(list(all_forms), FORMS)
    compared = {
        found.pair: found for form in drawn for found in compare(form, all_forms[form], judges)
    }
    assert [str(difference) for difference in unexpected(compared)] == []
    assert sum(found.instances for found in compared.values()) > FORMS * SAMPLES


def test_both_take_a_few_mutated_encodings_or_both_refuse_them(
    judges: dict[str, KafkaJavaProgram],
) -> None:
    for pair in random.Random(SEED).sample(judged_pairs(), FEW_PAIRS):
        mutated = islice(mutations(seeds(pair.form), random.Random(SEED)), FEW_MUTATIONS)
        found = list(judge(pair, mutated, judges[pair.release]))
        assert [str(case) for case in found if isinstance(case, Disagreement)] == []
        assert len(found) == FEW_MUTATIONS


@pytest.mark.thorough
def test_both_take_some_mutated_encodings_or_both_refuse_them(releases: tuple[str, ...]) -> None:
    found = fuzz(MUTATIONS, SEED)
    assert [str(disagreement) for disagreement in found.disagreements] == []
    assert found.cases.total() == MUTATIONS
