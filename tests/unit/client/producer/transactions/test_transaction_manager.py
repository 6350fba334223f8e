"""Tests the requests and the states of the transaction manager after each event."""

from __future__ import annotations

import pytest

from kproto.client.core.retry import TIMER_RESOLUTION_S
from kproto.client.producer.errors import (
    FatalTransactionError,
    FencedTransactionError,
    TransactionAbortedError,
)
from kproto.client.producer.producer_state import NO_PRODUCER_ID
from kproto.client.producer.transactions.transaction_errors import TransactionApi
from kproto.client.producer.transactions.transaction_requests import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    EndTransaction,
    InitProducerId,
)
from kproto.client.producer.transactions.transaction_state import TransactionState
from kproto.wire.errors import (
    KprotoError,
)
from tests.unit.client.producer.transactions.driven_manager import (
    BOTH,
    FIRST,
    LOST,
    NEXT,
    OTHER,
    TP,
    Driven,
    S,
    error,
    offsets,
)

# --- The way of a transaction ---


@BOTH
def test_commit_and_abort(version: int) -> None:
    driven = Driven(version).begun().with_partition()
    manager = driven.manager
    assert manager.is_open
    driven.ended()
    assert driven.has(S.READY)
    assert manager.identity == (FIRST if version == 1 else NEXT)
    manager.begin(driven.now)
    assert manager.needs_partition(TP, driven.now)
    driven.with_partition().ended(is_commit=False)
    assert driven.has(S.READY)


@BOTH
def test_nothing_is_ended_if_nothing_was_sent(version: int) -> None:
    driven = Driven(version).begun()
    driven.manager.begin_commit()
    driven.manager.end()
    assert driven.has(S.READY)
    driven.manager.begin(0)
    driven.manager.begin_abort()
    driven.manager.end()
    assert driven.has(S.READY)


def test_partitions_are_added_together_and_once() -> None:
    driven = Driven().begun()
    driven.manager.add_partitions([TP])
    driven.manager.add_partitions([OTHER, TP])
    driven.send(AddPartitions((TP, OTHER)))
    driven.manager.add_partitions([TP])
    driven.answer()
    assert driven.manager.next_request() is None
    assert not driven.manager.needs_partition(OTHER, driven.now)


def test_only_failed_partitions_are_added_again() -> None:
    driven = Driven().begun()
    driven.manager.add_partitions([TP, OTHER])
    driven.send(AddPartitions((TP, OTHER)))
    driven.answer(p1="COORDINATOR_LOAD_IN_PROGRESS")
    assert not driven.manager.needs_partition(TP, driven.now)
    assert driven.manager.needs_partition(OTHER, driven.now)
    driven.send(AddPartitions((OTHER,)))
    driven.answer()
    assert not driven.manager.needs_partition(OTHER, driven.now)


@BOTH
def test_offsets_of_a_group_are_added_once_in_version_1(version: int) -> None:
    done: list[str] = []
    driven = Driven(version).begun()
    first, second = offsets(on_committed=lambda: done.append("first")), offsets()
    driven.manager.commit_offsets(first)
    driven.manager.commit_offsets(second)
    if version == 1:
        driven.send(AddOffsets("g"))
        driven.answer()
    assert driven.manager.is_pending(first)
    driven.send(CommitOffsets(first))
    driven.answer()
    assert not driven.manager.is_pending(first)
    assert driven.manager.is_pending(second)
    driven.send(CommitOffsets(second))
    driven.answer()
    assert not driven.manager.is_adding
    assert done == []
    driven.ended()
    assert done == ["first"]


def test_aborted_offsets_are_not_reported() -> None:
    done: list[str] = []
    driven = Driven(2).begun()
    commit = offsets(on_committed=lambda: done.append("x"))
    driven.manager.commit_offsets(commit)
    driven.send(CommitOffsets(commit))
    driven.answer()
    driven.ended(is_commit=False)
    assert done == []


def test_requests_that_add_to_the_transaction_precede_its_end() -> None:
    driven = Driven().begun()
    commit = offsets()
    driven.manager.commit_offsets(commit)
    driven.manager.add_partitions([TP])
    driven.manager.begin_commit()
    driven.send(AddPartitions((TP,)))
    driven.answer()
    driven.send(AddOffsets("g"))
    driven.answer()
    driven.send(CommitOffsets(commit))
    driven.answer()
    assert driven.manager.next_request() is None
    driven.manager.end()
    driven.send(EndTransaction(is_commit=True))


# --- Retries ---


