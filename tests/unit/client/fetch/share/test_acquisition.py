"""Tests the states of acquired offsets, and their encoding in requests."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.fetch.share.acquisition import (
    AcknowledgeType,
    Acquisition,
    LockLostError,
    OffsetState,
    ShareOrigin,
    ShareRecord,
    ack_runs,
    acknowledged_ranges,
)
from kproto.records import Record
from kproto.records.record import BatchOrigin
from kproto.wire.errors import ConfigurationError
from kproto.wire.uuid import ZERO_UUID

GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
RENEWING, LOST, SENT, OPEN = OffsetState

NOW, LOCKED_UNTIL = 100.0, 130.0


def acquired(count: int = 4, first: int = 10) -> Acquisition:
    """Returns an acquisition of `count` offsets from `first` on, locked for 30 s."""
    return Acquisition(object(), 1, ("t", 0), ZERO_UUID, first, first + count - 1, 1, LOCKED_UNTIL)


@pytest.mark.parametrize("kind", [ACCEPT, RELEASE, REJECT])
@pytest.mark.parametrize("state", [OPEN, RENEW, RENEWING])
def test_acknowledgeable_offset_takes_the_acknowledgement(
    kind: AcknowledgeType, state: int
) -> None:
    its = acquired()
    its.states[1] = state
    its.acknowledge(11, kind, NOW)
    assert its.states[1] == kind
    assert its.is_acknowledged(11)


@pytest.mark.parametrize("kind", [ACCEPT, RELEASE, REJECT, RENEW])
@pytest.mark.parametrize("state", [GAP, ACCEPT, RELEASE, REJECT, SENT])
def test_second_acknowledgement_is_refused(kind: AcknowledgeType, state: int) -> None:
    its = acquired()
    its.states[1] = state
    with pytest.raises(ConfigurationError, match=r"t\[0\] at offset 11 is acknowledged already"):
        its.acknowledge(11, kind, NOW)
    assert its.states[1] == state


@pytest.mark.parametrize(("state", "now"), [(LOST, NOW), (OPEN, LOCKED_UNTIL), (RENEWING, 131.0)])
def test_acknowledgement_after_the_lock_is_refused(state: int, now: float) -> None:
    its = acquired()
    its.states[1] = state
    with pytest.raises(LockLostError, match="its acknowledgement came after the acquisition lock"):
        its.acknowledge(11, ACCEPT, now)


def test_renewed_offset_can_be_acknowledged_after_the_answer() -> None:
    its = acquired()
    its.acknowledge(10, RENEW, NOW)
    its.acknowledge(11, ACCEPT, NOW)
    sent = its.take()
    assert list(its.states) == [RENEWING, SENT, OPEN, OPEN]
    its.on_answered(sent, 160.0)
    assert list(its.states) == [OPEN, SENT, OPEN, OPEN]
    assert its.locked_until_of(10) == 160.0
    its.acknowledge(10, ACCEPT, 150.0)


def test_renewal_of_one_offset_does_not_extend_the_lock_of_another() -> None:
    its = acquired()
    its.acknowledge(10, RENEW, NOW)
    its.on_answered(its.take(), 160.0)
    assert (its.locked_until, its.last_locked_until) == (LOCKED_UNTIL, 160.0)
    with pytest.raises(LockLostError):
        its.acknowledge(11, ACCEPT, 150.0)
    its.acknowledge(10, ACCEPT, 150.0)


def test_renewal_of_all_offsets_that_are_left_is_that_of_the_acquisition() -> None:
    its = acquired()
    its.acknowledge(10, ACCEPT, NOW)
    its.take()
    for offset in (11, 12, 13):
        its.acknowledge(offset, RENEW, NOW)
    its.on_answered(its.take(), 160.0)
    assert its.locked_until == its.last_locked_until == 160.0


def test_acknowledgements_are_split_by_the_locks_of_their_offsets() -> None:
    its = acquired()
    its.acknowledge(10, RENEW, NOW)
    its.on_answered(its.take(), 160.0)
    its.acknowledge(11, RELEASE, NOW)
    its.acknowledge(10, ACCEPT, NOW)
    sent = its.take()
    assert its.split_by_lock(sent, 120.0) == (sent, None)
    kept, lost = its.split_by_lock(sent, 150.0)
    assert kept is not None
    assert lost is not None
    assert list(kept) == [ACCEPT, LOST, LOST, LOST]
    assert list(lost) == [LOST, RELEASE, OPEN, OPEN]
    assert its.split_by_lock(sent, 160.0) == (None, sent)


def test_acknowledgement_during_a_renewal_is_kept_by_the_answer() -> None:
    its = acquired()
    its.acknowledge(10, RENEW, NOW)
    sent = its.take()
    its.acknowledge(10, ACCEPT, NOW)
    its.on_answered(sent, 160.0)
    assert its.states[0] == ACCEPT
    assert its.has_unsent


def test_refused_renewal_loses_the_lock() -> None:
    its = acquired()
    its.acknowledge(10, RENEW, NOW)
    its.on_refused(its.take())
    with pytest.raises(LockLostError):
        its.acknowledge(10, ACCEPT, NOW)


def test_answer_without_renewals_keeps_the_lock_time() -> None:
    its = acquired()
    its.acknowledge(10, ACCEPT, NOW)
    its.on_answered(its.take(), 160.0)
    assert its.locked_until == LOCKED_UNTIL


def test_restored_acknowledgements_are_sent_again() -> None:
    its = acquired()
    its.acknowledge(10, ACCEPT, NOW)
    its.acknowledge(11, RENEW, NOW)
    sent = its.take()
    its.restore(sent)
    assert its.take() == sent


def test_missing_offsets_are_gaps() -> None:
    its = acquired()
    assert its.acknowledge_gaps(10, [10, 12], GAP)
    assert list(its.states) == [OPEN, GAP, OPEN, OPEN]
    assert its.has_unsent
    assert not its.acknowledge_gaps(13, [13], GAP)
    assert its.acknowledge_open(GAP, 13)
    assert list(its.states) == [OPEN, GAP, OPEN, GAP]


def test_open_offsets_are_acknowledged_together() -> None:
    its = acquired()
    its.acknowledge(11, REJECT, NOW)
    assert its.acknowledge_open(ACCEPT, 10)
    assert list(its.states) == [ACCEPT, REJECT, ACCEPT, ACCEPT]
    assert not its.acknowledge_open(ACCEPT, 10)


def test_only_open_offsets_of_a_run_are_acknowledged() -> None:
    its = acquired()
    assert its.acknowledge_open(ACCEPT, 11, 12)
    assert list(its.states) == [OPEN, ACCEPT, ACCEPT, OPEN]
    assert not its.acknowledge_open(RELEASE, 11, 12)


def test_equal_acknowledgements_are_one_batch_with_one_type() -> None:
    assert [*ack_runs(5, bytes([ACCEPT] * 20))] == [(5, 24, bytes([ACCEPT]))]


def test_long_runs_are_batches_of_their_own_and_short_ones_are_listed() -> None:
    states = bytes([ACCEPT] * 12 + [RELEASE, ACCEPT, REJECT] + [OPEN] + [ACCEPT])
    assert [*ack_runs(0, states)] == [
        (0, 11, bytes([ACCEPT])),
        (12, 14, bytes([RELEASE, ACCEPT, REJECT])),
        (16, 16, bytes([ACCEPT])),
    ]


@given(st.lists(st.sampled_from([*AcknowledgeType, *OffsetState]), min_size=1, max_size=60))
def test_runs_have_exactly_the_acknowledgements(states: list[int]) -> None:
    found: dict[int, int] = {}
    last = -1
    for run in ack_runs(100, bytes(states)):
        assert run.first > last
        last = run.last
        count = run.last - run.first + 1
        types = run.types * count if len(run.types) == 1 else run.types
        assert len(types) == count
        found |= dict(enumerate(types, run.first))
    assert found == {at: kind for at, kind in enumerate(states, 100) if kind <= RENEW}
    offsets = [offset for each in acknowledged_ranges(100, bytes(states)) for offset in each]
    assert offsets == [at for at, kind in enumerate(states, 100) if 0 < kind <= RENEW]


def test_record_has_the_delivery_count_of_its_acquisition() -> None:
    its = acquired()
    its.delivery_count = 3
    record = Record(11, value=b"v", topic="t", partition=0)
    origin = BatchOrigin("t", 0, 1, 7, 10)
    record.__class__ = ShareRecord
    record._origin = ShareOrigin.of(origin, its)
    assert isinstance(record, ShareRecord)
    assert (record.delivery_count, record.acquisition, record.timestamp_type) == (3, its, 1)
    for copied in (copy.copy(record), pickle.loads(pickle.dumps(record))):
        assert (copied.delivery_count, copied.value) == (3, b"v")
    assert pickle.loads(pickle.dumps(record)).acquisition is None
