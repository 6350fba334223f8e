"""The errors of a job: of its settings, its output and its counts."""

from __future__ import annotations

from kproto.wire.errors import ConfigurationError, KprotoError

__all__ = [
    "CountMismatchError",
    "OutputBusyError",
    "OutputDamagedError",
    "OutputExistsError",
    "SettingError",
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
