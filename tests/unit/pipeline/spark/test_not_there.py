"""What the data source does not do yet: it says so, whatever was asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kproto_pipeline.spark.data_source import KprotoDataSource, NotThereError
from pyspark.sql.types import StructType

from kproto import KprotoError

ASKED: dict[str, Callable[[KprotoDataSource], object]] = {
    "write": lambda source: source.writer(StructType(), overwrite=False),
    "writeStream": lambda source: source.streamWriter(StructType(), overwrite=True),
}


@pytest.mark.parametrize("what", ASKED)
@pytest.mark.parametrize("options", [{}, {"topic": "t", "kafka.bootstrap.servers": "h:1"}], ids=str)
def test_it_is_named_with_what_does_it(what: str, options: dict[str, str]) -> None:
    with pytest.raises(NotThereError, match=rf"{what} .*kproto.* not there yet; .*") as caught:
        ASKED[what](KprotoDataSource(options))
    assert isinstance(caught.value, KprotoError)
