"""The records to process, and the behavior of each handler call, which a seed determines."""

from __future__ import annotations

from enum import Enum
from typing import Final
from zlib import crc32

__all__ = ["DEAD", "GROUP", "TOPIC", "HandlerBehavior", "fate_of", "key_of", "stall_of", "value_of"]

TOPIC: Final = "handled"
DEAD: Final = "handled.dead"
GROUP: Final = "handlers"

_KEYS: Final = 400
_NO_KEY: Final = 10  # every tenth record has no key


class HandlerBehavior(Enum):
    """The behavior of the handler for a record; the value says when the handler succeeds."""

    AT_ONCE = "at once"
    GIVES_WAY = "after an iteration of the event loop"
    STALLS = "after a while"
    FAILS_ONCE = "at the second attempt"
    DEAD = "never"


#: The number of records, of 10,000, with each behavior. For all others the handler returns at once.
_SHARES: Final = {
    HandlerBehavior.DEAD: 15,
    HandlerBehavior.FAILS_ONCE: 100,
    HandlerBehavior.STALLS: 40,
    HandlerBehavior.GIVES_WAY: 2_000,
}


def _draw(seed: int, partition: int, offset: int, what: str) -> int:
    return crc32(f"{seed}/{partition}/{offset}/{what}".encode())


def fate_of(seed: int, partition: int, offset: int) -> HandlerBehavior:
    drawn = _draw(seed, partition, offset, "fate") % 10_000
    for fate, share in _SHARES.items():
        if drawn < share:
            return fate
        drawn -= share
    return HandlerBehavior.AT_ONCE


def stall_of(seed: int, partition: int, offset: int) -> float:
    """Returns how many seconds a handler that stalls at this record sleeps."""
    return _draw(seed, partition, offset, "stall") % 40 / 1000


def key_of(seed: int, partition: int, offset: int) -> bytes | None:
    drawn = _draw(seed, partition, offset, "key")
    return None if drawn % _NO_KEY == 0 else b"key-%d" % (drawn % _KEYS)


def value_of(partition: int, offset: int) -> bytes:
    return b"%d/%d" % (partition, offset)
