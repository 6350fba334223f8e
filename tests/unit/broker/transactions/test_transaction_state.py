"""Tests the states of a transactional id: which transitions are valid, and the names of the states.

The expected transitions are those of Kafka's TransactionState.
"""

from __future__ import annotations

import pytest

from kproto.broker.transactions import TransactionMetadata, TransactionState
from kproto.broker.transactions.transaction_state import PREVIOUS_STATES, state_names

S = TransactionState

#: The states from which each state may be entered, written down independently.
ALLOWED = {
    S.EMPTY: "Empty CompleteCommit CompleteAbort",
    S.ONGOING: "Ongoing Empty CompleteCommit CompleteAbort",
    S.PREPARE_COMMIT: "Ongoing",
    S.PREPARE_ABORT: "Ongoing PrepareEpochFence Empty CompleteCommit CompleteAbort",
    S.COMPLETE_COMMIT: "PrepareCommit",
    S.COMPLETE_ABORT: "PrepareAbort",
    S.DEAD: "Empty CompleteCommit CompleteAbort",
    S.PREPARE_EPOCH_FENCE: "Ongoing",
}


@pytest.mark.parametrize("before", S, ids=lambda state: state.label)
@pytest.mark.parametrize("after", S, ids=lambda state: state.label)
def test_transition_is_allowed_as_in_kafka(before: S, after: S) -> None:
    assert (before in PREVIOUS_STATES[after]) is (before.label in ALLOWED[after].split())


@pytest.mark.parametrize("before", S, ids=lambda state: state.label)
@pytest.mark.parametrize(
    ("after", "change"),
    [
        (S.EMPTY, lambda metadata: metadata.with_bumped_epoch(1, 1, 0, 0)),
        (
            S.EMPTY,
            lambda metadata: metadata.with_new_producer_id(8, 1, 0, keeps_last_epoch=False),
        ),
        (S.ONGOING, lambda metadata: metadata.with_partitions(frozenset(), 0, 0)),
        (S.PREPARE_COMMIT, lambda metadata: prepared(metadata, is_commit=True)),
        (S.PREPARE_ABORT, lambda metadata: prepared(metadata, is_commit=False)),
    ],
    ids=["bump", "new id", "add", "commit", "abort"],
)
def test_metadata_enters_a_state_only_from_its_previous_states(
    before: S, after: S, change: object
) -> None:
    metadata = TransactionMetadata("tx", 7, 1, epoch=0, state=before)
    assert callable(change)
    if before in PREVIOUS_STATES[after]:
        assert change(metadata).state is after
        return
    with pytest.raises(AssertionError, match=f"'tx' cannot become {after.name} from {before.name}"):
        change(metadata)


def prepared(metadata: TransactionMetadata, *, is_commit: bool) -> TransactionMetadata:
    return metadata.prepared(is_commit=is_commit, client_version=0, next_producer_id=-1, now_ms=0)


@pytest.mark.parametrize("before", S, ids=lambda state: state.label)
def test_only_a_prepared_transaction_completes(before: S) -> None:
    metadata = TransactionMetadata("tx", 7, 1, epoch=0, state=before)
    expected = {S.PREPARE_COMMIT: S.COMPLETE_COMMIT, S.PREPARE_ABORT: S.COMPLETE_ABORT}
    if before in expected:
        assert metadata.completed(0).state is expected[before]
        return
    with pytest.raises(AssertionError):
        metadata.completed(0)


def test_names_in_responses_are_those_of_kafka() -> None:
    assert list(state_names()) == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
    assert [int(state) for state in state_names().values()] == list(range(8)), (
        "the numbers in TransactionLogValue"
    )
    assert {state for state in S if state.is_prepared} == {S.PREPARE_COMMIT, S.PREPARE_ABORT}
    assert {state for state in S if state.is_complete} == {S.COMPLETE_COMMIT, S.COMPLETE_ABORT}
