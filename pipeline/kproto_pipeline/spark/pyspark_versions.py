"""What releases of PySpark say in different words, said in one.

Owns every difference between 4.0 and the newest that is one of names and arguments. What a release
cannot do at all is decided by who wants to do it.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import to_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["as_arrow_schema"]

#: How a release is told that instants are in UTC: by name from 4.1 or 4.2 on, by a flag before.
_IN_UTC: Final[dict[str, Any]] = (
    {"timezone": "UTC"}
    if "timezone" in signature(to_arrow_schema).parameters
    else {"timestamp_utc": True}
)


def as_arrow_schema(schema: StructType) -> pa.Schema:
    """A schema of Spark in Arrow's terms, instants in UTC, as Spark takes record batches."""
    return to_arrow_schema(schema, **_IN_UTC)