@BOTH
@pytest.mark.parametrize(
    ("fault", "backoff_s", "finds"),
    [
        (error("COORDINATOR_LOAD_IN_PROGRESS"), 0.12, False),
        (error("CONCURRENT_TRANSACTIONS"), 0.02, False),
        (error("NOT_COORDINATOR"), 0.12, True),
        (LOST, 0.12, True),
    ],
)
def test_end_is_repeated(version: int, fault: KprotoError, backoff_s: float, finds: bool) -> None:
    driven = Driven(version).begun().with_partition()
    driven.manager.begin_commit()
    driven.manager.end()
    driven.send(EndTransaction(is_commit=True))
    driven.fail(fault)
    assert driven.has(S.COMMITTING_TRANSACTION)
    assert 0 < driven.manager.not_before - driven.now <= backoff_s + 1e-9
    assert driven.manager.must_find_coordinator is finds
    driven.send(EndTransaction(is_commit=True))
    assert not driven.manager.must_find_coordinator
    driven.answer(NEXT if version == 2 else None)
    assert driven.has(S.READY)


def test_initialization_is_repeated_and_then_fails_so_that_a_later_call_repeats_it() -> None:
    driven = Driven()
    manager = driven.manager
    manager.initialize()
    while driven.has(S.INITIALIZING):
        driven.send(InitProducerId(NO_PRODUCER_ID))
        driven.fail(error("COORDINATOR_NOT_AVAILABLE"), TransactionApi.FIND_COORDINATOR)
    assert 10.0 - TIMER_RESOLUTION_S <= driven.now <= 11.0
    assert driven.has(S.UNINITIALIZED)
    assert "COORDINATOR_NOT_AVAILABLE" in str(manager.error)
    manager.initialize()
    driven.send(InitProducerId(NO_PRODUCER_ID))
    driven.answer(FIRST)
    assert driven.has(S.READY)


def test_partitions_that_cannot_be_added_in_time_abort_the_transaction() -> None:
    driven = Driven().begun()
    driven.manager.add_partitions([TP])
    while driven.has(S.IN_TRANSACTION):
        driven.send(AddPartitions((TP,)))
        driven.fail(LOST)
    assert driven.has(S.ABORTABLE_ERROR)
    assert isinstance(driven.manager.failure(), TransactionAbortedError)


def test_unknown_topic_is_awaited_for_metadata_wait_ms() -> None:
    driven = Driven(2).begun()
    commit = offsets()
    driven.manager.commit_offsets(commit)
    while driven.has(S.IN_TRANSACTION):
        driven.send(CommitOffsets(commit))
        driven.answer(p0="UNKNOWN_TOPIC_OR_PARTITION")
    assert 2.0 <= driven.now <= 2.5
    assert driven.has(S.ABORTABLE_ERROR)


@pytest.mark.parametrize(("is_commit", "text"), [(True, "unknown whether"), (False, "not confirm")])
def test_end_that_exceeds_its_time_is_fatal(is_commit: bool, text: str) -> None:
    driven = Driven().begun().with_partition()
    (driven.manager.begin_commit if is_commit else driven.manager.begin_abort)()
    driven.manager.end()
    while driven.manager.is_open:
        driven.send(EndTransaction(is_commit))
        driven.fail(LOST)
    assert driven.has(S.FATAL_ERROR)
    failure = driven.manager.failure()
    assert isinstance(failure, FatalTransactionError)
    assert text in str(failure).replace("has not confirmed", "not confirm")


# --- Errors ---


@BOTH
def test_failed_record_makes_the_transaction_abortable(version: int) -> None:
    driven = Driven(version).begun().with_partition()
    manager = driven.manager
    manager.on_records_failed(error("MESSAGE_TOO_LARGE"), 0, has_sequence=True)
    assert driven.has(S.ABORTABLE_ERROR)
    assert manager.drops_unsent
    assert "MESSAGE_TOO_LARGE" in str(manager.failure())
    manager.on_records_failed(error("OUT_OF_ORDER_SEQUENCE_NUMBER"), 0, has_sequence=True)
    assert "MESSAGE_TOO_LARGE" in str(manager.failure())
    driven.ended(is_commit=False)
    if version == 2:
        assert driven.has(S.READY)
        assert manager.identity == NEXT
        return
    assert driven.has(S.UNINITIALIZED)
    manager.initialize()
    driven.send(InitProducerId(FIRST))
    driven.answer(NEXT)
    assert manager.identity == NEXT
    manager.begin(0)
    driven.with_partition().ended()
    assert driven.has(S.READY)


def test_record_without_a_sequence_needs_no_epoch_bump() -> None:
    driven = Driven().begun().with_partition()
    driven.manager.on_records_failed(LOST, 0, has_sequence=False)
    driven.ended(is_commit=False)
    assert driven.has(S.READY)


