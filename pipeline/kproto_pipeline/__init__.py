"""A data pipeline on PySpark: Kafka topics as DataFrames, columnar, and CloudEvents as columns.

The public face; everything is loaded when it is first asked for, so that `kproto_pipeline.columns`
can be used where Spark is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .job import JobCounts, run_job
    from .spark.data_source import KprotoDataSource, register
    from .spark.options.errors import OptionError

__all__ = ["JobCounts", "KprotoDataSource", "OptionError", "register", "run_job"]

_HOMES = {
    "JobCounts": "job",
    "KprotoDataSource": "spark.data_source",
    "OptionError": "spark.options.errors",
    "register": "spark.data_source",
    "run_job": "job",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
