"""One error code of Kafka, as plain data: what a release says of it and a package is told.

Knows neither where it is read from nor what is generated of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ErrorCode"]


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One error code; `message` is what it means in our own words, None when nobody said."""

    name: str
    code: int
    retriable: bool
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns this code as plain data."""
        return {
            "name": self.name,
            "code": self.code,
            "retriable": self.retriable,
            "message": self.message,
        }
