"""Spark's writers for batches and streams: tasks write rows, the driver receives commit messages.

By default delivery is at least once: if Spark retries a task, the task writes all its rows again. A
stream with `exactlyOnce` writes the rows of each task in a transaction, which the driver commits.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from ..client_pool import with_client
from ..worker_sockets import WorkerSocketTuning
from .batch_commit import abort_transactions, commit_micro_batch
from .errors import ExactlyOnceError
from .micro_batch import MicroBatch
from .task_commit_message import TaskCommitMessage
from .task_writer import write_rows
from .transactional_task_producer import TransactionalTaskProducer

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # PySpark 4.0 passes rows
    DataSourceStreamArrowWriter = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..options.option_table import WriteOptions

__all__ = ["KprotoStreamWriter", "KprotoWriter"]

logger = logging.getLogger("kproto.pipeline")

#: The property of a task that has the run id of its streaming query.
_RUN_ID: Final = "spark.jobGroup.id"

#: The maximum number of rows, and of bytes, of an Arrow batch if Spark passes rows.
_BATCH_ROWS: Final = 10_000
_BATCH_BYTES: Final = 8 << 20


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
        context = TaskContext.get()
        if context is None:
            return TaskCommitMessage(write_rows(self._options, self._arrow(iterator)))
        query_id = context.getLocalProperty("sql.streaming.queryId")
        batch_id = context.getLocalProperty("streaming.sql.batchId")
        task = context.partitionId()
        if not self._options.exactly_once:
            rows = write_rows(self._options, self._arrow(iterator))
            return TaskCommitMessage(rows, query_id, batch_id, task)
        batch = self._micro_batch(query_id, batch_id)
        producer = TransactionalTaskProducer(self._options, batch, task)
        rows = write_rows(self._options, self._arrow(iterator), producer)
        return TaskCommitMessage(
            rows,
            query_id,
            batch_id,
            task,
            producer.topic,
            producer.transaction,
            run_id=context.getLocalProperty(_RUN_ID),
        )

    def _micro_batch(self, query_id: str | None, batch_id: str | int | None) -> MicroBatch:
        if query_id is None or batch_id is None:
            raise ExactlyOnceError("Spark has passed no id of a streaming query to the task")
        return MicroBatch(self._options.transactional_id_prefix, query_id, int(batch_id))

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

    def write(self, iterator: Iterator[Any]) -> TaskCommitMessage:
        """Writes the rows of a task; see `_ArrowWriter.write`.

        `iterator` converts timestamps to local datetimes without a zone and without `fold`, so both
        hours at the end of daylight saving time would be equal. Therefore UTC is the local time
        until the task ends.
        """
        if not any(pa.types.is_timestamp(field.type) for field in self._schema):
            return super().write(iterator)
        with _utc_as_local_time():
            return super().write(iterator)

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


@contextmanager
def _utc_as_local_time() -> Iterator[None]:
    """Makes UTC the local time zone of this process during the `with` block."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


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


class _StreamWriter(_ArrowWriter):
    """The methods of stream writers that the driver calls after a micro-batch."""

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commits the transactions of the tasks with `exactlyOnce`; otherwise does nothing.

        All rows of the micro-batch are acknowledged already.

        Raises:
            ExactlyOnceError: not all transactions are committed.
            KprotoError: no broker is reachable.
        """
        found = [each for each in messages if isinstance(each, TaskCommitMessage)]
        if not self._options.exactly_once or not found:
            return
        batch = self._micro_batch(found[0].query_id, batchId)
        with_client(
            self._options.client,
            lambda client: commit_micro_batch(client, batch, found),
            retry=True,
        )

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Aborts the transactions of the tasks with `exactlyOnce`.

        Otherwise warns that acknowledged rows stay in the topic; a restarted query writes them
        again.
        """
        if not self._options.exactly_once:
            logger.warning(
                "micro-batch %d failed: rows that were acknowledged stay in the topic", batchId
            )
            return
        found = [each for each in messages if isinstance(each, TaskCommitMessage)]
        with_client(self._options.client, lambda client: abort_transactions(client, found))


if DataSourceStreamArrowWriter is not None:

    class KprotoStreamWriter(_StreamWriter, DataSourceStreamArrowWriter):
        """Writes the rows of each micro-batch."""

else:

    class KprotoStreamWriter(_RowWriter, _StreamWriter, DataSourceStreamWriter):  # type: ignore[no-redef]
        """Writes the rows of each micro-batch."""
