"""`CommandError`: a command cannot do what correct arguments ask for."""

from __future__ import annotations

from ..wire.errors import KprotoError

__all__ = ["CommandError"]


class CommandError(KprotoError):
    """Raised if the state of a cluster, or a file, does not allow what a command should do.

    The exit code is 1. Wrong arguments are a ConfigurationError, with the exit code 2.
    """
