"""Spark's read limits, where this PySpark has them: from 4.2 on."""

from __future__ import annotations

from typing import Any

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # PySpark 4.0 and 4.1 know no limits
    HAS_LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in its place, and is asked nothing."""

else:
    HAS_LIMITS = True

__all__ = [
    "HAS_LIMITS",
    "SupportsTriggerAvailableNow",
    "default_read_limit",
    "is_read_all_available",
]


def default_read_limit(least: int | None, most: int | None) -> Any:
    """The limit that Spark hands back; there is none for two limits, and the larger one tells."""
    if most is not None:
        return ReadMaxRows(most)
    if least is not None:
        return ReadMinRows(least)
    return ReadAllAvailable()


def is_read_all_available(limit: Any) -> bool:
    """Whether a batch is to have everything, as with the trigger `once`."""
    return not HAS_LIMITS or limit is None or isinstance(limit, ReadAllAvailable)
