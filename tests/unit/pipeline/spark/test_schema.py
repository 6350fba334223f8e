"""Tests the checks of a read's schema."""

from __future__ import annotations

import pytest
from kproto_pipeline.spark.data_source import KprotoDataSource
from kproto_pipeline.spark.options.errors import OptionError
from pyspark.sql.types import BinaryType, LongType, StructType

SOURCE = KprotoDataSource({"kafka.bootstrap.servers": "h:1", "subscribe": "t"})


def test_columns_have_the_order_of_the_schema() -> None:
    asked = StructType().add("value", BinaryType()).add("offset", LongType())
    assert SOURCE.reader(asked)._schema.names == ["value", "offset"]


def test_duplicate_column_is_an_error() -> None:
    twice = StructType().add("value", BinaryType()).add("offset", LongType())
    twice.add("value", BinaryType())
    with pytest.raises(OptionError, match="names column 'value' twice"):
        SOURCE.reader(twice)
