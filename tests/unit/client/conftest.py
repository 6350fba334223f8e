"""Limits each async client test to two minutes, and fails a test that leaves a task running.

All client tests use `steady_time`, and compare each fetch plan with a plan of all partitions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kproto.client.fetch.fetch_plan import FetchPlanner
from kproto.client.fetch.fetcher import Fetcher
from tests.support.async_limits import limit_async_tests
from tests.support.checked_plans import checked_fetch, checked_plan
from tests.support.selection import below

HERE = Path(__file__).parent

LONGEST_S = 120.0
"""Time limit of one test in seconds. Tests take less than two; the limit ends a hanging test."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Limits each async test of this folder to `LONGEST_S`; a task that is left fails the test."""
    limit_async_tests(below(items, HERE), LONGEST_S)


@pytest.fixture(autouse=True)
def _steady(steady_time: None) -> None:
    """Requests `steady_time`: a pause of the machine then uses up no timeout."""


@pytest.fixture(autouse=True)
def _checked_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FetchPlanner, "plan", checked_plan(FetchPlanner.plan))
    monkeypatch.setattr(Fetcher, "_fetch_at", checked_fetch(Fetcher._fetch_at))
