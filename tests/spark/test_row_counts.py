"""Tests the counts of an output's rows by status, from footers and by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kproto_pipeline.job.output_files import OutputFiles
from kproto_pipeline.job.row_counts import rows_by_status
from kproto_pipeline.job.settings import OutputSettings
from pyarrow import parquet

pytestmark = pytest.mark.spark


def write(path: Path, rows: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"id": [str(at) for at in range(rows)]}), path)


def counted_by_spark(spark: Any, folder: Path) -> dict[str, int]:
    read = spark.read.schema("id string, status string").parquet(str(folder))
    return {row["status"]: row["count"] for row in read.groupBy("status").count().collect()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "größer than a b=1"


def test_footers_have_the_counts_that_spark_reads(spark: Any, folder: Path) -> None:
    write(folder / "status=valid" / "type=a" / "part-0.parquet", 3)
    write(folder / "status=valid" / "type=_b%2F" / "part-1.parquet", 4)
    write(folder / "status=invalid" / "type=__HIVE_DEFAULT_PARTITION__" / "part-0.parquet", 5)
    write(folder / "status=duplicate" / "type=a" / "part-0.parquet", 0)
    # Spark skips these.
    write(folder / "_temporary" / "status=valid" / "part-0.parquet", 10)
    write(folder / ".staging" / "status=valid" / "part-0.parquet", 20)
    write(folder / "status=valid" / "type=a" / "_part-2.parquet", 30)
    (folder / "status=valid" / "type=a" / ".part-0.parquet.crc").write_bytes(b"crc")
    (folder / "_SUCCESS").write_bytes(b"")
    output = OutputSettings(str(folder))
    files = OutputFiles(spark, str(folder))
    found = rows_by_status(spark, files, output, files.root)
    assert found == {"valid": 7, "invalid": 5} == counted_by_spark(spark, folder)


def test_spark_counts_the_rows_of_other_outputs(spark: Any, folder: Path) -> None:
    rows = spark.createDataFrame(
        [("1", "valid"), ("2", "invalid"), ("3", "valid")], "id string, status string"
    )
    for format_, parts in (("parquet", ()), ("orc", ("status",)), ("csv", ("status",))):
        output = OutputSettings(
            str(folder / format_ / str(len(parts))), format_, parts, columns=("id", "status")
        )
        rows.write.format(format_).partitionBy(*parts).save(output.path)
        files = OutputFiles(spark, str(output.path))
        assert rows_by_status(spark, files, output, files.root) == {"valid": 2, "invalid": 1}


def test_output_without_files_has_no_rows(spark: Any, folder: Path) -> None:
    folder.mkdir()
    (folder / "_SUCCESS").write_bytes(b"")
    files = OutputFiles(spark, str(folder))
    assert rows_by_status(spark, files, OutputSettings(str(folder)), files.root) == {}


def test_unreadable_footer_is_an_error_of_spark(spark: Any, folder: Path) -> None:
    write(folder / "status=valid" / "part-0.parquet", 3)
    (folder / "status=valid" / "part-1.parquet").write_bytes(b"no footer")
    files = OutputFiles(spark, str(folder))
    output = OutputSettings(str(folder), partition_by=("status",))
    with pytest.raises(Exception, match=r"part-1\.parquet"):
        rows_by_status(spark, files, output, files.root)
