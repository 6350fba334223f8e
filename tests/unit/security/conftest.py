"""Limits each async test of this folder to two minutes; fails if a test leaves tasks behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.async_limits import limit_async_tests
from tests.support.selection import below

HERE = Path(__file__).parent

LONGEST_S = 120.0
"""Time limit of one test in seconds. Tests take less than two; the limit ends a hanging test."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Limits the async tests of this folder to `LONGEST_S` seconds each."""
    limit_async_tests(below(items, HERE), LONGEST_S)
