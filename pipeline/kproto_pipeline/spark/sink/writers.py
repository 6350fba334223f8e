"""Spark's writers for batches and streams: tasks write rows, the driver receives commit messages.

Delivery is at least once: if Spark retries a task, the task writes all its rows again. In a stream,
the commit message of a task has the ids of the query and the micro-batch.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from ..worker_sockets import WorkerSocketTuning
from .task_writer import write_rows

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # PySpark 4.0 passes rows
    DataSourceStreamArrowWriter = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..options.option_table import WriteOptions

__all__ = ["KprotoStreamWriter", "KprotoWriter", "TaskCommitMessage"]

logger = logging.getLogger("kproto.pipeline")

#: The maximum number of rows, and of bytes, of an Arrow batch if Spark passes rows.
_BATCH_ROWS: Final = 10_000
_BATCH_BYTES: Final = 8 << 20


@dataclass
class TaskCommitMessage(WriterCommitMessage):
    """Holds the number of rows that a task wrote; all of them are acknowledged.

    `query_id` and `batch_id` name the query and the micro-batch of a stream; None in a batch query.
    """

    rows: int
    query_id: str | None = None
    batch_id: str | None = None


class _ArrowWriter(WorkerSocketTuning):
    """The base of all writers: writes Arrow batches in a task."""

    def __init__(self, options: WriteOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def write(self, iterator: Iterator[Any]) -> TaskCommitMessage:
        """Writes the rows of a task; returns when all are acknowledged.

        Raises:
            RowError: a row cannot be written, or was not acknowledged.
        """
        rows = write_rows(self._options, self._arrow(iterator))
        context = TaskContext.get()
        if context is None:
            return TaskCommitMessage(rows)
        return TaskCommitMessage(
            rows,
            context.getLocalProperty("sql.streaming.queryId"),
            context.getLocalProperty("streaming.sql.batchId"),
        )

    def _arrow(self, iterator: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        return iterator


class KprotoWriter(_ArrowWriter, DataSourceArrowWriter):
    """Writes the rows of a batch."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Does nothing: all rows of all tasks are acknowledged already."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Warns that acknowledged rows stay in the topic, as they do with the JVM connector."""
        logger.warning("the write failed: rows that were acknowledged stay in the topic")


class _RowWriter(_ArrowWriter):
    """Base of the stream writers in PySpark 4.0: converts the rows from Spark to Arrow batches."""

    def _arrow(self, iterator: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        waiting: list[Any] = []
        size = 0
        for row in iterator:
            waiting.append(row)
            size += _size(row)
            if len(waiting) == _BATCH_ROWS or size >= _BATCH_BYTES:
                yield self._batch(waiting)
                waiting, size = [], 0
        if waiting:
            yield self._batch(waiting)

    def _batch(self, rows: list[Any]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True)
        arrays = [
            pa.array([_arrow_value(value) for value in column], type=field.type)
            for column, field in zip(columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _size(value: Any) -> int:
    """Returns the total length of the strings and byte strings in a value, at any depth."""
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if isinstance(value, dict):
        return _size(tuple(value.items()))
    if isinstance(value, tuple | list):
        return sum(map(_size, value))
    return 0


def _arrow_value(value: Any) -> Any:
    """Converts a value of a row for Arrow; nested rows become dicts.

    Spark passes a timestamp as a local datetime without a time zone; it becomes UTC.
    """
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.astimezone(UTC)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [_arrow_value(each) for each in value]
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, tuple) and hasattr(value, "asDict"):
        return {name: _arrow_value(each) for name, each in value.asDict().items()}
    return value


class _StreamCommits:
    """The methods of stream writers that the driver calls after a micro-batch."""

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Does nothing: all rows of the micro-batch are acknowledged already."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Warns that acknowledged rows stay in the topic; a restarted query writes them again."""
        logger.warning(
            "micro-batch %d failed: rows that were acknowledged stay in the topic", batchId
        )


if DataSourceStreamArrowWriter is not None:

    class KprotoStreamWriter(_StreamCommits, _ArrowWriter, DataSourceStreamArrowWriter):
        """Writes the rows of each micro-batch."""

else:

    class KprotoStreamWriter(_StreamCommits, _RowWriter, DataSourceStreamWriter):  # type: ignore[no-redef]
        """Writes the rows of each micro-batch."""
