"""Lets Spark discover the data source `kproto` without a call of `register`.

When Spark first looks up a Python data source, it imports every top-level module of the driver's
Python whose name begins with `pyspark_`. Spark registers the class `DefaultSource` of each of these
modules. If one import raises, Spark skips all of them. This module therefore imports only modules
that Spark has imported already. The package `kproto_pipeline` is imported only by a query that uses
the data source; the query fails if the import raises.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """The data source `kproto` under the class name that Spark expects."""

    @classmethod
    def name(cls) -> str:
        return "kproto"

    def __new__(cls, options: MutableMapping[str, str]) -> DataSource:  # type: ignore[misc]
        """Returns a `KprotoDataSource` with these options.

        Raises:
            ImportError: a package of the extra `kproto[spark]` is missing; the message names it,
                and the Python that lacks it.
        """
        try:
            from kproto_pipeline import KprotoDataSource
        except ImportError as error:
            raise ImportError(
                f'format("kproto") needs the packages of the extra kproto[spark] on every node: '
                f"{error}, in {sys.executable}. PYSPARK_PYTHON sets the Python that Spark starts"
            ) from error
        return KprotoDataSource(options)
