"""The Spark data source `kproto`: reads topics into DataFrames, and writes DataFrames to topics.

Spark calls the methods of `KprotoDataSource` for the name, the columns, and a reader or a writer of
a batch or stream.

    register(spark)
    flights = (
        spark.read.format("kproto")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "flights")
        .load()
    )
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema

from ..columns import EVENT_SCHEMA, RECORD_SCHEMA
from .options.errors import OptionError
from .options.option_table import parse_undecided_read, parse_write_options
from .pyspark_versions import as_arrow_schema
from .redaction import set_redaction_patterns
from .shipped_files import shipped_folder
from .streaming.group_commits import listen_for_commits
from .worker_python import python_for_workers

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from .options.option_table import ReadOptions, WriteOptions
    from .reading.batch_reader import KprotoReader
    from .sink.writers import KprotoStreamWriter, KprotoWriter
    from .streaming.stream_reader import KprotoStreamReader

__all__ = ["KprotoDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Registers `format("kproto")` in a session, and extends the session's redaction patterns.

    Also adds a listener to a classic session, which commits the offsets of finished micro-batches
    when a query with `commitOffsets` ends.

    With a local master and no PYSPARK_PYTHON, sets this process's interpreter for the workers.
    Otherwise Spark would run the first `python3` on the PATH, which may lack this package. If
    PYSPARK_PYTHON is this interpreter, too, the workers import PySpark from its folder; see
    `worker_python`.
    """
    if os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable:
        context = getattr(spark, "_sc", None)  # a Spark Connect session has none
        if context is not None and context.master.startswith("local"):
            context.pythonExec = python_for_workers(context)
    set_redaction_patterns(spark)
    try:
        spark.dataSource.register(KprotoDataSource)
    except AnalysisException as error:
        # PySpark 4.0 and 4.1 refuse to register a source that they have discovered by themselves.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    listen_for_commits(spark)


class KprotoDataSource(DataSource):
    """Kafka topics as a Spark data source; `option_table` lists its options.

    The columns are those of Spark's JVM connector; the column `headers` exists only with
    `includeHeaders`. With `cloudEvents` the columns are those of `EVENT_SCHEMA`. With `mode`
    PERMISSIVE there is one more column, for the bytes of unreadable records. `spark.read.schema(…)`
    may select columns in any order; columns that it leaves out are not decoded.
    """

    _parsed: ReadOptions | None = None

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        # Spark creates the data source in a process that has the files of the session, and pickles
        # it for the process that plans a stream, which lacks them.
        self._driver_folder = shipped_folder()

    @classmethod
    def name(cls) -> str:
        return "kproto"

    def schema(self) -> StructType:
        return from_arrow_schema(_columns(self._read_options()))

    def reader(self, schema: StructType) -> KprotoReader:
        # Imported here, as in the other methods, because a process of Spark calls only one of them.
        from .reading.batch_reader import KprotoReader
        from .reading.filter_pushdown import FilterPushdownReader, filters_are_pushed

        options = self._read_options().for_batch()
        reader = FilterPushdownReader if filters_are_pushed() else KprotoReader
        return reader(options, _checked_schema(schema, _columns(options)))

    def streamReader(self, schema: StructType) -> KprotoStreamReader:  # noqa: N802 - Spark's name
        from .streaming.stream_reader import KprotoStreamReader

        options = self._read_options().for_stream()
        return KprotoStreamReader(options, _checked_schema(schema, _columns(options)))

    def writer(self, schema: StructType, overwrite: bool) -> KprotoWriter:
        options, columns = self._write_options(schema, overwrite)
        if options.exactly_once:
            raise OptionError(
                "exactlyOnce is for streams: a batch query has no checkpoint that names its rows "
                "when it runs again, and foreachBatch runs batch queries; use writeStream.format("
                "'kproto'), or leave out exactlyOnce"
            )
        from .sink.writers import KprotoWriter

        return KprotoWriter(options, columns)

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> KprotoStreamWriter:
        from .sink.writers import KprotoStreamWriter

        return KprotoStreamWriter(*self._write_options(schema, overwrite))

    def _read_options(self) -> ReadOptions:
        """Returns the parsed options of a read.

        Spark pickles the data source after it calls `schema`, and calls `reader` in another
        process. The pickle contains the parsed options, so that they are parsed once.

        Raises:
            OptionError: an option is unknown, missing or wrong.
        """
        if self._parsed is None:
            self._parsed = parse_undecided_read(self.options, self._driver_folder)
        return self._parsed

    def _write_options(self, schema: StructType, overwrite: bool) -> tuple[WriteOptions, pa.Schema]:
        from .sink.sink_rows import check_columns

        options = parse_write_options(self.options, self._driver_folder)
        if overwrite:
            raise OptionError(
                "records in a topic are never overwritten: use the mode append or, for a stream, "
                "the output mode append"
            )
        columns = as_arrow_schema(schema)
        check_columns(columns, options)
        return options, columns

    def __repr__(self) -> str:
        # Options may be secrets, and Spark prints data sources in plans and errors.
        return "KprotoDataSource()"


def _columns(options: ReadOptions) -> pa.Schema:
    """Returns the columns of a read with these options.

    Raises:
        OptionError: columnNameOfCorruptRecord is the name of another column.
    """
    columns = EVENT_SCHEMA if options.cloud_events else RECORD_SCHEMA
    if not (options.cloud_events or options.include_headers):
        columns = columns.remove(columns.get_field_index("headers"))
    name = options.corrupt_column
    if name is None:
        return columns
    if name.lower() in columns.names or name.lower() == "timestamptype":
        raise OptionError(
            f"option columnNameOfCorruptRecord is {name!r}, which is another column; choose a name "
            "that no column has"
        )
    return columns.append(pa.field(name, pa.binary()))


def _checked_schema(schema: StructType, offered: pa.Schema) -> pa.Schema:
    """Returns the schema that Spark requests, as an Arrow schema.

    Raises:
        OptionError: the schema names an unknown column or a column twice, or has a wrong type.
    """
    for index, name in enumerate(schema.names):
        if name in schema.names[:index]:
            raise OptionError(f"the schema names column {name!r} twice; name each once")
    expected = as_arrow_schema(schema)
    for field in expected:
        if field.name not in offered.names:
            raise OptionError(
                f"the schema's column {field.name!r} is not one of {', '.join(offered.names)}"
            )
        kind = offered.field(field.name).type
        if not field.type.equals(kind):
            raise OptionError(
                f"the schema's column {field.name!r} is {field.type}; it must be {kind}"
            )
    return expected
