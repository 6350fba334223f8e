"""Defines the assignors of a group member whose user names none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["DEFAULT_ASSIGNORS"]

#: The names of the assignors. A user that names the same assignors gets a classic group: therefore
#: `GroupSettings.names_assignors` compares with this object by identity.
DEFAULT_ASSIGNORS: Final[Sequence[str]] = ("range", "cooperative-sticky")
