"""Filters that Spark pushes down to a batch read, where that is switched on.

PySpark 4.1 and later push filters with `spark.sql.python.filterPushdown.enabled`, and refuse a
reader that could take some while it is off. A process of its own plans then, and by that it is
known. Filters narrow the ranges; Spark applies every filter again, so that none is taken away.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from ..planning.range_filter import Predicate, range_filter_of
from .batch_reader import KprotoReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from ..options.read_options import ReadOptions

__all__ = ["FilterPushdownReader", "create_batch_reader"]

#: The module of PySpark's that plans a read with filters; elsewhere it is not loaded.
_PLANNER: Final = "pyspark.sql.worker.data_source_pushdown_filters"

# The name of a filter's class -> how it compares.
_OPERATORS: Final = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "In": "in",
}


class FilterPushdownReader(KprotoReader):
    """Reads the ranges that filters leave."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Take note of the filters; all of them are Spark's to apply."""
        self.range_filter = range_filter_of(
            condition for each in filters if (condition := _condition(each)) is not None
        )
        return filters


def _condition(each: Any) -> Predicate | None:
    """A filter of one of our columns as plain data; None for any other."""
    operator = _OPERATORS.get(type(each).__name__)
    if operator is None or len(each.attribute) != 1:
        return None
    return each.attribute[0], operator, each.value


def create_batch_reader(options: ReadOptions, schema: pa.Schema) -> KprotoReader:
    """The reader of a batch: one that takes filters where Spark is about to push some."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    pushes = _PLANNER in sys.modules or (main is not None and main.name == _PLANNER)
    return (FilterPushdownReader if pushes else KprotoReader)(options, schema)
