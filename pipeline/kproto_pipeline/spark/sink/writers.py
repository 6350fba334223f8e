"""The sink as Spark takes it: rows of each task, and what the driver is told of them.

Owns what Spark calls on either side. At least once: a task that is done again writes its rows
again. The message of a task names its batch of the stream, where transactions would end.
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
except ImportError:  # PySpark 4.0 hands over rows
    DataSourceStreamArrowWriter = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..options.option_table import WriteOptions

__all__ = ["KprotoStreamWriter", "KprotoWriter", "TaskCommitMessage"]

logger = logging.getLogger("kproto.pipeline")

#: How many rows become one Arrow batch where Spark hands over rows, and how many bytes of them:
#: what is made of a batch is bounded as if Spark had made it.
_ROWS_TOGETHER: Final = 10_000
_BYTES_TOGETHER: Final = 8 << 20


@dataclass
class TaskCommitMessage(WriterCommitMessage):
    """What a task has written: how many rows, for which batch of which query; all acknowledged."""

    rows: int
    query_id: str | None = None
    batch_id: str | None = None


class _Writing(WorkerSocketTuning):
    """What both kinds of writers share."""

    def __init__(self, options: WriteOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def write(self, iterator: Iterator[Any]) -> TaskCommitMessage:
        """Write the rows of a task; they are acknowledged when it returns.

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


class KprotoWriter(_Writing, DataSourceArrowWriter):
    """Writes the rows of a batch."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All tasks are done, and all their rows acknowledged."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """A task has failed; what was acknowledged stays, as with the JVM connector."""
        logger.warning("the write failed: rows of other tasks are written, and stay")


class _RowsToArrow(_Writing):
    """Rows of PySpark 4.0 as Arrow batches."""

    def _arrow(self, iterator: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        waiting: list[Any] = []
        size = 0
        for row in iterator:
            waiting.append(row)
            size += _size(row)
            if len(waiting) == _ROWS_TOGETHER or size >= _BYTES_TOGETHER:
                yield self._batch(waiting)
                waiting, size = [], 0
        if waiting:
            yield self._batch(waiting)

    def _batch(self, rows: list[Any]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True)
        arrays = [
            pa.array([_plain(value) for value in column], type=field.type)
            for column, field in zip(columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _size(value: Any) -> int:
    """About how many bytes a value takes: those of texts and byte strings, however deep."""
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if isinstance(value, dict):
        return _size(tuple(value.items()))
    if isinstance(value, tuple | list):
        return sum(map(_size, value))
    return 0


def _plain(value: Any) -> Any:
    """A value of a row as Arrow takes it: rows within it by their names.

    A timestamp of Spark is a local time without its zone there, as `collect` gives it.
    """
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.astimezone(UTC)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, tuple) and hasattr(value, "asDict"):
        return {name: _plain(each) for name, each in value.asDict().items()}
    return value


class _StreamCommits:
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """All tasks of the micro-batch are done, and all their rows acknowledged."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """A task has failed; Spark does the micro-batch again."""
        logger.warning("micro-batch %d failed: rows of other tasks are written, and stay", batchId)


if DataSourceStreamArrowWriter is not None:

    class KprotoStreamWriter(_StreamCommits, _Writing, DataSourceStreamArrowWriter):
        """Writes the rows of each micro-batch."""

else:

    class KprotoStreamWriter(_StreamCommits, _RowsToArrow, DataSourceStreamWriter):  # type: ignore[no-redef]
        """Writes the rows of each micro-batch."""
