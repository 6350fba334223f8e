"""Implements a Python data source that uses no Kafka, to show the cost of PySpark itself.

The sink drops all rows. The source creates one record batch, and yields this batch repeatedly. No
source or sink in Python can be faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["IdleSource"]

_PARTITIONS: Final = 4
_BATCH_ROWS: Final = 10_000


@dataclass
class _Rows(InputPartition):
    count: int


class IdleSource(DataSource):
    """The data source `idle`, with two options: `rows`, the number of rows, and `includeHeaders`.

    `includeHeaders` adds the column `headers`.
    """

    @classmethod
    def name(cls) -> str:
        return "idle"

    def schema(self) -> str:
        headers = "headers array<struct<key string, value binary>>"
        columns = (
            "key binary, value binary, topic string, partition int, offset bigint, "
            "timestamp timestamp, timestampType int"
        )
        return f"{columns}, {headers}" if "includeHeaders" in self.options else columns

    def streamReader(self, schema: StructType) -> _Reader:  # noqa: N802 - Spark's name
        return _Reader(int(self.options["rows"]), schema)

    def writer(self, schema: StructType, overwrite: bool) -> _Writer:
        return _Writer()


class _Reader(DataSourceStreamReader):
    def __init__(self, rows: int, schema: StructType) -> None:
        self._rows = rows
        self._schema = schema

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"row": 0}

    def latestOffset(self, *limits: object) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"row": self._rows}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[_Rows]:
        rows = end["row"] - start["row"]
        return [
            _Rows(rows // _PARTITIONS + (number < rows % _PARTITIONS))
            for number in range(_PARTITIONS)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Rows)
        batch = _record_batch(self._schema)
        for begin in range(0, partition.count, _BATCH_ROWS):
            yield batch.slice(0, min(_BATCH_ROWS, partition.count - begin))


class _Writer(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


def _record_batch(schema: StructType) -> pa.RecordBatch:
    """Returns rows like those in the topic of the benchmark."""
    from datetime import UTC, datetime

    import pyarrow as pa
    from kproto_pipeline.spark.pyspark_versions import as_arrow_schema

    from tools.bench.spark.topics import event

    records = [event(number) for number in range(_BATCH_ROWS)]
    columns: dict[str, list[object]] = {
        "key": [record.key for record in records],
        "value": [record.value for record in records],
        "topic": ["idle"] * _BATCH_ROWS,
        "partition": [0] * _BATCH_ROWS,
        "offset": list(range(_BATCH_ROWS)),
        "timestamp": [datetime(2026, 1, 1, tzinfo=UTC)] * _BATCH_ROWS,
        "timestampType": [0] * _BATCH_ROWS,
        "headers": [
            [{"key": name, "value": value} for name, value in record.headers] for record in records
        ],
    }
    wanted = as_arrow_schema(schema)
    return pa.RecordBatch.from_pydict({name: columns[name] for name in wanted.names}, wanted)
