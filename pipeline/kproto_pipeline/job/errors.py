"""The errors of a job: of its settings, its output, its counts."""

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
    """A setting of a job is unknown, missing or wrong; the message names it and its file."""


class CountMismatchError(KprotoError):
    """Two stages counted different numbers of records; nothing was published."""


class OutputExistsError(KprotoError):
    """The output path exists and must not be replaced."""


class OutputBusyError(KprotoError):
    """Another run writes, or wrote, to the output at the same time."""


class OutputDamagedError(KprotoError):
    """The output contains files that no run leaves there; nothing was changed."""
