"""The job: writes topics of CloudEvents to a data lake, and compares the counts of every stage.

Defines the public names. Imports each module at first use, so that settings can be parsed without
Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .compaction import compact
    from .errors import (
        CountMismatchError,
        OutputBusyError,
        OutputDamagedError,
        OutputExistsError,
        SettingError,
        SparkError,
    )
    from .job_run import RunResult, run
    from .manifest import JobCounts
    from .parquet_job import run_job
    from .settings import JobSettings

_MODULES = {
    "CountMismatchError": "errors",
    "JobCounts": "manifest",
    "JobSettings": "settings",
    "OutputBusyError": "errors",
    "OutputDamagedError": "errors",
    "OutputExistsError": "errors",
    "RunResult": "job_run",
    "SettingError": "errors",
    "SparkError": "errors",
    "compact": "compaction",
    "run": "job_run",
    "run_job": "parquet_job",
}

__all__ = [
    "CountMismatchError",
    "JobCounts",
    "JobSettings",
    "OutputBusyError",
    "OutputDamagedError",
    "OutputExistsError",
    "RunResult",
    "SettingError",
    "SparkError",
    "compact",
    "run",
    "run_job",
]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{module}", __name__), name)
