"""Knows which releases of Delta Lake and Apache Iceberg fit a release of PySpark.

Each pair was tried with the job. The package `kproto` depends on none of them: Spark downloads them
by `spark.jars.packages`, or finds them in `spark.jars`. Works on plain data, and imports no Spark.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LAKE_FORMATS", "PACKAGES", "lake_package", "lake_properties"]

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

#: The catalog through which the job writes Iceberg tables that have a path and no catalog.
PATH_CATALOG: Final = "kproto_paths"

_DELTA_PROPERTIES: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def lake_package(format_: str, pyspark: str) -> str | None:
    """Returns the package that fits a release of PySpark; None if none is known to fit."""
    return PACKAGES.get((format_.lower(), ".".join(pyspark.split(".")[:2])))


def lake_properties(format_: str, path: str | None) -> dict[str, str]:
    """Returns the properties of Spark that an output of this format needs."""
    if format_.lower() == "delta":
        return dict(_DELTA_PROPERTIES)
    if format_.lower() == "iceberg" and path is not None and "/" in path:
        prefix = f"spark.sql.catalog.{PATH_CATALOG}"
        return {
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            f"{prefix}.type": "hadoop",
            # A catalog of paths has no use for this property, but Iceberg requires it.
            f"{prefix}.warehouse": path,
        }
    return {}
