"""Queries the job's output for the demo: flights by carrier and by hour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from ..job.event_status import VALID
from .flights import DEPARTED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

__all__ = ["carrier_rows", "flight_table", "hour_rows"]

_DATA_SCHEMA: Final = (
    "carrier string, flight int, tailnum string, origin string, dest string, hour int, "
    "dep_delay double, arr_delay double, distance int"
)


def flight_table(spark: SparkSession, parquet: str) -> DataFrame:
    """Returns the valid flights, with the JSON data of their events as columns."""
    return (
        spark.read.parquet(parquet)
        .where(sf.col("status") == VALID)
        .select("type", sf.from_json(sf.col("data").cast("string"), _DATA_SCHEMA).alias("flight"))
        .select("type", "flight.*")
    )


def carrier_rows(events: DataFrame) -> list[Row]:
    """Returns scheduled flights, departures and mean departure delay (minutes) by carrier."""
    return (
        events.groupBy("carrier")
        .agg(
            sf.count(sf.lit(1)).alias("scheduled"),
            sf.count(sf.when(sf.col("type") == DEPARTED, 1)).alias("departures"),
            sf.avg("dep_delay").alias("delay"),
        )
        .orderBy(sf.desc("departures"), "carrier")
        .collect()
    )


def hour_rows(events: DataFrame) -> list[Row]:
    """Returns the mean departure delay (minutes) by scheduled hour of departure, local time."""
    return (
        events.where(sf.col("type") == DEPARTED)
        .groupBy("hour")
        .agg(sf.avg("dep_delay").alias("delay"), sf.count(sf.lit(1)).alias("departures"))
        .orderBy("hour")
        .collect()
    )
