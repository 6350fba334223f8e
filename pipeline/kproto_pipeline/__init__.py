"""A data pipeline on PySpark: Kafka topics as DataFrames, columnar, and CloudEvents as columns.

The public face; everything is loaded when it is first asked for, so that the columnar decoder
can be used where Spark is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .job import JobCounts, run_job
    from .options import OptionError
    from .source import KprotoDataSource, register

__all__ = ["JobCounts", "KprotoDataSource", "OptionError", "register", "run_job"]

_HOMES = {
    "JobCounts": "job",
    "KprotoDataSource": "source",
    "OptionError": "options",
    "register": "source",
    "run_job": "job",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{home}", __name__), name)
