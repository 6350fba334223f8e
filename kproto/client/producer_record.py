"""Defines `ProducerRecord`, as users and hooks see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["Headers", "ProducerRecord"]

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]


class ProducerRecord(NamedTuple):
    """A record to send. `timestamp` is in ms, None for now; `partition` None to choose by
    the key.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None
