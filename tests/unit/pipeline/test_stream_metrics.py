"""Tests the metrics of streaming queries, and their text for Prometheus."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from kproto_pipeline.metrics import StreamMetrics


def progress(rows: int, *offsets: tuple[str | None, str | None], name: str | None = "q") -> Any:
    sources = [SimpleNamespace(endOffset=end, latestOffset=latest) for end, latest in offsets]
    return SimpleNamespace(
        progress=SimpleNamespace(
            id="id",
            runId="run",
            name=name,
            sources=sources,
            numInputRows=rows,
            batchDuration=1500,
            inputRowsPerSecond=4.0,
            processedRowsPerSecond=2.0,
        )
    )


def running(name: str | None = "q") -> Any:
    metrics: Any = StreamMetrics()
    metrics.onQueryStarted(SimpleNamespace(id="id", runId="run", name=name))
    return metrics


def test_lag_is_latest_offset_minus_end_offset() -> None:
    metrics = running()
    metrics.onQueryProgress(progress(5, ('{"t": {"0": 3}}', '{"t": {"0": 9, "10": 4}}')))
    metrics.onQueryProgress(progress(2, ('{"t": {"0": 7}}', '{"t": {"0": 9, "10": 4}}')))
    assert metrics.snapshot() == {
        "q": {
            "running": 1,
            "rows_total": 7,
            "batches_total": 2,
            "batch_seconds": 1.5,
            "input_rows_per_second": 4.0,
            "processed_rows_per_second": 2.0,
            "offsets_behind_latest": {"t": {"0": 2, "10": 4}},
        }
    }
    json.dumps(metrics.snapshot())


@pytest.mark.parametrize("offsets", [("5", "7"), (None, None), ('{"t": {"0": 3}}', None)])
def test_source_without_latest_offsets_of_topics_has_no_lag(
    offsets: tuple[str | None, str | None],
) -> None:
    metrics = running()
    metrics.onQueryProgress(progress(1, offsets))
    assert "offsets_behind_latest" not in metrics.snapshot()["q"]


def test_query_without_a_name_has_its_id() -> None:
    metrics = running(None)
    metrics.onQueryProgress(progress(1, name=None))
    assert list(metrics.snapshot()) == ["id"]


def test_ended_query_has_no_lag_and_counts_its_failure() -> None:
    metrics = running()
    metrics.onQueryProgress(progress(5, ('{"t": {"0": 3}}', '{"t": {"0": 9}}')))
    metrics.onQueryTerminated(SimpleNamespace(id="id", runId="run", exception="it failed"))
    found = metrics.snapshot()["q"]
    assert (found["running"], found["failures_total"], found["rows_total"]) == (0, 1, 5)
    assert "offsets_behind_latest" not in found


def test_prometheus_text_names_query_topic_and_partition() -> None:
    metrics = running('a "q"')
    metrics.onQueryProgress(progress(5, ('{"t": {"0": 3}}', '{"t": {"0": 9}}'), name='a "q"'))
    lines = metrics.prometheus().splitlines()
    assert "# TYPE kproto_stream_offsets_behind_latest gauge" in lines
    assert (
        r'kproto_stream_offsets_behind_latest{query="a \"q\"",topic="t",partition="0"} 6' in lines
    )
    assert r'kproto_stream_rows_total{query="a \"q\""} 5' in lines
    assert not [line for line in lines if "failures" in line]
