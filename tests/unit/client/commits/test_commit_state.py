"""Tests which offsets are due for a commit, how commit errors are handled, and leader epochs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.commits.commit_state import (
    RENEW_S,
    CommitErrorAction,
    CommitState,
    classify_results,
    commit_error_action,
)
from kproto.client.commits.offset_requests import OffsetAndMetadata
from kproto.client.fetch.leader_epochs import EpochHistory
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.wire.uuid import Uuid

P0, P1 = ("t", 0), ("t", 1)


def test_uncommitted_offset_is_due() -> None:
    state = CommitState(5_000)
    done = {P0: OffsetAndMetadata(5), P1: OffsetAndMetadata(0)}
    assert state.due(done, 1.0) == done
    state.on_committed(done, 1.0)
    assert state.due(done, 2.0) == {}
    assert state.due(done | {P0: OffsetAndMetadata(6)}, 2.0) == {P0: OffsetAndMetadata(6)}
    assert state.due({P0: OffsetAndMetadata(4)}, 2.0) == {P0: OffsetAndMetadata(4)}  # after a seek


def test_offset_is_due_again_after_reassignment_and_when_old() -> None:
    state = CommitState(5_000)
    done = {P0: OffsetAndMetadata(5), P1: OffsetAndMetadata(7)}
    state.on_committed(done, 1.0)
    state.forget([P0])
    assert state.due(done, 2.0) == {P0: OffsetAndMetadata(5)}
    assert state.due(done, 3_600.9) == {P0: OffsetAndMetadata(5)}
    assert state.due(done, 3_601.0) == done


def test_renewed_commit_keeps_its_metadata() -> None:
    state = CommitState(5_000)
    state.on_committed({P0: OffsetAndMetadata(5, metadata="mine")}, 1.0)
    to_retry = state.due({P0: OffsetAndMetadata(5)}, 1.0 + RENEW_S)
    assert to_retry == {P0: OffsetAndMetadata(5, metadata="mine")}
    assert state.due({P0: OffsetAndMetadata(6)}, 1.0) == {P0: OffsetAndMetadata(6)}


def test_offset_of_a_recreated_topic_is_due() -> None:
    state = CommitState(5_000)
    state.on_committed({P0: OffsetAndMetadata(5, topic_id=Uuid.random())}, 1.0)
    recreated = {P0: OffsetAndMetadata(5, topic_id=Uuid.random())}
    assert state.due(recreated, 1.0) == recreated


def test_explicit_commit_stays_until_another_record_is_processed() -> None:
    state = CommitState(5_000)
    done = {P0: OffsetAndMetadata(10), P1: OffsetAndMetadata(0)}
    state.on_committed({P0: OffsetAndMetadata(4, metadata="back")}, 1.0)
    assert state.due(done, 2.0, {P0, P1}) == {}
    assert state.due(done, 2.0, {P1}) == {P0: OffsetAndMetadata(10)}
    to_retry = state.due(done, 1.0 + RENEW_S, {P0, P1})
    assert to_retry == {P0: OffsetAndMetadata(4, metadata="back")}


def test_own_commit_overrides_the_fetched_committed_offset() -> None:
    state = CommitState(5_000)
    state.on_committed({P0: OffsetAndMetadata(4)}, 1.0)
    state.add_known({P0: OffsetAndMetadata(10), P1: OffsetAndMetadata(7)}, 2.0)
    done = {P0: OffsetAndMetadata(4), P1: OffsetAndMetadata(7)}
    assert state.due(done, 2.0) == {}
    assert state.due(done, 2.0 + RENEW_S) == done


def test_start_offset_is_committed_until_another_commit() -> None:
    state = CommitState(5_000)
    state.add_start_offset(P0, OffsetAndMetadata(10))
    state.add_start_offset(P1, OffsetAndMetadata(3))
    assert state.start_offsets({P0}) == {P0: OffsetAndMetadata(10)}
    state.on_committed({P0: OffsetAndMetadata(4)}, 1.0)
    assert state.start_offsets({P0, P1}) == {P1: OffsetAndMetadata(3)}
    state.forget([P0, P1])
    assert state.start_offsets({P0, P1}) == {}


def test_commit_is_due_after_the_interval_or_never() -> None:
    state = CommitState(5_000)
    assert state.next_at == float("inf")
    state.start_interval(10.0)
    assert state.next_at == 15.0
    state.stop_interval()
    assert state.next_at == float("inf")


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("UNKNOWN_MEMBER_ID", CommitErrorAction.REFUSED),
        ("ILLEGAL_GENERATION", CommitErrorAction.REFUSED),
        ("FENCED_INSTANCE_ID", CommitErrorAction.REFUSED),
        ("REBALANCE_IN_PROGRESS", CommitErrorAction.REFUSED),
        ("UNKNOWN_TOPIC_OR_PARTITION", CommitErrorAction.RETRY_UNKNOWN_TOPIC),
        ("UNKNOWN_TOPIC_ID", CommitErrorAction.RETRY_UNKNOWN_TOPIC),
        ("COORDINATOR_LOAD_IN_PROGRESS", CommitErrorAction.RETRY),
        ("COORDINATOR_NOT_AVAILABLE", CommitErrorAction.RETRY),
        ("NOT_COORDINATOR", CommitErrorAction.RETRY),
        ("REQUEST_TIMED_OUT", CommitErrorAction.RETRY),
        ("OFFSET_METADATA_TOO_LARGE", CommitErrorAction.FAILED),
        ("INVALID_COMMIT_OFFSET_SIZE", CommitErrorAction.FAILED),
        ("GROUP_AUTHORIZATION_FAILED", CommitErrorAction.FAILED),
        ("TOPIC_AUTHORIZATION_FAILED", CommitErrorAction.FAILED),
        ("INVALID_GROUP_ID", CommitErrorAction.FAILED),
    ],
)
def test_error_of_a_commit_has_its_meaning(name: str, meaning: CommitErrorAction) -> None:
    assert commit_error_action(code_of(name)) is meaning


def test_unknown_error_code_is_a_failure() -> None:
    assert commit_error_action(12_345) is CommitErrorAction.FAILED


def test_partitions_of_a_response_are_judged_separately() -> None:
    names = {0: "", 1: "NOT_COORDINATOR", 2: "UNKNOWN_TOPIC_ID", 3: "ILLEGAL_GENERATION"}
    names[4] = "OFFSET_METADATA_TOO_LARGE"
    answers = {
        ("t", at): error_of_code(code_of(name), "") if name else None for at, name in names.items()
    }
    found = classify_results(answers)
    assert found.committed == [("t", 0)]
    for at, errors in enumerate(
        (found.to_retry, found.unknown_topics, found.refused, found.failed), 1
    ):
        assert errors == {("t", at): answers["t", at]}


# Epochs


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=20),
    st.integers(0, 20),
    st.integers(0, 9),
)
def test_history_finds_the_epoch_before_an_offset(
    steps: list[tuple[int, int]], begins: int, first: int
) -> None:
    """Compares the epoch history with a list that has the leader epoch of each record.

    Each fetch adds its leader epoch, even if the history has this epoch already.
    """
    history = EpochHistory(begins, first)
    epochs: list[int] = []
    epoch = first
    for count, rise in steps:
        epoch += rise
        history.add([(begins + len(epochs), epoch)])
        epochs += [epoch] * count
    assert history.last == epoch
    assert history.epoch_before(begins) == first
    assert history.epoch_before(begins - 1) == -1
    for at, expected in enumerate(epochs):
        assert history.epoch_before(begins + at + 1) == expected


def test_forgotten_epochs_are_reported_as_unknown() -> None:
    history = EpochHistory(0, 1)
    for at in range(3_000):
        history.add([(10 * at, at + 1)])
    assert history.epoch_before(29_995) == 3_000
    assert history.epoch_before(19_999) == -1
    assert history.epoch_before(20_001) == 2_001
