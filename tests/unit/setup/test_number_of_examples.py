"""Tests `examples`, which adapts the `max_examples` of a test to the Hypothesis profile."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.support.examples import examples


@pytest.mark.parametrize(
    ("of_the_profile", "number", "expected"),
    [(10, 200, 80), (10, 6, 5), (10, 3, 3), (25, 200, 200), (100, 200, 200)],
)
def test_number_is_smaller_only_in_a_quick_profile(
    of_the_profile: int, number: int, expected: int
) -> None:
    before = settings.get_current_profile_name()
    settings.register_profile("of this test", max_examples=of_the_profile)
    settings.load_profile("of this test")
    try:
        assert examples(number) == expected
    finally:
        settings.load_profile(before)
