"""Tests the tracing example with OpenTelemetry's SDK: producer and consumer share a trace."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.availability import not_available
from tests.support.embedded import threaded_broker
from tests.support.environment import ROOT
from tools.setup.peers import PeersError, opentelemetry_python

pytestmark = pytest.mark.peers

EXAMPLE = ROOT / "examples" / "opentelemetry_tracing.py"
SCRIPT = Path(__file__).parent / "peer_scripts" / "traces_with_opentelemetry.py"
TIMEOUT_S = 60


@pytest.fixture(scope="session")
def python() -> Path:
    try:
        return opentelemetry_python()
    except PeersError as error:
        not_available("OpenTelemetry's SDK", error)


def run(*command: str | Path) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_one_trace_from_who_sends_to_who_reads(python: Path) -> None:
    with threaded_broker() as broker:
        broker.call(lambda it: it.create_topic("t", partitions=1))
        told = json.loads(run(python, SCRIPT, EXAMPLE, broker.bootstrap))
    spans: list[dict[str, Any]] = told["spans"]

    def named(name: str) -> list[dict[str, Any]]:
        return [span for span in spans if span["name"] == name]

    (work,) = named("work")
    sent, received = named("send t"), named("receive t")
    assert {span["trace"] for span in spans} == {work["trace"]}
    assert [span["parent"] for span in sent] == [work["span"]] * 4
    assert {span["kind"] for span in sent} == {"PRODUCER"}
    assert [span["attributes"]["messaging.kafka.offset"] for span in sent] == [1, 2, 3, 4]
    assert [span["parent"] for span in received] == [span["span"] for span in sent]
    assert {span["kind"] for span in received} == {"CONSUMER"}
    assert [span["attributes"]["messaging.kafka.offset"] for span in received] == [1, 2, 3, 4]
    assert {span["status"] for span in sent + received} == {"UNSET"}
    (failed,) = named("send none")
    assert (failed["status"], failed["parent"]) == ("ERROR", work["span"])
    (processed,) = named("processed")
    assert processed["parent"] == sent[0]["span"]
    assert told["headers"] == [["own"], ["own", "traceparent"], *[["traceparent"]] * 3]


def test_the_program_prints_its_spans(python: Path) -> None:
    with threaded_broker() as broker:
        broker.call(lambda it: it.create_topic("orders", partitions=1))
        printed = run(python, EXAMPLE, broker.bootstrap, "orders")
    for name in ("an order comes in", "send orders", "receive orders", "the order is packed"):
        assert f'"name": "{name}"' in printed
