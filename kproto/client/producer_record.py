"""`ProducerRecord`, for users and hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["Headers", "ProducerRecord"]

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]


class ProducerRecord(NamedTuple):
    """A record to send.

    `timestamp` is in ms; None is the present time. With `partition` None the partitioner chooses
    the partition by the key.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None
