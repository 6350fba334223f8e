"""Reads columns of an output's files with the schema that the job wrote, without inference.

Also has the options with which Spark reads every text as it was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..columns import EVENT_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrameReader, SparkSession

    from .settings import OutputSettings

__all__ = ["file_options", "output_columns", "output_reader", "output_schema"]

#: By format: options of Spark's reader and writer that replace Spark's defaults. With Spark's
#: defaults a text loses the blanks at both ends, so the id of an event is read as another id.
#: `rowTag` has no default in Spark. CSV needs no `multiLine`: an event with a control character is
#: invalid, errors show it escaped, and Spark writes bytes as hexadecimal numbers.
_DEFAULT_OPTIONS: Final = {
    "csv": {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"},
    "xml": {"ignoreSurroundingSpaces": "false", "rowTag": "ROW"},
}


def file_options(kind: str, given: Mapping[str, str]) -> dict[str, str]:
    """Returns the options for Spark's reader and writer of files of the format `kind`.

    The options in `given` replace the defaults of the job; names have no case.
    """
    names = {name.lower() for name in given}
    defaults = _DEFAULT_OPTIONS.get(kind.lower(), {})
    return {**{name: it for name, it in defaults.items() if name.lower() not in names}, **given}


def output_columns(output: OutputSettings) -> tuple[str, ...]:
    """Returns the columns of an output, in the order of writing."""
    return output.columns or (*EVENT_SCHEMA.names, "status")


def output_schema(*columns: str) -> StructType:
    """Returns the schema of these columns of an output."""
    known = from_arrow_schema(EVENT_SCHEMA).add("status", "string")
    return StructType([known[name] for name in columns])


def output_reader(spark: SparkSession, output: OutputSettings, *columns: str) -> DataFrameReader:
    """Returns a reader of some columns of an output's files.

    CSV files identify columns by position, so their schema has all columns in the order of writing;
    Spark compares this schema with the header. The schema also has the columns of the partition
    folders. Otherwise Spark would infer their types: void if all values are null, which ORC cannot
    read.
    """
    if output.format.lower() == "csv":
        columns = output_columns(output)
    inside = [name for name in columns if name not in output.partition_by]
    columns = (*inside, *output.partition_by)
    reader = spark.read.format(output.format).options(**file_options(output.format, output.options))
    return reader.option("enforceSchema", "false").schema(output_schema(*columns))
