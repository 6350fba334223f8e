"""Tests when the transaction of `run` accepts records, when it commits and when it aborts."""

from __future__ import annotations

import pytest

from kproto import ClientSettings
from kproto.client.processing.transaction_cycle import CyclePhase, CycleStep, TransactionCycle

TIMEOUT_MS = 10_000


@pytest.fixture
def cycle() -> TransactionCycle:
    return TransactionCycle(ClientSettings(), TIMEOUT_MS)


def step(cycle: TransactionCycle, now: float = 0.0, *, can_commit: bool = True) -> CycleStep:
    return cycle.next_step(now, can_commit=can_commit).step


def commit(cycle: TransactionCycle) -> None:
    cycle.on_commit_started()
    cycle.on_committed()


def accepts(cycle: TransactionCycle) -> bool:
    return cycle.accepts_records


def overdue(cycle: TransactionCycle) -> bool:
    return cycle.is_overdue


def is_open(cycle: TransactionCycle) -> bool:
    return cycle.is_open


def test_commit_follows_a_request(cycle: TransactionCycle) -> None:
    assert step(cycle) is CycleStep.WAIT
    request = cycle.request_commit()
    assert not cycle.is_done(request)
    assert step(cycle) is CycleStep.COMMIT
    assert not accepts(cycle)
    commit(cycle)
    assert accepts(cycle)
    assert cycle.is_done(request)
    assert step(cycle) is CycleStep.WAIT


def test_request_during_a_commit_needs_another_one(cycle: TransactionCycle) -> None:
    first = cycle.request_commit()
    assert step(cycle) is CycleStep.COMMIT
    cycle.on_commit_started()
    second = cycle.request_commit()
    cycle.on_committed()
    assert cycle.is_done(first)
    assert not cycle.is_done(second)
    assert step(cycle) is CycleStep.COMMIT
    commit(cycle)
    assert cycle.is_done(second)


def test_commit_waits_for_appends(cycle: TransactionCycle) -> None:
    cycle.on_append(7)
    cycle.on_begun(0.0)
    cycle.request_commit()
    assert step(cycle) is CycleStep.WAIT
    assert not accepts(cycle)
    cycle.on_append_done()
    assert step(cycle) is CycleStep.COMMIT
    assert cycle.is_touched([6, 7])
    number = cycle.number
    commit(cycle)
    assert cycle.number == number + 1
    assert not cycle.is_touched([7])
    assert not is_open(cycle)


def test_records_are_accepted_while_the_member_is_in_no_generation(
    cycle: TransactionCycle,
) -> None:
    cycle.on_begun(0.0)
    cycle.request_commit()
    found = cycle.next_step(1.0, can_commit=False)
    assert found.step is CycleStep.WAIT
    assert 1.0 < found.at < 1.2
    assert accepts(cycle)
    assert step(cycle, 2.0) is CycleStep.COMMIT


def test_commit_is_postponed_if_the_generation_ends_before_it(cycle: TransactionCycle) -> None:
    cycle.request_commit()
    assert step(cycle) is CycleStep.COMMIT
    cycle.postpone_commit()
    assert accepts(cycle)
    assert step(cycle, can_commit=False) is CycleStep.WAIT
    assert step(cycle) is CycleStep.COMMIT


def test_transaction_is_aborted_before_its_timeout_if_it_cannot_be_committed(
    cycle: TransactionCycle,
) -> None:
    cycle.on_begun(0.0)
    cycle.request_commit()
    half = TIMEOUT_MS / 1000 / 2
    assert step(cycle, half - 0.1, can_commit=False) is CycleStep.WAIT
    assert step(cycle, half, can_commit=False) is CycleStep.RESTART
    assert overdue(cycle)
    cycle.on_restarted(half)
    assert not overdue(cycle)


def test_restart_aborts_once_and_backs_off(cycle: TransactionCycle) -> None:
    cycle.on_append(7)
    cycle.on_begun(0.0)
    assert cycle.restart()
    assert not cycle.restart()
    assert not accepts(cycle)
    assert step(cycle) is CycleStep.RESTART
    waits = []
    for now in range(3):
        cycle.on_restart_failed(float(now))
        found = cycle.next_step(float(now), can_commit=True)
        assert found.step is CycleStep.RESTART
        waits.append(found.at - now)
    assert waits == sorted(waits)
    assert waits[0] > 0
    cycle.on_append_done()
    cycle.on_restarted(3.0)
    assert accepts(cycle)
    assert not cycle.is_touched([7])
    assert cycle.restart()
    assert cycle.next_step(3.0, can_commit=True).at > 3.0
    cycle.on_restarted(4.0)
    commit(cycle)
    assert cycle.restart()
    assert cycle.next_step(4.0, can_commit=True).at == 4.0


def test_restart_during_a_commit_follows_it(cycle: TransactionCycle) -> None:
    cycle.request_commit()
    assert step(cycle) is CycleStep.COMMIT
    assert cycle.restart()
    commit(cycle)
    assert step(cycle) is CycleStep.RESTART


def test_requested_commit_is_kept_by_a_restart(cycle: TransactionCycle) -> None:
    cycle.request_commit()
    assert cycle.restart()
    cycle.on_restarted(0.0)
    assert step(cycle) is CycleStep.COMMIT


def test_failure_ends_all_steps(cycle: TransactionCycle) -> None:
    request = cycle.request_commit()
    cycle.fail()
    assert cycle.phase is CyclePhase.FAILED
    assert step(cycle) is CycleStep.END
    assert cycle.is_done(request)
    assert not cycle.restart()
    commit(cycle)
    cycle.on_restarted(0.0)
    assert step(cycle) is CycleStep.END
