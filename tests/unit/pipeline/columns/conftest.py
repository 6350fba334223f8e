"""Defines the fixture `both_ways`, which runs a test with each way of reading batches.

`field_reader` reads many batches in lockstep: each step reads the next record of every batch. It
reads a few batches one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kproto_pipeline.columns import field_reader


@pytest.fixture(params=["in lockstep", "one by one"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs the test twice: all batches and headers are read in lockstep, or all one by one."""
    least = 1 if request.param == "in lockstep" else 1 << 30
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(field_reader, "_LEAST_RUNS", least)
        patch.setattr(field_reader, "_LEAST_ROWS", least)
        yield
