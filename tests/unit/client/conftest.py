"""No test of the client waits for ever, leaves a task behind or fails as its machine paused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.async_limits import limit_async_tests
from tests.support.selection import below

HERE = Path(__file__).parent

LONGEST_S = 120.0
"""Each takes less than two seconds; this only ends what would never end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Limit the tests of this folder."""
    limit_async_tests(below(items, HERE), LONGEST_S)


@pytest.fixture(autouse=True)
def _steady(steady_time: None) -> None:
    """No pause of the machine uses up the time that a test, or its client, gives."""
