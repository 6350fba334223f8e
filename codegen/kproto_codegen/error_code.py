"""Defines an error code of Kafka, as `releases` reads it and `emit` writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ErrorCode"]


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """An error code; `message` is the explanation in errors.json, None if there is none."""

    name: str
    code: int
    retriable: bool
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns this code as JSON data."""
        return {
            "name": self.name,
            "code": self.code,
            "retriable": self.retriable,
            "message": self.message,
        }
