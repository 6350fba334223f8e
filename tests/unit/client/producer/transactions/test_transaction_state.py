"""Tests the table of the states of a transactional producer: every pair of states."""

from __future__ import annotations

import pytest

from kproto.client.producer.transactions.transaction_state import (
    TRANSITIONS,
    TransactionState,
    check_transition,
)

S = TransactionState

#: The pairs of states in TransactionManager of Kafka's Java client.
JAVA = {
    S.UNINITIALIZED: {S.READY, S.ABORTABLE_ERROR},
    S.INITIALIZING: {S.UNINITIALIZED, S.COMMITTING_TRANSACTION, S.ABORTING_TRANSACTION},
    S.READY: {S.INITIALIZING, S.COMMITTING_TRANSACTION, S.ABORTING_TRANSACTION},
    S.IN_TRANSACTION: {S.READY},
    S.COMMITTING_TRANSACTION: {S.IN_TRANSACTION},
    S.ABORTING_TRANSACTION: {S.IN_TRANSACTION, S.ABORTABLE_ERROR},
    S.ABORTABLE_ERROR: {S.IN_TRANSACTION, S.COMMITTING_TRANSACTION, S.ABORTABLE_ERROR},
    S.FATAL_ERROR: set(S),
}

#: kproto sends InitProducerId when the next transaction begins; Java's client, at the end of the
#: last one. So at the end of a transaction, kproto enters UNINITIALIZED, and Java's client enters
#: INITIALIZING. After a failed InitProducerId, kproto returns to UNINITIALIZED.
ONLY_HERE = {
    (S.INITIALIZING, S.UNINITIALIZED),
    (S.COMMITTING_TRANSACTION, S.UNINITIALIZED),
    (S.ABORTING_TRANSACTION, S.UNINITIALIZED),
    # A commit that is cancelled before EndTxn is sent becomes an abort.
    (S.COMMITTING_TRANSACTION, S.ABORTING_TRANSACTION),
}
ONLY_IN_JAVA = {
    (S.ABORTABLE_ERROR, S.UNINITIALIZED),
    (S.COMMITTING_TRANSACTION, S.INITIALIZING),
    (S.ABORTING_TRANSACTION, S.INITIALIZING),
}


def test_table_is_that_of_java_except_for_named_pairs() -> None:
    here = {(before, after) for before, its in TRANSITIONS.items() for after in its}
    java = {(before, after) for after, its in JAVA.items() for before in its}
    assert here - java == ONLY_HERE
    assert java - here == ONLY_IN_JAVA


@pytest.mark.parametrize("before", TransactionState)
@pytest.mark.parametrize("after", TransactionState)
def test_every_pair_is_allowed_or_refused(
    before: TransactionState, after: TransactionState
) -> None:
    if after in TRANSITIONS[before]:
        check_transition(before, after)
        return
    with pytest.raises(RuntimeError, match=f"{before.name} does not change to {after.name}"):
        check_transition(before, after)
