"""Knows which releases of Delta Lake and Apache Iceberg fit a release of PySpark.

Each pair was tried with the job. The package `kproto` depends on none of them: Spark downloads them
by `spark.jars.packages`, or finds them in `spark.jars`. Works on plain data, and imports no Spark.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

__all__ = ["LAKE_FORMATS", "PACKAGES", "folder_catalog", "lake_package", "lake_properties"]

#: The table formats that the job writes exactly once.
LAKE_FORMATS: Final = frozenset({"delta", "iceberg"})

#: The Maven coordinates by format and minor release of PySpark.
PACKAGES: Final = {
    ("delta", "4.0"): "io.delta:delta-spark_2.13:4.0.1",
    ("delta", "4.1"): "io.delta:delta-spark_4.1_2.13:4.3.1",
    ("delta", "4.2"): "io.delta:delta-spark_2.13:4.4.0",
    ("iceberg", "4.0"): "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    ("iceberg", "4.1"): "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}

_DELTA_PROPERTIES: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def lake_package(format_: str, pyspark: str) -> str | None:
    """Returns the package that fits a release of PySpark; None if none is known to fit."""
    return PACKAGES.get((format_.lower(), ".".join(pyspark.split(".")[:2])))


def lake_properties(format_: str) -> dict[str, str]:
    """Returns the properties that a Spark session needs for an output of this format."""
    return dict(_DELTA_PROPERTIES) if format_.lower() == "delta" else {}


def folder_catalog(folder: str) -> tuple[str, dict[str, str]]:
    """Returns the name and the properties of a catalog of the Iceberg tables in a folder.

    Each folder has a catalog of its own, because Spark creates a catalog only once.
    """
    name = f"kproto_{crc32(folder.encode()):08x}"
    prefix = f"spark.sql.catalog.{name}"
    return name, {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "hadoop",
        f"{prefix}.warehouse": folder,
    }
