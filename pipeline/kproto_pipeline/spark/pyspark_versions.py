"""Wraps functions of PySpark whose arguments differ between its releases, from 4.0 on.

If a module uses a feature that some releases lack, the module itself handles these releases.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import to_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["as_arrow_schema"]

#: The argument for timestamps in UTC: newer releases have `timezone`, older ones `timestamp_utc`.
_IN_UTC: Final[dict[str, Any]] = (
    {"timezone": "UTC"}
    if "timezone" in signature(to_arrow_schema).parameters
    else {"timestamp_utc": True}
)


def as_arrow_schema(schema: StructType) -> pa.Schema:
    """Returns a Spark schema as an Arrow schema with UTC timestamps, as Spark expects."""
    return to_arrow_schema(schema, **_IN_UTC)
