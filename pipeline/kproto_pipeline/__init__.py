"""A data pipeline on PySpark: Kafka topics as DataFrames, decoded by column, CloudEvents included.

Defines the public names. Imports each module at first use, so that `kproto_pipeline.columns` works
without Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .job import JobCounts, run_job
    from .spark.data_source import KprotoDataSource, register
    from .spark.options.errors import OptionError

__all__ = ["JobCounts", "KprotoDataSource", "OptionError", "register", "run_job"]

_MODULES = {
    "JobCounts": "job",
    "KprotoDataSource": "spark.data_source",
    "OptionError": "spark.options.errors",
    "register": "spark.data_source",
    "run_job": "job",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{module}", __name__), name)