def test_coordinator_without_epoch_bump_ends_the_producer_after_the_abort() -> None:
    driven = Driven().begun().with_partition()
    driven.manager.supports_epoch_bump = False
    driven.manager.on_records_failed(LOST, 0, has_sequence=True)
    driven.ended(is_commit=False)
    assert driven.has(S.FATAL_ERROR)
    assert "is aborted, and a new producer is needed" in str(driven.manager.failure())


def test_records_fail_during_the_commit() -> None:
    driven = Driven().begun().with_partition()
    driven.manager.begin_commit()
    driven.manager.on_records_failed(LOST, 0, has_sequence=True)
    assert driven.has(S.ABORTABLE_ERROR)
    driven.ended(is_commit=False)
    assert driven.has(S.UNINITIALIZED)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("PRODUCER_FENCED", FencedTransactionError),
        ("INVALID_PRODUCER_ID_MAPPING", FatalTransactionError),
    ],
)
def test_fatal_error_of_a_record_ends_the_producer(name: str, kind: type[Exception]) -> None:
    driven = Driven().begun().with_partition()
    driven.manager.on_records_failed(error(name), 0, has_sequence=True)
    assert driven.has(S.FATAL_ERROR)
    assert type(driven.manager.failure()) is kind
    driven.manager.on_records_failed(LOST, 0, has_sequence=True)
    assert type(driven.manager.failure()) is kind


@BOTH
@pytest.mark.parametrize("name", ["PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"])
def test_fenced_end_names_the_timeout_if_it_is_over(version: int, name: str) -> None:
    for lasted_s, text in ((1.0, "taken over"), (61.0, "transaction_timeout_ms (60000)")):
        driven = Driven(version).begun().with_partition()
        driven.now += lasted_s
        driven.manager.begin_commit()
        driven.manager.end()
        driven.send(EndTransaction(is_commit=True))
        driven.fail(error(name))
        failure = driven.manager.failure()
        assert isinstance(failure, FencedTransactionError)
        assert text in str(failure)
        assert "unknown" not in str(failure)


