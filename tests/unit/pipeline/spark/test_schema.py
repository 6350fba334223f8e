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


GIVEN = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}


@pytest.mark.parametrize("events", ["true", "false"])
def test_bytes_of_unreadable_records_are_a_column_in_permissive_mode(events: str) -> None:
    given = GIVEN | {"cloudEvents": events, "mode": "permissive"}
    schema = KprotoDataSource(given).schema()
    assert schema.names[-1] == "_corrupt_record"
    assert schema["_corrupt_record"].dataType == BinaryType()
    given["columnNameOfCorruptRecord"] = "Broken"
    assert KprotoDataSource(given).schema().names == [*schema.names[:-1], "Broken"]
    given["mode"] = "FAILFAST"
    assert KprotoDataSource(given).schema().names == schema.names[:-1]


@pytest.mark.parametrize("name", ["value", "Offset", "timestampType"])
def test_column_of_unreadable_records_needs_a_name_of_its_own(name: str) -> None:
    given = GIVEN | {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": name}
    with pytest.raises(OptionError, match="columnNameOfCorruptRecord is"):
        KprotoDataSource(given).schema()


def test_mode_is_one_of_those_of_spark() -> None:
    with pytest.raises(OptionError, match="option mode is 'DROPMALFORMED'"):
        KprotoDataSource(GIVEN | {"mode": "DROPMALFORMED"}).schema()
