"""Runs `python -m tools.spark_round_trip` briefly: random events through sink and source."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import Topics
from tools.spark_round_trip.compare import MODES, round_trip, write_events

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.exhaustive,
    pytest.mark.filterwarnings("ignore:::pyspark"),
]

ROWS = 20_000


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    seed, folder = secrets.randbits(32), tmp_path_factory.mktemp("events")
    write_events(folder, ROWS, seed)
    return seed, folder


@pytest.mark.parametrize("mode", MODES)
def test_random_events_come_back_as_they_were(
    spark: Any, topics: Topics, events: tuple[int, Path], mode: str
) -> None:
    seed, folder = events
    result = round_trip(spark, topics.bootstrap, folder, mode)
    assert result.is_right, (seed, result)
    assert result.sent == ROWS
