"""`TransactionCycle`: decides when the transaction of `run` accepts records, and when it ends.

Does no I/O: callers pass the time, in seconds of the client's clock. Each transaction begins after
the previous transaction has ended. Handlers run at any time, because their records are appended
only after they have returned; only the append waits while a transaction ends.

| phase | event | next phase |
|---|---|---|
| ACCEPTING | a commit is requested, and the member is in a generation | COMMITTING |
| ACCEPTING, COMMITTING | a record or an append fails, a partition is lost | RESTARTING |
| COMMITTING | the transaction is committed | ACCEPTING |
| COMMITTING | the transaction is aborted | RESTARTING |
| RESTARTING | the positions are those of the committed offsets | ACCEPTING |
| any | the producer cannot continue | FAILED |
"""

from __future__ import annotations

import random
from collections.abc import Collection
from enum import Enum
from typing import Final, NamedTuple

from ..core.retry import backoff_ms
from ..settings import ClientSettings

__all__ = ["CyclePhase", "CycleStep", "NextStep", "TransactionCycle"]

_NEVER: Final = float("inf")

#: The time between two checks whether a rebalance has ended, in seconds.
_RECHECK_S: Final = 0.05

#: A transaction cannot be committed while the member is in no generation. After this part of
#: `transaction_timeout_ms` such a transaction is aborted, because at the timeout the broker would
#: abort it, and fence the producer.
_MAX_AGE: Final = 0.5


class CyclePhase(Enum):
    """The phase of the present transaction."""

    ACCEPTING = "records may be appended"
    COMMITTING = "appends wait: the transaction is committed once the running ones are done"
    RESTARTING = "appends wait: the transaction is aborted, and its records are polled again"
    FAILED = "the producer cannot continue, and run() ends"


class CycleStep(Enum):
    """The next step of the caller."""

    WAIT = "wait for an event"
    COMMIT = "commit the transaction with the offsets of processed records"
    RESTART = "abort the transaction, and move positions back to the committed offsets"
    END = "do nothing any more"


class NextStep(NamedTuple):
    """A step, and the time at which to take it, or to call `next_step` again.

    The time is in seconds of the clock. After an event, `next_step` may be called earlier.
    """

    step: CycleStep
    at: float


class TransactionCycle:
    """The state of the present transaction, and of the appends to it.

    `is_open` is True once the transaction has begun, and `number` counts the transactions.
    `appending` is the number of appends that have not ended. `touched` has the assignment epochs of
    the partitions whose records are processed in the transaction. `is_overdue` is True if the
    transaction is aborted because of its age.
    """

    def __init__(self, settings: ClientSettings, transaction_timeout_ms: int) -> None:
        self.phase = CyclePhase.ACCEPTING
        self.is_open = False
        self.number = 0
        self.appending = 0
        self.touched: set[object] = set()
        self.is_overdue = False
        self._requests = self._committing = self._done = 0  # requests of commits
        self._began_at = 0.0
        self._max_age_s = transaction_timeout_ms / 1000 * _MAX_AGE
        self._settings = settings
        self._restarts = 0  # since the last commit
        self._not_before = float("-inf")

    @property
    def accepts_records(self) -> bool:
        """True if an append may start now."""
        return self.phase is CyclePhase.ACCEPTING

    def is_done(self, request: int) -> bool:
        """Returns True if commit number `request` was carried out, or the producer has failed."""
        return self.phase is CyclePhase.FAILED or self._done >= request

    # Events

    def on_append(self, assignment_epoch: object) -> None:
        """Counts an append that starts, for a record of the assignment `assignment_epoch`."""
        self.appending += 1
        self.touched.add(assignment_epoch)

    def on_append_done(self) -> None:
        """Counts an append that has ended."""
        self.appending -= 1

    def on_begun(self, now: float) -> None:
        """Stores that a transaction has begun at `now`."""
        self.is_open = True
        self._began_at = now

    def request_commit(self) -> int:
        """Requests a commit of all that is processed now; returns the number of the request."""
        self._requests += 1
        return self._requests

    def on_commit_started(self) -> None:
        """Notes that the offsets to commit are known; later requests need another commit."""
        self._committing = self._requests

    def postpone_commit(self) -> None:
        """Delays the commit, because the member is in no generation any more."""
        if self.phase is CyclePhase.COMMITTING:
            self.phase = CyclePhase.ACCEPTING

    def restart(self) -> bool:
        """Makes the transaction abort; returns False in the phases RESTARTING and FAILED."""
        if self.phase in (CyclePhase.RESTARTING, CyclePhase.FAILED):
            return False
        self.phase = CyclePhase.RESTARTING
        return True

    def is_touched(self, epochs: Collection[object]) -> bool:
        """Returns True if the transaction has records of one of the assignment `epochs`."""
        return not self.touched.isdisjoint(epochs)

    def on_committed(self) -> None:
        """Ends the committed transaction; if a restart was requested meanwhile, it follows."""
        self._end_transaction()
        self._done = self._committing
        self._restarts = 0
        self._not_before = float("-inf")
        if self.phase is CyclePhase.COMMITTING:
            self.phase = CyclePhase.ACCEPTING

    def on_restart_failed(self, now: float) -> None:
        """Repeats the restart after a backoff, because the positions were not moved."""
        self._back_off(now)

    def on_restarted(self, now: float) -> None:
        """Ends the restart: polls continue at the committed offsets.

        The next restart waits for a backoff, unless a transaction is committed before the next
        restart.
        """
        self._end_transaction()
        self.is_overdue = False
        self._back_off(now)
        if self.phase is CyclePhase.RESTARTING:
            self.phase = CyclePhase.ACCEPTING

    def _back_off(self, now: float) -> None:
        self._restarts += 1
        chance = random.random()  # noqa: S311 - jitter, no secret
        self._not_before = now + backoff_ms(self._settings, self._restarts, chance) / 1000

    def _end_transaction(self) -> None:
        self.number += 1
        self.is_open = False
        self.touched.clear()

    def fail(self) -> None:
        """Ends the cycle, because the producer cannot continue."""
        self.phase = CyclePhase.FAILED

    # The next step

    def next_step(self, now: float, *, can_commit: bool) -> NextStep:
        """Returns the next step at `now`.

        `can_commit` is False while the member is in no generation, so that no coordinator accepts
        its offsets. In this case the transaction stays open, and accepts records, until the part
        `_MAX_AGE` of its timeout is over.
        """
        if self.phase is CyclePhase.FAILED:
            return NextStep(CycleStep.END, now)
        if self.phase is CyclePhase.ACCEPTING and self._requests > self._done:
            if can_commit:
                self.phase = CyclePhase.COMMITTING
            elif self.is_open and now >= self._began_at + self._max_age_s:
                self.phase = CyclePhase.RESTARTING
                self.is_overdue = True
            else:
                return NextStep(CycleStep.WAIT, now + _RECHECK_S)
        if self.phase is CyclePhase.RESTARTING:
            return NextStep(CycleStep.RESTART, max(now, self._not_before))
        if self.phase is CyclePhase.COMMITTING and not self.appending:
            return NextStep(CycleStep.COMMIT, now)
        return NextStep(CycleStep.WAIT, _NEVER)
