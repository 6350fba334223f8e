"""The job: a topic of CloudEvents to Parquet, with counts that must agree."""

from .parquet_job import CountMismatchError, JobCounts, OutputExistsError, run_job

__all__ = ["CountMismatchError", "JobCounts", "OutputExistsError", "run_job"]
