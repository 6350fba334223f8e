"""What can be wrong with a job: its settings, its output, its counts. Knows no Spark."""

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
    """A setting of a job that is unknown, missing or wrong; the message names it and its file."""


class CountMismatchError(KprotoError):
    """Records were lost or made up between two stages; nothing was put in the output's place."""


class OutputExistsError(KprotoError):
    """The output path is taken and may not be replaced."""


class OutputBusyError(KprotoError):
    """Another run writes, or wrote, to the output at the same time."""


class OutputDamagedError(KprotoError):
    """The output holds what no run has left there; nothing was changed."""
