"""Compares a few messages and mutations, drawn by a seed; the exhaustive run has all."""

from __future__ import annotations

import random

import pytest

from tools.reference import Reference
from tools.reference.comparison import compare
from tools.reference.conformance import unexpected
from tools.reference.findings import fuzz
from tools.reference.pairs import forms
from tools.reference.samples import SAMPLES

pytestmark = [pytest.mark.reference, pytest.mark.slow]

SEED = 20_261_122
FORMS = 15
MUTATIONS = 8_000


def test_some_messages_are_the_same_in_bytes_and_json(judges: dict[str, Reference]) -> None:
    all_forms = forms()
    drawn = random.Random(SEED).sample(list(all_forms), FORMS)
    compared = {
        found.pair: found for form in drawn for found in compare(form, all_forms[form], judges)
    }
    assert [str(difference) for difference in unexpected(compared)] == []
    assert sum(found.instances for found in compared.values()) > FORMS * SAMPLES


def test_both_take_some_mutated_encodings_or_both_refuse_them(releases: tuple[str, ...]) -> None:
    found = fuzz(MUTATIONS, SEED)
    assert [str(disagreement) for disagreement in found.disagreements] == []
    assert found.cases.total() == MUTATIONS
