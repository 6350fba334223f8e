"""Where Spark finds the data source `kproto` by itself: no `register` is needed.

At the first look-up of a Python data source, Spark imports every top-level module of its driver's
Python whose name begins with `pyspark_`, and takes the class `DefaultSource` of each. If one of
them raises, Spark passes over all. So this module loads nothing but what Spark has loaded already;
what the data source needs is loaded when a query names it, and an error then is that query's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """The data source `kproto`, by the name that Spark looks for; an instance is the real one."""

    @classmethod
    def name(cls) -> str:
        return "kproto"

    def __new__(cls, options: MutableMapping[str, str]) -> DataSource:  # type: ignore[misc]
        """A `KprotoDataSource` with these options.

        Raises:
            ImportError: what the extra `kproto[spark]` brings is not there; the message names it.
        """
        try:
            from kproto_pipeline import KprotoDataSource
        except ImportError as error:
            raise ImportError(
                f'format("kproto") needs what the extra kproto[spark] brings, on every node: '
                f"{error}"
            ) from error
        return KprotoDataSource(options)
