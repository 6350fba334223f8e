"""Runs tests by the pytest plugin on real brokers, which `KPROTO_BOOTSTRAP` names."""

from __future__ import annotations

import pytest

from tests.support.brokers import RunningKafka
from tests.unit.pytest_plugin.conftest import RunTests, run_tests
from tests.unit.pytest_plugin.test_real_cluster import REASONS, SKIPPED, SUITE

pytestmark = pytest.mark.exhaustive

__all__ = ["run_tests"]

#: A broker of the newest release has transactions: the last test of `SKIPPED` passes on it.
SKIPPED_HERE = len(REASONS) - 1


def test_suite_of_the_plugin_passes_on_a_real_broker(
    kafka: RunningKafka, run_tests: RunTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPROTO_BOOTSTRAP", kafka.bootstrap)
    run_tests(SUITE).assert_outcomes(passed=2)
    run_tests(SUITE).assert_outcomes(passed=2)  # the topics of the first run are deleted


def test_helpers_of_the_embedded_broker_skip_on_a_real_broker(
    newest_kafka: RunningKafka, run_tests: RunTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPROTO_BOOTSTRAP", newest_kafka.bootstrap)
    run_tests(SKIPPED).assert_outcomes(skipped=SKIPPED_HERE, passed=1)
