"""Tests that lost, duplicate and unordered records are counted separately."""

from __future__ import annotations

import pytest

from tools.spark_kill_test.counting import Count, counted


@pytest.mark.parametrize(
    ("lanes", "found"),
    [
        ([[0, 2, 4], [1, 3, 5]], Count(6, 0, 0, 0, 0)),
        ([[0, 4], [1, 3, 5]], Count(5, 1, 0, 0, 0)),
        ([[0, 2, 0, 2, 4], [1, 3, 5]], Count(8, 0, 2, 0, 0)),
        ([[0, 4, 2], [1, 3, 5]], Count(6, 0, 0, 1, 0)),
        ([[0, 2, 4, 6], [1, 3, 5]], Count(7, 0, 0, 0, 1)),
        ([], Count(0, 6, 0, 0, 0)),
    ],
)
def test_lost_doubled_and_unordered_records_are_counted(
    lanes: list[list[int]], found: Count
) -> None:
    assert counted(range(6), lanes, lane_count=2) == found
    assert found.is_complete == (not (found.lost or found.disordered or found.foreign))
