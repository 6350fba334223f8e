"""Hides differences in names and arguments between the releases of PySpark, from 4.0 on.

A module that needs a feature which a release lacks handles that itself.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import to_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["as_arrow_schema"]

#: The argument that makes timestamps UTC: a name from 4.1 or 4.2 on, a flag before.
_IN_UTC: Final[dict[str, Any]] = (
    {"timezone": "UTC"}
    if "timezone" in signature(to_arrow_schema).parameters
    else {"timestamp_utc": True}
)


def as_arrow_schema(schema: StructType) -> pa.Schema:
    """Returns a Spark schema as an Arrow schema with timestamps in UTC, as Spark takes batches."""
    return to_arrow_schema(schema, **_IN_UTC)
