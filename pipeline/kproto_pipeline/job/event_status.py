"""What a job does with events, as native column expressions on DataFrames.

Owns the verdict on each record: valid, invalid or a duplicate. Knows no topic and no file. No
expression here runs Python code for a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["DUPLICATE", "INVALID", "STATUSES", "VALID", "status_count", "with_status"]

VALID: Final = "valid"
INVALID: Final = "invalid"
DUPLICATE: Final = "duplicate"
STATUSES: Final = (VALID, INVALID, DUPLICATE)

_WRITTEN: Final = "kproto written before"
_TIMES: Final = "kproto times before"


def with_status(
    events: DataFrame, before: DataFrame | None = None, window_s: float = 0.0
) -> DataFrame:
    """Events as the data source gives them, with a column `status`.

    A record with an `error` is invalid. Of events with the same source and id (CloudEvents 1.0:
    together they identify an event) the first by topic, partition and offset is valid and the
    others are duplicates, so the verdict does not depend on the order of reading. A duplicate is
    also what `before` holds, the valid events that were written (`source`, `id`, `timestamp`), if
    the times of both records are at most `window_s` seconds apart, or one of them is not known.
    """
    place = sf.struct("topic", "partition", "offset")
    # Invalid records have no identity; by their place they do not all end up in one task.
    identity = [sf.col("source"), sf.col("id"), sf.when(sf.col("error").isNotNull(), place)]
    order = Window.partitionBy(*identity).orderBy("topic", "partition", "offset")
    first = sf.row_number().over(order) == 1
    if before is not None:
        events = _looked_up(events, before, window_s)
        first = first & ~sf.col(_WRITTEN)
    status = sf.when(sf.col("error").isNotNull(), INVALID).when(first, VALID).otherwise(DUPLICATE)
    return events.withColumn("status", status).drop(_WRITTEN)


def _looked_up(events: DataFrame, before: DataFrame, window_s: float) -> DataFrame:
    """Events with a column that says whether each was written before; no row is added."""
    # An array of each identity's times: of one that was written twice, an event is one row still.
    # Times that are not known are 0 there, as collect_list leaves nulls out.
    micros = sf.coalesce(sf.unix_micros("timestamp"), sf.lit(0))
    times = before.groupBy(
        sf.col("source").alias("kproto source"), sf.col("id").alias("kproto id")
    ).agg(sf.collect_list(micros).alias(_TIMES))
    same = (sf.col("source") == sf.col("kproto source")) & (sf.col("id") == sf.col("kproto id"))
    window = round(window_s * 1_000_000)

    def near(time: Column) -> Column:
        return (sf.abs(time - micros) <= window) | (time == 0) | (micros == 0)

    written = sf.coalesce(sf.exists(_TIMES, near), sf.lit(False))
    joined = events.join(times, same, "left").withColumn(_WRITTEN, written)
    return joined.drop("kproto source", "kproto id", _TIMES)


def status_count(status: str) -> Column:
    """How many rows have a status; an aggregate."""
    return sf.count(sf.when(sf.col("status") == status, 1))
