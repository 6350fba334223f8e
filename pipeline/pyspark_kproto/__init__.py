"""Lets Spark discover the data source `kproto`, without a call of `register`.

When Spark first looks up a Python data source, it imports every top-level module of the driver's
Python whose name begins with `pyspark_`, and takes the class `DefaultSource` of each. If one import
raises, Spark skips all of them. So this module imports only what Spark has imported already; the
data source is imported when a query uses it, and an error is raised in that query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """The data source `kproto` under the name that Spark looks for; creates `KprotoDataSource`."""

    @classmethod
    def name(cls) -> str:
        return "kproto"

    def __new__(cls, options: MutableMapping[str, str]) -> DataSource:  # type: ignore[misc]
        """Returns a `KprotoDataSource` with these options.

        Raises:
            ImportError: a package of the extra `kproto[spark]` is missing; the message names it.
        """
        try:
            from kproto_pipeline import KprotoDataSource
        except ImportError as error:
            raise ImportError(
                f'format("kproto") needs what the extra kproto[spark] brings, on every node: '
                f"{error}"
            ) from error
        return KprotoDataSource(options)
