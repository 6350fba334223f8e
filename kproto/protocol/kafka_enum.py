"""Defines `KafkaEnum`, the base class of enums whose codes later releases of Kafka extend."""

from __future__ import annotations

from enum import IntEnum
from typing import Self

__all__ = ["KafkaEnum"]


class KafkaEnum(IntEnum):
    """An enum of Kafka with the member UNKNOWN = 0, which stands for codes of later releases."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls(0) if isinstance(value, int) else None
