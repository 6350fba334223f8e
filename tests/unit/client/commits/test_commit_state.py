"""What is due to be committed, what answers mean, and the epochs of commits. On plain data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.commits.commit_state import RENEW_S, CommitState, Meaning, judged, meaning_of
from kproto.client.commits.requests import ToCommit
from kproto.client.fetch.leader_epochs import EpochHistory
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.wire.uuid import Uuid

P0, P1 = ("t", 0), ("t", 1)


def test_what_is_not_committed_yet_is_due() -> None:
    committing = CommitState(5_000)
    done = {P0: ToCommit(5), P1: ToCommit(0)}
    assert committing.due(done, 1.0) == done
    committing.committed(done, 1.0)
    assert committing.due(done, 2.0) == {}
    assert committing.due(done | {P0: ToCommit(6)}, 2.0) == {P0: ToCommit(6)}
    assert committing.due({P0: ToCommit(4)}, 2.0) == {P0: ToCommit(4)}  # after a seek


def test_it_is_due_again_when_another_may_have_had_it_and_when_it_is_old() -> None:
    committing = CommitState(5_000)
    done = {P0: ToCommit(5), P1: ToCommit(7)}
    committing.committed(done, 1.0)
    committing.forget([P0])
    assert committing.due(done, 2.0) == {P0: ToCommit(5)}
    assert committing.due(done, 3_600.9) == {P0: ToCommit(5)}
    assert committing.due(done, 3_601.0) == done


def test_what_is_committed_again_says_what_it_said() -> None:
    committing = CommitState(5_000)
    committing.committed({P0: ToCommit(5, metadata="mine")}, 1.0)
    again = committing.due({P0: ToCommit(5)}, 1.0 + RENEW_S)
    assert again == {P0: ToCommit(5, metadata="mine")}
    assert committing.due({P0: ToCommit(6)}, 1.0) == {P0: ToCommit(6)}


def test_an_offset_of_a_topic_made_anew_is_another() -> None:
    committing = CommitState(5_000)
    committing.committed({P0: ToCommit(5, topic_id=Uuid.random())}, 1.0)
    anew = {P0: ToCommit(5, topic_id=Uuid.random())}
    assert committing.due(anew, 1.0) == anew


def test_where_nothing_more_is_done_what_was_committed_stays() -> None:
    committing = CommitState(5_000)
    done = {P0: ToCommit(10), P1: ToCommit(0)}
    committing.committed({P0: ToCommit(4, metadata="back")}, 1.0)
    assert committing.due(done, 2.0, {P0, P1}) == {}
    assert committing.due(done, 2.0, {P1}) == {P0: ToCommit(10)}
    again = committing.due(done, 1.0 + RENEW_S, {P0, P1})
    assert again == {P0: ToCommit(4, metadata="back")}


def test_what_the_group_had_is_older_than_what_was_committed_meanwhile() -> None:
    committing = CommitState(5_000)
    committing.committed({P0: ToCommit(4)}, 1.0)
    committing.known({P0: ToCommit(10), P1: ToCommit(7)}, 2.0)
    done = {P0: ToCommit(4), P1: ToCommit(7)}
    assert committing.due(done, 2.0) == {}
    assert committing.due(done, 2.0 + RENEW_S) == done


def test_where_a_partition_began_is_committed_until_anything_of_it_was() -> None:
    committing = CommitState(5_000)
    committing.began(P0, ToCommit(10))
    committing.began(P1, ToCommit(3))
    assert committing.begun({P0}) == {P0: ToCommit(10)}
    committing.committed({P0: ToCommit(4)}, 1.0)
    assert committing.begun({P0, P1}) == {P1: ToCommit(3)}
    committing.forget([P0, P1])
    assert committing.begun({P0, P1}) == {}


def test_commits_are_due_in_time_or_never() -> None:
    committing = CommitState(5_000)
    assert committing.next_at == float("inf")
    committing.begin(10.0)
    assert committing.next_at == 15.0
    committing.rest()
    assert committing.next_at == float("inf")


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("UNKNOWN_MEMBER_ID", Meaning.REFUSED),
        ("ILLEGAL_GENERATION", Meaning.REFUSED),
        ("FENCED_INSTANCE_ID", Meaning.REFUSED),
        ("REBALANCE_IN_PROGRESS", Meaning.REFUSED),
        ("UNKNOWN_TOPIC_OR_PARTITION", Meaning.SOON),
        ("UNKNOWN_TOPIC_ID", Meaning.SOON),
        ("COORDINATOR_LOAD_IN_PROGRESS", Meaning.AGAIN),
        ("COORDINATOR_NOT_AVAILABLE", Meaning.AGAIN),
        ("NOT_COORDINATOR", Meaning.AGAIN),
        ("REQUEST_TIMED_OUT", Meaning.AGAIN),
        ("OFFSET_METADATA_TOO_LARGE", Meaning.FAILED),
        ("INVALID_COMMIT_OFFSET_SIZE", Meaning.FAILED),
        ("GROUP_AUTHORIZATION_FAILED", Meaning.FAILED),
        ("TOPIC_AUTHORIZATION_FAILED", Meaning.FAILED),
        ("INVALID_GROUP_ID", Meaning.FAILED),
    ],
)
def test_what_an_error_of_a_commit_means(name: str, meaning: Meaning) -> None:
    assert meaning_of(code_of(name)) is meaning


def test_a_code_that_nobody_knows_is_told() -> None:
    assert meaning_of(12_345) is Meaning.FAILED


def test_each_partition_of_an_answer_is_judged_by_itself() -> None:
    names = {0: "", 1: "NOT_COORDINATOR", 2: "UNKNOWN_TOPIC_ID", 3: "ILLEGAL_GENERATION"}
    names[4] = "OFFSET_METADATA_TOO_LARGE"
    answers = {
        ("t", at): error_of_code(code_of(name), "") if name else None for at, name in names.items()
    }
    found = judged(answers)
    assert found.committed == [("t", 0)]
    for at, errors in enumerate((found.again, found.soon, found.refused, found.failed), 1):
        assert errors == {("t", at): answers["t", at]}


# Epochs


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=20),
    st.integers(0, 20),
    st.integers(0, 9),
)
def test_the_epoch_before_an_offset(steps: list[tuple[int, int]], begins: int, first: int) -> None:
    """Beside a plain list of records; fetches tell of epochs again that have not changed."""
    history = EpochHistory(begins, first)
    epochs: list[int] = []
    epoch = first
    for count, rise in steps:
        epoch += rise
        history.add([(begins + len(epochs), epoch)])
        epochs += [epoch] * count
    assert history.last == epoch
    assert history.before(begins) == first
    assert history.before(begins - 1) == -1
    for at, expected in enumerate(epochs):
        assert history.before(begins + at + 1) == expected


def test_old_epochs_are_forgotten_and_not_made_up() -> None:
    history = EpochHistory(0, 1)
    for at in range(3_000):
        history.add([(10 * at, at + 1)])
    assert history.before(29_995) == 3_000
    assert history.before(19_999) == -1
    assert history.before(20_001) == 2_001
