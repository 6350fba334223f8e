"""`AckedSends`: the calls of `send` that a response acks, which continue in the order of the calls.

The objects of consecutive calls are close to each other in memory. If calls to many partitions
continued by partition, the processor would have to load the objects of each call from main memory:
10,000 calls to 1,000 partitions would take a tenth more CPU time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Generic, TypeVar

__all__ = ["AckedSends"]

A = TypeVar("A")


class AckedSends(Generic[A]):
    """Collects calls until `wake`; A is the type of the acks.

    Calls whose records are appended together have one `first_call`, the number of calls that were
    collected before them, and `indexes` from 0 on.
    """

    __slots__ = ("_acks", "_first_call", "_numbers", "_waiters")

    def __init__(self) -> None:
        self._first_call = 0
        self._numbers: list[int] = []
        self._waiters: list[asyncio.Future[A]] = []
        self._acks: list[A] = []

    def add(
        self,
        first_call: int,
        indexes: Sequence[int],
        waiters: Sequence[asyncio.Future[A]],
        acks: Sequence[A],
    ) -> None:
        """Adds the calls at `indexes`, with the futures for which they wait, and their acks."""
        if not self._numbers:
            self._first_call = first_call
        distance = first_call - self._first_call
        self._numbers += [distance + each for each in indexes] if distance else indexes
        self._waiters += waiters
        self._acks += acks

    def wake(self) -> None:
        """Sets the futures in the order of the calls, except for those that are cancelled."""
        numbers, waiters, acks = self._numbers, self._waiters, self._acks
        for at in sorted(range(len(numbers)), key=numbers.__getitem__):
            if not waiters[at].done():
                waiters[at].set_result(acks[at])
