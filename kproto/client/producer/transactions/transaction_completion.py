"""`TransactionCompletion`: decides when a producer may begin to write after its last transaction.

After EndTxn the coordinator writes the markers of the transaction. Until all markers are written,
the coordinator adds no partition to the next transaction, and returns CONCURRENT_TRANSACTIONS. In
transaction version 1 the producer gets this error, and retries after `completion_backoff_s`. In
transaction version 2 (KIP-890) the leader of the partition gets this error, and retries after
`add.partitions.to.txn.retry.backoff.ms`, 20 ms, though the markers of most transactions take only 1
or 2 ms. So before its first write the producer requests the state of the transaction by
DescribeTransactions, which changes nothing, and needs no right that the producer lacks. If the
request fails or the markers take longer, the producer writes, and the leader waits. Sans-IO: times
are in seconds of the client's clock.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "IN_COMPLETION",
    "TransactionCompletion",
    "completion_backoff_s",
    "concurrent_backoff_s",
]

#: The states in which the coordinator writes the markers of a transaction.
IN_COMPLETION: Final = frozenset({"PrepareCommit", "PrepareAbort"})

#: The number of requests that are sent without a backoff: a response often takes as long as the
#: markers.
_IMMEDIATE: Final = 4

#: The first backoff in seconds; it doubles up to `_MAX_BACKOFF_S`, the backoff of the Java client.
_BACKOFF_S: Final = 0.001
_MAX_BACKOFF_S: Final = 0.02

#: The producer requests the state for this many seconds after EndTxn: as long as the backoff of the
#: leader.
_WINDOW_S: Final = 0.02


def concurrent_backoff_s(attempt: int) -> float:
    """Returns the backoff in seconds after CONCURRENT_TRANSACTIONS; `attempt` counts from 1."""
    return min(_BACKOFF_S * 2.0 ** min(attempt - 1, 30), _MAX_BACKOFF_S)


def completion_backoff_s(attempt: int) -> float:
    """Returns the backoff in seconds before a request that waits for the markers; 0 at first."""
    return concurrent_backoff_s(attempt + 1 - _IMMEDIATE) if attempt >= _IMMEDIATE else 0.0


class TransactionCompletion:
    """Tracks whether the last transaction of a producer may be incomplete.

    The next request for the state of the transaction may be sent from `not_before` on.
    """

    def __init__(self) -> None:
        self.not_before = float("-inf")
        self._ends_at = float("-inf")
        self._is_pending = False
        self._is_supported = True
        self._requests = 0

    @property
    def is_pending(self) -> bool:
        """True if the last transaction may be incomplete, and its state should be requested."""
        return self._is_pending

    def on_end(self, now: float) -> None:
        """Begins the completion of a transaction: the coordinator has accepted EndTxn at `now`."""
        self._is_pending = self._is_supported
        self._requests = 0
        self._ends_at = now + _WINDOW_S
        self.not_before = now

    def on_initialized(self) -> None:
        """Ends the completion: InitProducerId has succeeded, so no transaction is incomplete."""
        self._is_pending = False

    def must_wait(self, now: float) -> bool:
        """Returns True if a write at `now` must wait for the state of the last transaction."""
        if self._is_pending and now >= self._ends_at:
            self._is_pending = False
        return self._is_pending

    def on_state(self, state: str, now: float) -> None:
        """Processes the state in a response: requests the state again, or permits a write."""
        self._requests += 1
        self.not_before = now + completion_backoff_s(self._requests)
        self._is_pending = state in IN_COMPLETION and self.not_before < self._ends_at

    def on_error(self, *, is_permanent: bool) -> None:
        """Permits the next write; after a permanent error the state is never requested again."""
        self._is_pending = False
        self._is_supported = self._is_supported and not is_permanent
