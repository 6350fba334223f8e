"""The job: topics of CloudEvents to a lake, with counts that must agree.

The public face; everything is loaded when it is first asked for, so that settings can be read where
Spark is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import (
        CountMismatchError,
        OutputBusyError,
        OutputDamagedError,
        OutputExistsError,
        SettingError,
    )
    from .job_run import RunResult, run
    from .manifest import JobCounts
    from .parquet_job import run_job
    from .settings import JobSettings

_HOMES = {
    "CountMismatchError": "errors",
    "JobCounts": "manifest",
    "JobSettings": "settings",
    "OutputBusyError": "errors",
    "OutputDamagedError": "errors",
    "OutputExistsError": "errors",
    "RunResult": "job_run",
    "SettingError": "errors",
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
    "run",
    "run_job",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
