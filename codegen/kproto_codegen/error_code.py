"""One error code of Kafka as plain data, from a release to a generated package.

Knows neither its source nor the code generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ErrorCode"]


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One error code; `message` explains it in our own words, None if there is none."""

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
