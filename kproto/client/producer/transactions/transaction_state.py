"""The states of a transactional producer, and the transitions between them, as a table.

The states and transitions are those of TransactionManager in Kafka's Java client, with these
differences: a failed InitProducerId, which a later call may repeat, returns to UNINITIALIZED, and
COMMITTING_TRANSACTION may change to ABORTING_TRANSACTION before EndTxn is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

__all__ = ["TRANSITIONS", "TransactionState", "check_transition"]


class TransactionState(Enum):
    """The state of a transactional producer; the names are those of the Java client."""

    UNINITIALIZED = "the producer needs InitProducerId before its next transaction"
    INITIALIZING = "InitProducerId is sent"
    READY = "the producer has a producer id and an epoch, and no transaction"
    IN_TRANSACTION = "a transaction is open"
    COMMITTING_TRANSACTION = "the records are flushed, then EndTxn commits the transaction"
    ABORTING_TRANSACTION = "the requests in flight end, then EndTxn aborts the transaction"
    ABORTABLE_ERROR = "an error has occurred: the open transaction can only be aborted"
    FATAL_ERROR = "the producer cannot continue; a new producer is needed"


_S = TransactionState

#: The states to which each state may change.
TRANSITIONS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    _S.UNINITIALIZED: frozenset({_S.INITIALIZING, _S.FATAL_ERROR}),
    _S.INITIALIZING: frozenset({_S.READY, _S.UNINITIALIZED, _S.FATAL_ERROR}),
    _S.READY: frozenset({_S.IN_TRANSACTION, _S.UNINITIALIZED, _S.FATAL_ERROR}),
    _S.IN_TRANSACTION: frozenset(
        {
            _S.COMMITTING_TRANSACTION,
            _S.ABORTING_TRANSACTION,
            _S.ABORTABLE_ERROR,
            _S.FATAL_ERROR,
        }
    ),
    _S.COMMITTING_TRANSACTION: frozenset(
        {
            _S.READY,
            _S.UNINITIALIZED,
            _S.ABORTING_TRANSACTION,
            _S.ABORTABLE_ERROR,
            _S.FATAL_ERROR,
        }
    ),
    _S.ABORTABLE_ERROR: frozenset({_S.ABORTING_TRANSACTION, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.ABORTING_TRANSACTION: frozenset({_S.READY, _S.UNINITIALIZED, _S.FATAL_ERROR}),
    _S.FATAL_ERROR: frozenset({_S.FATAL_ERROR}),
}


def check_transition(before: TransactionState, after: TransactionState) -> None:
    """Raises RuntimeError if `TRANSITIONS` has no transition from `before` to `after`."""
    if after not in TRANSITIONS[before]:
        raise RuntimeError(f"{before.name} does not change to {after.name}")
