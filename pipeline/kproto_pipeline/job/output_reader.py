"""Reads columns of an output's files with the schema that the job wrote, without inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..columns import EVENT_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

    from .settings import OutputSettings

__all__ = ["output_columns", "output_reader", "output_schema"]


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
    Spark compares this schema with the header.
    """
    if output.format.lower() == "csv":
        inside = [name for name in output_columns(output) if name not in output.partition_by]
        columns = (*inside, *output.partition_by)
    reader = spark.read.format(output.format).options(**output.options)
    return reader.option("enforceSchema", "false").schema(output_schema(*columns))
