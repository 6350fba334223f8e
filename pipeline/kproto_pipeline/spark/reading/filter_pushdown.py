"""Narrows the offset ranges of a batch read by the filters that Spark pushes down.

PySpark 4.1 and later push filters with `spark.sql.python.filterPushdown.enabled`, and refuse a
reader with `pushFilters` while that is off. With it on, a process of its own plans the read, which
`filters_are_pushed` recognizes. Spark applies every filter again, so rows are the same either way.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from ..planning.range_filter import Predicate, range_filter_of
from .batch_reader import KprotoReader

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FilterPushdownReader", "filters_are_pushed"]

#: The PySpark module that plans a read with filters; other processes do not load it.
_PLANNER: Final = "pyspark.sql.worker.data_source_pushdown_filters"

# The class name of a filter -> its comparison operator.
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
    """A batch reader that narrows its offset ranges by pushed filters."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Narrows the ranges, and returns all filters, as Spark has to apply each."""
        self.range_filter = range_filter_of(
            predicate for each in filters if (predicate := _predicate(each)) is not None
        )
        return filters


def _predicate(each: Any) -> Predicate | None:
    """Returns a filter on one top-level column as plain data; None for any other."""
    operator = _OPERATORS.get(type(each).__name__)
    if operator is None or len(each.attribute) != 1:
        return None
    return each.attribute[0], operator, each.value


def filters_are_pushed() -> bool:
    """Returns whether this process is the one in which Spark pushes filters to the reader."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PLANNER in sys.modules or (main is not None and main.name == _PLANNER)
