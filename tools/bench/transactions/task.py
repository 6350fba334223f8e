"""The tasks of the table of transactions, and the measuring code that the clients share.

Imports the standard library only, because it runs in the environment of kproto and in that of the
other clients.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from tools.bench.clients.task import VALUE, Meter

__all__ = [
    "BATCH_BYTES",
    "PEER_BACKOFF_MS",
    "VALUE",
    "MeasuredTransactions",
    "Task",
    "TransactionMeter",
    "Works",
]

#: Maps a name to the function to measure. The function takes a Task, and returns a
#: MeasuredTransactions or a coroutine that returns one.
Works: TypeAlias = dict[str, Callable[["Task"], Any]]

#: The retry backoff of the other clients in ms. A client must retry while the coordinator still
#: writes the markers of the last transaction. librdkafka's default of 100 ms makes a transaction
#: with offsets take 90 ms.
PEER_BACKOFF_MS: Final = 5

#: The batch size of every client: the default maximum of brokers, less some bytes.
BATCH_BYTES: Final = 1_000_000


class Task(NamedTuple):
    """Identifies a measurement of `transactions` transactions of `size` records each.

    `client` and `work` name the function. The function writes to `topic`; "transform" also reads
    `source`, as a member of the group `topic`. Before the measured transactions, the function runs
    `warm` unmeasured ones. `linger_ms` is the producer's linger.
    """

    client: str
    work: str
    bootstrap: str
    topic: str
    source: str
    size: int
    transactions: int
    warm: int
    linger_ms: int

    @property
    def transactional_id(self) -> str:
        """The transactional id, which no other measurement has."""
        return f"id-{self.topic}"

    @property
    def total(self) -> int:
        """The number of all transactions, measured or not."""
        return self.warm + self.transactions


class MeasuredTransactions(NamedTuple):
    """The time and the CPU time per record, in seconds, and the p50 of a transaction's time.

    The time of a transaction, in seconds, starts with its begin, or for "transform" with the poll
    before the begin. The time ends with the commit.
    """

    seconds: float
    cpu: float
    p50: float


class TransactionMeter:
    """Measures consecutive transactions; call `end_transaction` after each commit."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._ended = 0
        self._times: list[float] = []
        self._began_at = time.perf_counter()
        self._meter = Meter()

    def end_transaction(self) -> None:
        """Ends the time of a transaction, and begins that of the next one."""
        now = time.perf_counter()
        self._ended += 1
        if self._ended > self._task.warm:
            self._times.append(now - self._began_at)
        elif self._ended == self._task.warm:
            self._meter = Meter()
        self._began_at = time.perf_counter()

    def stop(self) -> MeasuredTransactions:
        """Returns the times, after the last transaction."""
        assert len(self._times) == self._task.transactions
        seconds, cpu = self._meter.stop(self._task.transactions * self._task.size)
        return MeasuredTransactions(seconds, cpu, statistics.median(self._times))
