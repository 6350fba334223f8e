"""Reduces the offset ranges of a batch read by the filters that Spark pushes down.

PySpark 4.1 and later push filters if `spark.sql.python.filterPushdown.enabled` is set. If this
property is not set, these releases refuse a reader that has `pushFilters`. With pushed filters, a
separate process plans the read; `filters_are_pushed` detects this process. Spark applies every
filter again, so the rows are the same with and without pushed filters.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from ..planning.range_filter import Predicate, range_filter_of
from .batch_reader import KprotoReader

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FilterPushdownReader", "filters_are_pushed"]

#: The PySpark module that plans a read with filters; only the planning process imports it.
_PLANNER: Final = "pyspark.sql.worker.data_source_pushdown_filters"

# By class name of a PySpark filter: the operator of its predicate.
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
    """A batch reader that reduces its offset ranges by the pushed filters."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Stores the filters that reduce ranges; returns all, because Spark must apply all."""
        self.range_filter = range_filter_of(
            predicate for each in filters if (predicate := _predicate(each)) is not None
        )
        return filters


def _predicate(each: Any) -> Predicate | None:
    """Returns a filter on one top-level column as a predicate; None for any other filter."""
    operator = _OPERATORS.get(type(each).__name__)
    if operator is None or len(each.attribute) != 1:
        return None
    return each.attribute[0], operator, each.value


def filters_are_pushed() -> bool:
    """Returns True if Spark pushes filters to readers in this process."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PLANNER in sys.modules or (main is not None and main.name == _PLANNER)
