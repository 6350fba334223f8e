"""The Spark data source `kproto`: topics as DataFrames, column by column, and back.

Owns what Spark asks first: the name, the columns, a reader or a writer, of batches and of streams.

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
from .options.read_options import parse_columns, parse_read_options
from .options.write_options import parse_write_options
from .pyspark_versions import as_arrow_schema
from .reading.filter_pushdown import create_batch_reader
from .redaction import set_redaction_patterns
from .sink.sink_rows import check_columns
from .sink.writers import KprotoStreamWriter, KprotoWriter
from .streaming.stream_reader import KprotoStreamReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from .options.write_options import WriteOptions
    from .reading.batch_reader import KprotoReader

__all__ = ["KprotoDataSource", "register"]


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("kproto")` known to a session.

    On a local master without PYSPARK_PYTHON, workers get this process's interpreter. Spark would
    take the first `python3` on the PATH, which need not have this package. The session is told
    what it must hide of our options, besides what it hides already (`redaction`).
    """
    if "PYSPARK_PYTHON" not in os.environ:
        context = getattr(spark, "_sc", None)  # a Spark Connect session has none
        if context is not None and context.master.startswith("local"):
            context.pythonExec = sys.executable
    set_redaction_patterns(spark)
    try:
        spark.dataSource.register(KprotoDataSource)
    except AnalysisException as error:
        # PySpark 4.0 and 4.1 refuse the name of a source that they have found by themselves: ours.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


class KprotoDataSource(DataSource):
    """Kafka topics; options as in `read_options`.

    The columns are those of Spark's JVM connector (`headers` with `includeHeaders`), or with
    `cloudEvents` those of `EVENT_SCHEMA`. A schema given to `spark.read.schema(…)` may name any
    of them in any order; the others are then not decoded at all.
    """

    @classmethod
    def name(cls) -> str:
        return "kproto"

    def schema(self) -> StructType:
        return from_arrow_schema(_offered(self.options))

    def reader(self, schema: StructType) -> KprotoReader:
        options = parse_read_options(self.options)
        return create_batch_reader(options, _checked_schema(schema, _offered(self.options)))

    def streamReader(self, schema: StructType) -> KprotoStreamReader:  # noqa: N802 - Spark's name
        options = parse_read_options(self.options, streaming=True)
        return KprotoStreamReader(options, _checked_schema(schema, _offered(self.options)))

    def writer(self, schema: StructType, overwrite: bool) -> KprotoWriter:
        return KprotoWriter(*self._writing(schema, overwrite))

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> KprotoStreamWriter:
        return KprotoStreamWriter(*self._writing(schema, overwrite))

    def _writing(self, schema: StructType, overwrite: bool) -> tuple[WriteOptions, pa.Schema]:
        options = parse_write_options(self.options)
        if overwrite:
            raise OptionError(
                "records in a topic are never overwritten: write in the mode append, a stream in "
                "the output mode append"
            )
        columns = as_arrow_schema(schema)
        check_columns(columns, options)
        return options, columns

    def __repr__(self) -> str:
        # Options may hold secrets, and Spark prints data sources in plans and errors.
        return "KprotoDataSource()"


def _offered(options: Mapping[str, str]) -> pa.Schema:
    """The columns that a read with these options has, a batch or a stream."""
    include_headers, cloud_events = parse_columns(options)
    if cloud_events:
        return EVENT_SCHEMA
    if include_headers:
        return RECORD_SCHEMA
    return RECORD_SCHEMA.remove(RECORD_SCHEMA.get_field_index("headers"))


def _checked_schema(schema: StructType, offered: pa.Schema) -> pa.Schema:
    """The schema that Spark asks for, in Arrow's terms.

    Raises:
        OptionError: it names a column that is not there, twice, or with another type.
    """
    for place, name in enumerate(schema.names):
        if name in schema.names[:place]:
            raise OptionError(f"the schema names column {name!r} twice; name each once")
    wanted = as_arrow_schema(schema)
    for field in wanted:
        if field.name not in offered.names:
            raise OptionError(
                f"the schema's column {field.name!r} is not one of {', '.join(offered.names)}"
            )
        kind = offered.field(field.name).type
        if not field.type.equals(kind):
            raise OptionError(
                f"the schema's column {field.name!r} is {field.type}; it must be {kind}"
            )
    return wanted
