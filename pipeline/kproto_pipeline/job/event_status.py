"""Sets the status of each event: valid, invalid or duplicate.

Uses Spark's column expressions only, so that no Python code runs per row. Reads and writes no
files.
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

#: The number of characters of an id by which events are sorted first.
_SORTED_CHARACTERS: Final = 8

_WRITTEN: Final = "kproto written before"
_TIMES: Final = "kproto times before"


def with_status(
    events: DataFrame, before: DataFrame | None = None, window_s: float = 0.0
) -> DataFrame:
    """Adds the column `status` to events of the data source.

    A record with an `error` is invalid. `source` and `id` together identify an event (CloudEvents
    1.0). Of several records with the same event, the first by topic, partition and offset is valid,
    and all later ones are duplicates. So the status does not depend on the order of reading.

    `before` has the `source`, `id` and `timestamp` of the valid events that were written earlier.
    If `before` has the event, the two record timestamps are compared. If they differ by at most
    `window_s` seconds, or if one of them is unknown, even the first record of the event is a
    duplicate.
    """
    position = sf.struct("topic", "partition", "offset")
    identity = [
        # Most events differ in the last characters of the id. Spark sorts by the first 8 bytes of
        # the first column, and compares whole rows only if these bytes are equal.
        sf.right("id", sf.lit(_SORTED_CHARACTERS)),
        sf.col("id"),
        sf.col("source"),
        # Invalid records may lack source and id; their position spreads them over the tasks.
        sf.when(sf.col("error").isNotNull(), position),
    ]
    order = Window.partitionBy(*identity).orderBy("topic", "partition", "offset")
    first = sf.row_number().over(order) == 1
    if before is not None:
        events = _with_written_before(events, before, window_s)
        first = first & ~sf.col(_WRITTEN)
    status = sf.when(sf.col("error").isNotNull(), INVALID).when(first, VALID).otherwise(DUPLICATE)
    return events.withColumn("status", status).drop(_WRITTEN)


def _with_written_before(events: DataFrame, before: DataFrame, window_s: float) -> DataFrame:
    """Adds a column that is true if the event was written before; the rows stay the same.

    An event was written before if `before` has the event with a similar timestamp. Two timestamps
    are similar if they differ by at most `window_s` seconds, or if one of them is unknown.
    """
    # Collects an array of timestamps per source and id, so that an event joins at most one row.
    # Unknown timestamps are 0, because collect_list drops nulls.
    micros = sf.coalesce(sf.unix_micros("timestamp"), sf.lit(0))
    times = before.groupBy(
        sf.col("source").alias("kproto source"), sf.col("id").alias("kproto id")
    ).agg(sf.collect_list(micros).alias(_TIMES))
    same = (sf.col("source") == sf.col("kproto source")) & (sf.col("id") == sf.col("kproto id"))
    window = round(window_s * 1_000_000)

    def within_window(time: Column) -> Column:
        return (sf.abs(time - micros) <= window) | (time == 0) | (micros == 0)

    written = sf.coalesce(sf.exists(_TIMES, within_window), sf.lit(False))
    joined = events.join(times, same, "left").withColumn(_WRITTEN, written)
    return joined.drop("kproto source", "kproto id", _TIMES)


def status_count(status: str) -> Column:
    """Returns an aggregate expression that counts the rows with this status."""
    return sf.count(sf.when(sf.col("status") == status, 1))
