"""What `write` says, as somebody at Spark sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:::pyspark")]

OPTIONS = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t"}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write(spark: Any, mode: str) -> None:
    rows = spark.createDataFrame([(b"v",)], "value binary")
    with pytest.raises(Exception, match=r"write .* is not there yet; .*producer"):
        rows.write.format("kproto").mode(mode).options(**OPTIONS).save()


def test_a_stream_that_is_written(spark: Any, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").load()
    writing = rows.writeStream.format("kproto").options(**OPTIONS)
    with pytest.raises(Exception, match=r"writeStream .* is not there yet; .*foreachBatch"):
        writing.option("checkpointLocation", str(tmp_path)).start().awaitTermination(60)
