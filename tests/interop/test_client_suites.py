"""Runs kafka-python's integration tests on the embedded broker, by the pytest plugin."""

from __future__ import annotations

import pytest

from tests.support.availability import not_available
from tools.client_suites.kafka_python import run_suite
from tools.setup.environments import InstallError
from tools.setup.programs import ProgramError

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.exhaustive]

#: A test that skips itself: it needs a broker before 0.10.1.
SKIPPED = ["test_consumer_integration::test_kafka_consumer_offsets_for_time_old"]
#: The number of tests of kafka-python that pass on the embedded broker and on Kafka 4.4.0.
PASSED = 55


def test_tests_of_kafka_python_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KPROTO_BOOTSTRAP", raising=False)
    try:
        results = run_suite()
    except (InstallError, ProgramError) as error:
        not_available("kafka-python's tests", error)
    assert {name: it.reason for name, it in results.items() if it.outcome == "failed"} == {}
    assert [name for name, it in results.items() if it.outcome == "skipped"] == SKIPPED
    assert sum(it.outcome == "passed" for it in results.values()) == PASSED
