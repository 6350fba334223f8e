"""Scales the fixed numbers of examples of property tests to the loaded Hypothesis profile."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["EVERYDAY_EXAMPLES", "examples"]

EVERYDAY_EXAMPLES = 25
"""Examples of a property test in CI's `make test`; a profile with fewer examples is quick."""

FEWEST = 5
"""The least scaled number, except for a test that asks for even fewer examples."""


def examples(number: int) -> int:
    """Returns `number`, or a proportionally lower number if the Hypothesis profile is quick.

    A test that sets `max_examples` itself ignores the profile. A test that sets `max_examples` to
    the returned number draws fewer examples in a quick run. In CI and in every longer run, the test
    draws exactly `number` examples.
    """
    scaled = number * settings().max_examples // EVERYDAY_EXAMPLES
    return min(number, max(scaled, FEWEST))
