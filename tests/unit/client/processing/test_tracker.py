"""Which records may be handled: whatever happens, order is kept, and what is done is known.

The oracle beside it has nothing but the records that were taken, and what became of each.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kproto.client.processing.settings import Order
from kproto.client.processing.shards import OrderedShard, Shard, UnorderedShard
from kproto.client.processing.tracker import Tracker
from kproto.records import Record

PARTITIONS = 3
MAX_AHEAD = 8

KEYS = st.sampled_from([None, b"a", b"b", b"c"])
GAPS = st.integers(1, 3)


def _taken_of(lane: Shard) -> Record:
    if isinstance(lane, OrderedShard):
        record = next(lane.rest)
        lane.is_busy = True
        return record
    assert isinstance(lane, UnorderedShard)
    record = lane.ready.popleft()
    lane.edge = max(lane.edge, record.offset)
    return record


class State:
    """A partition that is assigned; another one each time."""

    def __init__(self, place: tuple[str, int], position: int) -> None:
        self.place = place
        self.position = position
        self.taken: list[Record] = []
        self.done: set[int] = set()
        self.is_there = True
        self.is_paused = False

    @property
    def first_undone(self) -> int | None:
        return next((each.offset for each in self.taken if each.offset not in self.done), None)


class Machine(RuleBasedStateMachine):
    order: ClassVar[Order] = "partition"

    @initialize(seed=st.integers(0, 2**32), is_ended=st.booleans())
    def begin(self, seed: int, is_ended: bool) -> None:
        self.chance = Random(seed) if is_ended else None
        self.tracker = Tracker(self.order, MAX_AHEAD)
        self.states = [State(("t", at), 0) for at in range(PARTITIONS)]
        self.in_hand: list[tuple[State, Shard, Record]] = []
        self.put_off: list[tuple[State, Shard, Record]] = []
        self.going: list[tuple[State, int | None]] = []
        self.now = 0.0

    # What happens

    @rule(at=st.integers(0, PARTITIONS - 1), made=st.lists(st.tuples(GAPS, KEYS), min_size=1))
    def more_comes(self, at: int, made: list[tuple[int, bytes | None]]) -> None:
        state = self.states[at]
        if state.is_paused:
            return
        records = []
        for gap, key in made:
            state.position += gap
            records.append(Record(state.position, key=key, topic="t", partition=at))
        state.taken += records
        self.tracker.add(state, state, state.place, records)

    @rule()
    def one_is_begun(self) -> None:
        lane = self.tracker.next_lane()
        if lane is None:
            assert not self.may_begin(), "something could be handled"
            return
        record = _taken_of(lane)
        state: Any = lane.state
        assert not state.is_paused, "it was paused"
        assert state.is_there, "it was to go"
        assert record.offset in self.allowed(state), f"{record} is out of order"
        self.put_off = [each for each in self.put_off if each[2] is not record]
        self.in_hand.append((state, lane, record))

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data(), failed=st.integers(0, 3))
    def one_ends(self, data: st.DataObject, failed: int) -> None:
        at = data.draw(st.integers(0, len(self.in_hand) - 1))
        state, lane, record = self.in_hand.pop(at)
        if failed:
            lane.done(record)
            state.done.add(record.offset)
        else:
            lane.failed(record)
            lane.put_off(record)
            self.put_off.append((state, lane, record))
            self.tracker.later(lane, record, self.now + 1)
        self.tracker.put_back(lane)

    @rule(seconds=st.floats(0.1, 2))
    def time_goes_on(self, seconds: float) -> None:
        self.now += seconds
        self.tracker.ripe(self.now, 0)

    @rule(at=st.integers(0, PARTITIONS - 1), is_paused=st.booleans())
    def one_is_paused(self, at: int, is_paused: bool) -> None:
        state = self.states[at]
        if state.is_paused != is_paused and self.tracker.lane_of(state) is not None:
            state.is_paused = is_paused
            (self.tracker.pause if is_paused else self.tracker.go_on)(state)

    @rule(at=st.integers(0, PARTITIONS - 1))
    def one_goes(self, at: int) -> None:
        state = self.states[at]
        if self.tracker.lane_of(state) is None:
            return
        state.is_there = state.is_paused = False
        highest = max(state.done | self.offsets_in_hand(state), default=-1)
        dropped = self.tracker.part(state)
        if dropped is not None:
            assert dropped not in state.done
            assert dropped not in self.offsets_in_hand(state)
            undone = [each.offset for each in state.taken if each.offset not in state.done]
            assert dropped > highest
            assert dropped in undone
            state.taken = [each for each in state.taken if each.offset < dropped]
            assert all(offset < dropped for offset in state.done), "it would come again"
        self.put_off = [each for each in self.put_off if each[0] is not state]
        self.going.append((state, dropped))
        self.states[at] = State(state.place, state.position)

    @precondition(lambda self: self.going)
    @rule(data=st.data())
    def one_is_lost(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.going) - 1))
        state, _ = self.going.pop(at)
        self.tracker.lose(state)
        hands = [each for each in self.in_hand if each[0] is state]
        self.in_hand = [each for each in self.in_hand if each[0] is not state]
        assert self.tracker.is_under_way([state]) == bool(hands)
        for _, lane, record in hands:
            lane.done(record)
            self.tracker.put_back(lane)
        assert not self.tracker.is_under_way([state])
        assert self.tracker.lowest(state) is None

    def it_ends(self, chance: Random) -> None:
        """All partitions are to end: so they do as soon as nothing is in hand."""
        self.tracker.part_all()
        for _ in range(10_000):
            if self.tracker.is_idle and not self.in_hand:
                break
            self.now += 1
            self.tracker.ripe(self.now, 0)
            if chance.random() < 0.5:
                state = chance.choice(self.states)
                self.tracker.pause(state)
            assert self.tracker.next_lane() is None, "nothing more is to be begun"
            if self.in_hand and chance.random() < 0.6:
                state, lane, record = self.in_hand.pop(chance.randrange(len(self.in_hand)))
                what = chance.random()
                if what < 0.3:
                    lane.failed(record)
                    lane.put_off(record)
                    self.tracker.later(lane, record, self.now + 1)
                elif what < 0.4:
                    lane.leave(record)
                else:
                    lane.done(record)
                    state.done.add(record.offset)
                self.tracker.put_back(lane)
        assert self.tracker.is_idle, "it would wait for drain_timeout_ms"
        for state in self.states:
            first = state.first_undone
            assert self.tracker.lowest(state) == first
        states = [*self.states, *(state for state, _ in self.going)]
        undone = {each: each.first_undone for each in states if each.first_undone is not None}
        assert self.tracker.left_undone() == undone

    # What holds

    def offsets_in_hand(self, state: State) -> set[int]:
        return {record.offset for its, _, record in self.in_hand if its is state}

    def allowed(self, state: State) -> set[int]:
        """The offsets of those that may be begun now."""
        undone = [each for each in state.taken if each.offset not in state.done]
        busy = self.offsets_in_hand(state)
        waiting = {each.offset for its, _, each in self.put_off if its is state}
        found = set()
        keys: set[bytes] = set()
        for record in undone:
            is_free = record.offset not in busy
            if self.order == "partition":
                is_free = is_free and record is undone[0]
            elif record.offset >= undone[0].offset + MAX_AHEAD:
                break
            elif self.order == "key" and record.key is not None:
                is_free = is_free and record.key not in keys
                keys.add(record.key)
            if is_free:
                found.add(record.offset)
        del waiting  # they may be offered already: that they are late is looked at in `may_begin`
        return found

    def may_begin(self) -> bool:
        """Whether something must be there to be begun."""
        waiting = {id(record) for _, _, record in self.put_off}
        return any(
            {each.offset for each in state.taken if id(each) not in waiting} & self.allowed(state)
            for state in self.states
            if not state.is_paused
        )

    @invariant()
    def what_is_not_done_is_known(self) -> None:
        for state in getattr(self, "states", ()):
            assert self.tracker.lowest(state) == state.first_undone
        for state, dropped in getattr(self, "going", ()):
            lowest = self.tracker.lowest(state)
            assert lowest == state.first_undone, (state.done, dropped)
        states = [*getattr(self, "states", ()), *(each for each, _ in getattr(self, "going", ()))]
        for state in states:
            self.what_is_done_ahead_is_known(state)

    def what_is_done_ahead_is_known(self, state: State) -> None:
        first = state.first_undone
        done = set() if first is None else {offset for offset in state.done if offset > first}
        ahead = self.tracker.ahead(state)
        if ahead is None:
            assert not done
            return
        edge, undone = ahead
        assert undone == sorted(undone)
        assert undone[0] == first
        offsets = [each.offset for each in state.taken]
        assert {at for at in offsets if undone[0] < at <= edge and at not in undone} == done

    def teardown(self) -> None:
        """All that is there comes to its end, when nothing fails any more."""
        if not hasattr(self, "states"):
            return
        if self.chance is not None:
            self.it_ends(self.chance)
            return
        for at in range(PARTITIONS):
            self.one_is_paused(at, False)
        for _ in range(10_000):
            self.now += 1
            self.tracker.ripe(self.now, 0)
            while self.in_hand:
                state, lane, record = self.in_hand.pop()
                lane.done(record)
                state.done.add(record.offset)
                self.tracker.put_back(lane)
            if not self.tracker.ready and self.tracker.is_idle:
                break
            self.one_is_begun()
        assert all(state.first_undone is None for state in self.states)


@pytest.mark.parametrize("order", ["partition", "key", "none"])
def test_whatever_happens_order_is_kept_and_what_is_done_is_known(order: Order) -> None:
    machine = type("Ordered", (Machine,), {"order": order})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=50, stateful_step_count=40, deadline=None)
    )


def test_a_record_that_waited_behind_its_key_waits_for_the_end_of_the_pause_too() -> None:
    tracker = Tracker("key", MAX_AHEAD)
    state = State(("t", 0), 0)
    records = [Record(at, key=b"a", topic="t", partition=0) for at in range(2)]
    lane = tracker.add(state, state, state.place, records)
    assert isinstance(lane, UnorderedShard)
    assert tracker.next_lane() is lane
    assert lane.ready.popleft() is records[0]
    tracker.pause(state)
    lane.done(records[0])
    tracker.put_back(lane)
    assert tracker.next_lane() is None
    tracker.go_on(state)
    assert tracker.next_lane() is lane
    assert lane.ready.popleft() is records[1]


@pytest.mark.parametrize("order", ["partition", "key", "none"])
@pytest.mark.parametrize(("size", "most"), [(0, 1_000), (100, 1_000), (1 << 20, 8), (1 << 25, 1)])
def test_a_partition_is_held_back_by_how_much_waits_in_all(
    order: Order, size: int, most: int
) -> None:
    tracker = Tracker(order, 100_000)
    state = State(("t", 0), 0)
    value = bytes(size)
    lane = tracker.add(state, state, state.place, [Record(0)])
    tracker.pause(state)  # so that nobody looks at what comes
    offset = 0
    while not offset or lane.waiting < most:
        assert not offset or not tracker.is_full(lane)
        offset += 1
        tracker.add(state, state, state.place, [Record(offset, value=value)])
    assert tracker.is_full(lane)
    lane.is_full = True
    tracker.go_on(state)
    while tracker.is_full(lane):
        assert tracker.next_lane() is lane
        lane.done(_taken_of(lane))
        tracker.put_back(lane)
    assert lane.waiting <= most // 2


@pytest.mark.parametrize("order", ["key", "none"])
def test_few_large_records_are_looked_out_and_yet_one_for_another_worker(order: Order) -> None:
    tracker = Tracker(order, 100_000)
    state = State(("t", 0), 0)
    for offset in range(9):
        tracker.add(state, state, state.place, [Record(offset, value=bytes(1 << 22))])
    in_hand: list[Record] = []
    for _ in range(9):
        lane = tracker.next_lane()
        assert isinstance(lane, UnorderedShard)
        assert len(lane.ready) == min(2, 9 - len(in_hand))
        in_hand.append(_taken_of(lane))
    assert [each.offset for each in in_hand] == [*range(9)]


@pytest.mark.parametrize("order", ["partition", "key", "none"])
def test_what_waits_in_a_retry_topic_does_so_no_longer_as_the_time_of_day_is_set_back(
    order: Order,
) -> None:
    tracker = Tracker(order, MAX_AHEAD)
    state = State(("t", 0), 0)
    hour_ms = 3_600_000
    tracker.add(state, state, state.place, [Record(0)], [hour_ms + 2_000], 2.0)
    tracker.ripe(0.0, hour_ms)
    assert tracker.next_due == 2.0
    tracker.add(state, state, state.place, [Record(1)], [1_500 + 2_000], 3.5)
    tracker.ripe(1.5, 1_500)  # it was set back by an hour
    tracker.ripe(1.9, 1_900)
    assert tracker.next_lane() is None
    for now, offset, then in ((2.0, 0, 3.5), (3.5, 1, float("inf"))):
        tracker.ripe(now, now * 1000 - 100)
        assert tracker.next_due == then
        lane = tracker.next_lane()
        assert lane is not None
        record = _taken_of(lane)
        assert record.offset == offset
        lane.done(record)
        tracker.put_back(lane)
        assert tracker.next_lane() is None


def test_what_comes_has_a_retry_topic_looked_at_by_the_time_of_day_that_is_now() -> None:
    tracker = Tracker("none", MAX_AHEAD)
    state = State(("t", 0), 0)
    tracker.add(state, state, state.place, [Record(0)], [60_000], 60.0)
    tracker.ripe(0.0, 0)
    assert tracker.next_due == 60.0
    tracker.add(state, state, state.place, [Record(1)], [60_000 + 70_000], 61.0)
    tracker.ripe(1.0, 70_000)  # it was set forward by 69 s
    lane = tracker.next_lane()
    assert lane is not None
    assert _taken_of(lane).offset == 0
    assert tracker.next_due == 60.0
    tracker.ripe(60.0, 129_000)
    assert tracker.next_due == 61.0
    assert tracker.next_lane() is None
