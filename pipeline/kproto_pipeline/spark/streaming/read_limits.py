"""Wraps Spark's read limits for micro-batches, which PySpark has from 4.2 on."""

from __future__ import annotations

from typing import Any

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # PySpark 4.0 and 4.1 have no read limits
    HAS_LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A placeholder: PySpark 4.0 and 4.1 have no such base class."""

else:
    HAS_LIMITS = True

__all__ = [
    "HAS_LIMITS",
    "SupportsTriggerAvailableNow",
    "default_read_limit",
    "is_read_all_available",
]


def default_read_limit(min_rows: int | None, max_rows: int | None) -> Any:
    """Returns the limit that Spark passes to `latestOffset`.

    If both arguments are set, `max_rows` has precedence; if both are None, there is no limit.
    """
    if max_rows is not None:
        return ReadMaxRows(max_rows)
    if min_rows is not None:
        return ReadMinRows(min_rows)
    return ReadAllAvailable()


def is_read_all_available(limit: Any) -> bool:
    """Returns True if the limit allows all available offsets, as with the trigger `once`.

    None means no limit, so the result is True. Before PySpark 4.2, the result is always True.
    """
    return not HAS_LIMITS or limit is None or isinstance(limit, ReadAllAvailable)
