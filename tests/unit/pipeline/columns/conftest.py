"""Defines the fixture `both_ways`: a test reads batches in lockstep, and then one by one.

Without the fixture, `field_reader` reads in lockstep only if there are enough batches.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kproto_pipeline.columns import field_reader


@pytest.fixture(params=["in lockstep", "one by one"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs the test twice: first, batches and headers are read in lockstep; then, one by one."""
    least = 1 if request.param == "in lockstep" else 1 << 30
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(field_reader, "_LEAST_RUNS", least)
        patch.setattr(field_reader, "_LEAST_ROWS", least)
        yield
