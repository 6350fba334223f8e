"""Metrics of streaming queries: lag per partition, rows and durations, also as Prometheus text.

PySpark lets a source in Python report no metrics of its own, but the progress of a query has the
offsets of each source. `StreamMetrics` listens to the progress of all queries of a session.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

__all__ = ["StreamMetrics"]

#: The metrics by name, with the type and the meaning that Prometheus shows.
_METRICS = {
    "running": ("gauge", "1 while the query runs"),
    "failures_total": ("counter", "runs of the query that ended with an error"),
    "rows_total": ("counter", "rows that the query has read since the listener was added"),
    "batches_total": ("counter", "finished micro-batches since the listener was added"),
    "batch_seconds": ("gauge", "duration of the last micro-batch"),
    "input_rows_per_second": ("gauge", "rate at which rows arrived, of the last micro-batch"),
    "processed_rows_per_second": ("gauge", "rate at which rows were read, of the last micro-batch"),
    "offsets_behind_latest": ("gauge", "latest offset minus the end of the last micro-batch"),
}

_LAG = "offsets_behind_latest"


@dataclass(slots=True)
class _Query:
    """The metrics of a query, and its lag by topic and partition."""

    values: dict[str, float] = field(default_factory=dict)
    lag: dict[tuple[str, int], int] = field(default_factory=dict)


class StreamMetrics(StreamingQueryListener):
    """Metrics of the queries of a session: `spark.streams.addListener(StreamMetrics())`.

    A query is named by its name or, without one, by its id. The lag needs PySpark 4.2 or later, and
    is known for sources whose offsets are those of topics: `format("kproto")` and
    `format("kafka")`.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._queries: dict[str, _Query] = {}
        #: The names of the running queries, by run.
        self._names: dict[str, str] = {}

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """Returns the metrics of each query by its name, as data that `json.dumps` accepts.

        The metric `offsets_behind_latest` is a dict of topics, each with its partitions.
        """
        found: dict[str, dict[str, Any]] = {}
        with self._lock:
            for name, query in self._queries.items():
                topics: dict[str, dict[str, int]] = {}
                for (topic, partition), lag in sorted(query.lag.items()):
                    topics.setdefault(topic, {})[str(partition)] = lag
                found[name] = {**query.values, **({_LAG: topics} if topics else {})}
        return found

    def prometheus(self) -> str:
        """Returns the metrics in Prometheus' text format; names begin with `kproto_stream_`."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        queries = self.snapshot()
        for metric, (kind, meaning) in _METRICS.items():
            samples = [
                sample
                for name, values in queries.items()
                if metric in values
                for sample in _samples(metric, name, values[metric])
            ]
            if samples:
                yield f"# HELP kproto_stream_{metric} {meaning}"
                yield f"# TYPE kproto_stream_{metric} {kind}"
                yield from samples

    # Called by Spark

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Marks the query as running."""
        with self._lock:
            name = self._names[str(event.runId)] = event.name or str(event.id)
            self._queries.setdefault(name, _Query()).values["running"] = 1

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Takes the numbers of a finished micro-batch."""
        progress = event.progress
        lag = {
            part: behind
            for source in progress.sources
            for part, behind in _lag(source.endOffset, source.latestOffset).items()
        }
        with self._lock:
            name = progress.name or str(progress.id)
            query = self._queries.setdefault(name, _Query({"running": 1}))
            values = query.values
            values["rows_total"] = values.get("rows_total", 0) + progress.numInputRows
            values["batches_total"] = values.get("batches_total", 0) + 1
            values["batch_seconds"] = progress.batchDuration / 1000
            values["input_rows_per_second"] = progress.inputRowsPerSecond
            values["processed_rows_per_second"] = progress.processedRowsPerSecond
            query.lag = lag

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Does nothing: the metrics stay those of the last micro-batch."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Removes the lag of the query, and counts its failure."""
        with self._lock:
            name = self._names.pop(str(event.runId), str(event.id))
            query = self._queries.setdefault(name, _Query())
            query.lag = {}
            query.values["running"] = 0
            failed = event.exception is not None
            query.values["failures_total"] = query.values.get("failures_total", 0) + failed


def _lag(end: str | None, latest: str | None) -> dict[tuple[str, int], int]:
    """Returns the lag of each partition; an empty dict if the offsets are not those of topics."""
    ends, latests = _offsets(end), _offsets(latest)
    return {part: max(0, offset - ends.get(part, 0)) for part, offset in latests.items()}


def _offsets(text: str | None) -> dict[tuple[str, int], int]:
    try:
        topics = json.loads(text or "{}")
        return {
            (topic, int(partition)): int(offset)
            for topic, partitions in topics.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        return {}  # the offset of another source


def _samples(metric: str, query: str, value: Any) -> Iterator[str]:
    """Yields the samples of one metric of one query in Prometheus' text format."""
    labels = f'query="{_escaped(query)}"'
    if not isinstance(value, dict):
        yield f"kproto_stream_{metric}{{{labels}}} {value}"
        return
    for topic, partitions in value.items():
        for partition, lag in partitions.items():
            place = f'topic="{_escaped(topic)}",partition="{partition}"'
            yield f"kproto_stream_{metric}{{{labels},{place}}} {lag}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