@BOTH
@pytest.mark.parametrize(
    "fault",
    [LOST, *map(error, ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"))],
    ids=lambda each: getattr(each, "name", "LOST"),
)
@pytest.mark.parametrize("name", ["PRODUCER_FENCED", "INVALID_TXN_STATE"])
def test_refusal_after_a_commit_that_may_be_done_is_in_doubt(
    version: int, fault: KprotoError, name: str
) -> None:
    driven = Driven(version).begun().with_partition()
    driven.manager.begin_commit()
    driven.manager.end()
    driven.send(EndTransaction(is_commit=True))
    driven.fail(fault)
    driven.send(EndTransaction(is_commit=True))
    driven.fail(error(name))
    assert "unknown whether the transaction is committed" in str(driven.manager.failure())


@BOTH
@pytest.mark.parametrize("fault", [error("INVALID_TXN_STATE"), error("PRODUCER_FENCED")])
def test_abort_after_a_commit_that_may_be_done_is_in_doubt_if_it_is_refused(
    version: int, fault: KprotoError
) -> None:
    driven = Driven(version).begun()
    driven.manager.on_batch_sent()
    driven.manager.begin_commit()
    driven.manager.end()
    driven.send(EndTransaction(is_commit=True))
    driven.fail(LOST)
    driven.send(EndTransaction(is_commit=True))
    driven.fail(error("TRANSACTION_ABORTABLE"))
    driven.manager.begin_abort()
    driven.manager.end()
    driven.send(EndTransaction(is_commit=False))
    driven.fail(fault)
    assert driven.has(S.FATAL_ERROR)
    assert "unknown whether the transaction is committed" in str(driven.manager.failure())


@BOTH
def test_abort_after_a_commit_that_may_be_done_is_certain_if_it_succeeds(version: int) -> None:
    driven = Driven(version).begun().with_partition()
    driven.manager.begin_commit()
    driven.manager.end()
    driven.send(EndTransaction(is_commit=True))
    driven.fail(LOST)
    driven.send(EndTransaction(is_commit=True))
    driven.fail(error("TRANSACTION_ABORTABLE"))
    driven.ended(is_commit=False)
    assert driven.has(S.READY)
    assert not driven.manager.is_committed


def test_refused_commit_is_aborted() -> None:
    driven = Driven(2).begun().with_partition()
    driven.manager.begin_commit()
    driven.manager.end()
    driven.send(EndTransaction(is_commit=True))
    driven.fail(error("TRANSACTION_ABORTABLE"))
    assert driven.has(S.ABORTABLE_ERROR)
    assert driven.manager.next_request() is None
    driven.ended(is_commit=False)
    assert driven.has(S.READY)


def test_missing_rights_leave_the_producer_uninitialized() -> None:
    driven = Driven()
    driven.manager.initialize()
    driven.send(InitProducerId(NO_PRODUCER_ID))
    driven.fail(error("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"))
    assert driven.has(S.UNINITIALIZED)
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in str(driven.manager.error)


# --- Aborts while requests are in flight ---


def test_abort_waits_for_a_request_in_flight_and_ignores_its_error() -> None:
    driven = Driven().begun()
    driven.manager.add_partitions([TP])
    driven.send(AddPartitions((TP,)))
    driven.manager.begin_abort()
    driven.manager.end()
    assert driven.manager.next_request() is None
    driven.fail(error("TOPIC_AUTHORIZATION_FAILED"))
    driven.send(EndTransaction(is_commit=False))
    driven.answer()
    assert driven.has(S.READY)


def test_partition_that_was_perhaps_added_is_aborted_or_was_not_added() -> None:
    driven = Driven().begun()
    driven.manager.add_partitions([TP])
    driven.send(AddPartitions((TP,)))
    driven.fail(LOST)
    driven.manager.begin_abort()
    driven.manager.end()
    driven.send(EndTransaction(is_commit=False))
    driven.fail(error("INVALID_TXN_STATE"))
    assert driven.has(S.READY)


def test_state_of_an_added_partition_must_be_known() -> None:
    driven = Driven().begun().with_partition()
    driven.manager.begin_abort()
    driven.manager.end()
    driven.send(EndTransaction(is_commit=False))
    driven.fail(error("INVALID_TXN_STATE"))
    assert driven.has(S.FATAL_ERROR)


def test_abort_drops_the_backoff_of_earlier_requests() -> None:
    driven = Driven().begun()
    driven.manager.add_partitions([TP])
    driven.send(AddPartitions((TP,)))
    driven.fail(LOST)
    assert driven.manager.not_before > driven.now
    driven.manager.begin_abort()
    driven.manager.end()
    assert driven.manager.not_before < driven.now


def test_abort_in_doubt_fences_the_producer_in_version_1() -> None:
    driven = Driven().begun().with_partition()
    driven.manager.begin_abort()
    driven.manager.end(is_in_doubt=True)
    driven.send(InitProducerId(FIRST))
    driven.fail(LOST)
    driven.send(InitProducerId(FIRST))
    driven.fail(error("CONCURRENT_TRANSACTIONS"))
    assert driven.has(S.FATAL_ERROR)
    assert "the transaction is aborted, and a new producer" in str(driven.manager.failure())


def test_abort_in_doubt_without_a_transaction_bumps_the_epoch() -> None:
    driven = Driven().begun().with_partition()
    driven.manager.begin_abort()
    driven.manager.end(is_in_doubt=True)
    driven.send(InitProducerId(FIRST))
    driven.answer(NEXT)
    assert driven.has(S.READY)
    assert driven.manager.identity == NEXT


def test_abort_in_doubt_of_version_2_needs_no_fence() -> None:
    driven = Driven(2).begun().with_partition()
    driven.manager.begin_abort()
    driven.manager.end(is_in_doubt=True)
    driven.send(EndTransaction(is_commit=False))


def test_abandoned_end_is_fatal_and_a_late_response_is_ignored() -> None:
    driven = Driven().begun().with_partition()
    driven.manager.begin_commit()
    driven.manager.end()
    driven.send(EndTransaction(is_commit=True))
    driven.manager.give_up()
    assert driven.has(S.FATAL_ERROR)
    driven.answer()
    assert driven.has(S.FATAL_ERROR)


# --- The transaction version ---


def test_epoch_is_bumped_before_the_first_transaction_of_version_2() -> None:
    driven = Driven().begun().with_partition()
    driven.ended()
    driven.manager.use_version(2)
    assert driven.has(S.UNINITIALIZED)
    driven.manager.initialize()
    driven.send(InitProducerId(FIRST))
    driven.answer(NEXT)
    driven.manager.begin(0)
    assert not driven.manager.needs_partition(TP, driven.now)


def test_version_1_again_needs_no_bump() -> None:
    driven = Driven(2).begun().with_partition()
    driven.ended()
    driven.manager.use_version(1)
    assert driven.has(S.READY)
    driven.manager.begin(0)
    assert driven.manager.needs_partition(TP, driven.now)


def test_changes_are_reported() -> None:
    driven = Driven()
    states: list[TransactionState] = []
    driven.manager.on_change = lambda: states.append(driven.manager.state)
    driven.begun().with_partition()
    driven.ended()
    assert list(dict.fromkeys(states)) == [
        S.INITIALIZING,
        S.READY,
        S.IN_TRANSACTION,
        S.COMMITTING_TRANSACTION,
    ]
