"""The error for an option of the data source."""

from __future__ import annotations

from kproto.wire.errors import ConfigurationError

__all__ = ["OptionError"]


class OptionError(ConfigurationError):
    """An option of the data source is unknown, missing or wrong; the message names it."""
