"""No test of the client waits for ever or leaves a task behind."""

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
