"""The errors of a job: of its settings, its output, its counts and Spark."""

from __future__ import annotations

from kproto.wire.errors import ConfigurationError, KprotoError

__all__ = [
    "CountMismatchError",
    "OutputBusyError",
    "OutputDamagedError",
    "OutputExistsError",
    "SettingError",
    "SparkError",
]


class SettingError(ConfigurationError):
    """A setting of a job is unknown, missing or wrong; the message names the setting."""


class CountMismatchError(KprotoError):
    """Stages of an increment counted different numbers of rows; the increment was not published."""


class OutputExistsError(KprotoError):
    """The output path exists, and the settings do not allow the job to replace it."""


class OutputBusyError(KprotoError):
    """Another run writes to the output, or has written to it during this run."""


class OutputDamagedError(KprotoError):
    """The output contains files that no run creates, or lacks files of a run.

    Also raised if a manifest is unreadable, or of a version that this release does not support.
    """


class SparkError(KprotoError):
    """Spark, Java or a file system failed; the message has their words in one line.

    `details` is the traceback, with the stack trace of Java.
    """

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message, details)
        self.details = details

    def __str__(self) -> str:
        return str(self.args[0])
