"""Tests the start and end offsets of leader epochs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.storage.leader_epoch_cache import EpochEnd, LeaderEpochCache


def test_a_new_log_is_in_its_first_epoch() -> None:
    history = LeaderEpochCache()
    assert history.current == 0
    assert history.at(0) == history.at(99) == 0
    assert history.end_of(0, log_end=7) == EpochEnd(0, 7)
    assert history.end_of(1, log_end=7) is None


def test_an_epoch_ends_where_the_next_begins() -> None:
    history = LeaderEpochCache()
    history.assign(3, 10)
    history.assign(5, 20)
    assert [history.at(offset) for offset in (9, 10, 19, 20, 21)] == [0, 3, 3, 5, 5]
    assert history.end_of(0, 30) == EpochEnd(0, 10)
    assert history.end_of(4, 30) == EpochEnd(3, 20), "the largest known epoch"
    assert history.end_of(5, 30) == EpochEnd(5, 30)
    assert history.end_of(6, 30) is None


def test_epoch_without_records_is_replaced() -> None:
    history = LeaderEpochCache()
    history.assign(1, 10)
    history.assign(2, 10)
    assert history.end_of(1, 30) == EpochEnd(0, 10)
    assert history.current == 2


def test_after_a_truncation_the_new_epoch_begins_at_the_new_end() -> None:
    history = LeaderEpochCache()
    history.assign(1, 10)
    history.assign(2, 4)
    assert history.at(4) == 2
    assert history.end_of(1, 5) == EpochEnd(0, 4)
    assert history.end_of(0, 5) == EpochEnd(0, 4)


def test_epoch_before_the_first_ends_at_its_start() -> None:
    history = LeaderEpochCache()
    history.assign(4, 0)
    assert history.end_of(3, 9) == EpochEnd(3, 0)
    assert history.end_of(-1, 9) is None, "no epoch at all"


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), max_size=20))
def test_offset_belongs_to_epoch_that_ends_after_it(
    steps: list[tuple[int, int]],
) -> None:
    history, written, end = LeaderEpochCache(), [], 0
    for rise, count in steps:
        history.assign(history.current + rise, end)
        written += [history.current] * count
        end += count
    for offset, epoch in enumerate(written):
        assert history.at(offset) == epoch
        found = history.end_of(epoch, end)
        assert found is not None
        assert found.epoch == epoch
        assert found.end_offset > offset
