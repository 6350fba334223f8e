"""Which records may be handled now, which again and when, and up to where each partition is done.

Sans-IO: times are passed in, in seconds of the client's clock, those of retry topics in ms since
1970, too: as that may be set back, such a record is due at the earlier of two moments. Partitions
are known by their `state`: one that comes back after it went has another, and what was in hand of
the one before counts for nothing.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Container, Iterator
from itertools import count
from typing import Final

from ...records import Record
from ..metadata.cluster import TopicPartition
from .settings import Order
from .shards import OrderedShard, Shard, UnorderedShard

__all__ = ["Tracker"]

_NEVER: Final = float("inf")


class Tracker:
    """The lanes of all partitions that are handled; those that are `ready` take turns."""

    def __init__(self, order: Order, max_ahead: int) -> None:
        self._order = order
        self._max_ahead = max_ahead
        self._lanes: dict[object, Shard] = {}
        self._parting: set[Shard] = set()
        self.ready: deque[Shard] = deque()
        self._later: list[tuple[float, int, Shard, Record | None]] = []
        self._came: list[Shard] = []
        self._numbers = count()

    # What comes

    def add(
        self,
        state: object,
        claim: object,
        place: TopicPartition,
        records: list[Record],
        due_ms: list[float] | None = None,
        due: float = _NEVER,
    ) -> Shard:
        """Take records of a partition; of a retry topic with when each is due: see `Shard.add`.

        `ripe` is to be asked then.
        """
        lane = self._lanes.get(state)
        if lane is None:
            lane = self._lanes[state] = self._lane(state, claim, place)
        lane.add(records, due_ms, due)
        if due_ms is None:
            self._queue(lane)
        else:
            self._came.append(lane)
        return lane

    def _lane(self, state: object, claim: object, place: TopicPartition) -> Shard:
        if self._order == "partition":
            return OrderedShard(state, claim, place)
        by_key = self._order == "key"
        return UnorderedShard(state, claim, place, by_key=by_key, max_ahead=self._max_ahead)

    # Turns

    def _queue(self, lane: Shard) -> None:
        if self._parting and self._has_one_before(lane):
            return
        if not lane.is_ready and lane.has_work():
            lane.is_ready = True
            self.ready.append(lane)

    def _has_one_before(self, lane: Shard) -> bool:
        """Whether something is in hand of what was taken before the log became another one, or
        before somebody went elsewhere in it."""
        return any(
            each.claim == lane.claim and each is not lane and each.in_hand()
            for each in self._parting
        )

    def next_lane(self) -> Shard | None:
        """A lane in which something may be handled now; one of several at once stays ready."""
        while self.ready:
            lane = self.ready.popleft()
            lane.is_ready = False
            if lane.has_work():
                if isinstance(lane, UnorderedShard) and len(lane.ready) > 1:
                    lane.is_ready = True
                    self.ready.append(lane)
                return lane
        return None

    def put_back(self, lane: Shard) -> None:
        """Somebody has handled what he wanted of it."""
        self._queue(lane)
        self._forget_if_over(lane)
        if lane.is_parting:
            for behind in self._lanes.values():
                if behind.claim == lane.claim and behind is not lane:
                    self._queue(behind)

    def _forget_if_over(self, lane: Shard) -> None:
        if lane in self._parting and not lane.in_hand() and (lane.is_lost or lane.lowest() is None):
            self._parting.discard(lane)

    # What failed

    def later(self, lane: Shard, record: Record | None, due: float) -> None:
        """Have a record that was put off offered then; None: look for what is due of the lane."""
        if record is None:
            lane.is_timed = True
        heapq.heappush(self._later, (due, next(self._numbers), lane, record))

    @property
    def next_due(self) -> float:
        """When `ripe` is to be asked again."""
        return self._later[0][0] if self._later else _NEVER

    def ripe(self, now: float, now_ms: float) -> None:
        """Let what is due be handled."""
        while self._came:
            self._look_at(self._came.pop(), now, now_ms)
        while self._later and self._later[0][0] <= now:
            _, _, lane, record = heapq.heappop(self._later)
            if lane.is_lost:
                continue
            if record is not None:
                lane.offer(record)
                self._queue(lane)
            else:
                lane.is_timed = False
                self._look_at(lane, now, now_ms)

    def _look_at(self, lane: Shard, now: float, now_ms: float) -> None:
        due = lane.ripen(now, now_ms)
        if due is not None and not lane.is_timed:
            self.later(lane, None, due)
        self._queue(lane)

    # Up to where

    def lowest(self, state: object) -> int | None:
        """The first offset of a partition that is not done; None where all are that were taken."""
        found = None
        for lane in self._lanes_of(state):
            if not lane.is_lost:
                found = _first(found, lane.lowest())
        lane_now = self._lanes.get(state)
        return found if lane_now is None else _first(found, lane_now.dropped)

    def ahead(self, state: object) -> tuple[int, list[int]] | None:
        """See `Shard.ahead`, of the lane that has the first offset that is not done."""
        lowest = self.lowest(state)
        for lane in self._lanes_of(state):
            if not lane.is_lost and lane.lowest() == lowest:
                return lane.ahead()
        return None

    def _lanes_of(self, state: object) -> Iterator[Shard]:
        lane = self._lanes.get(state)
        if lane is not None:
            yield lane
        for parting in self._parting:
            if parting.state is state:
                yield parting

    def lane_of(self, state: object) -> Shard | None:
        """The lane of a partition of which records come."""
        return self._lanes.get(state)

    def first_waiting(self, state: object) -> int | None:
        """The first offset of those that were taken and never in hand."""
        lane = self._lanes.get(state)
        return None if lane is None else lane.first_waiting()

    @property
    def waiting(self) -> dict[TopicPartition, int]:
        """That of each partition of which there are some."""
        found = {lane.place: lane.first_waiting() for lane in self._lanes.values()}
        return {place: offset for place, offset in found.items() if offset is not None}

    def is_under_way(self, claims: Container[object]) -> bool:
        """Whether something of these partitions is in hand."""
        lanes = [*self._lanes.values(), *self._parting]
        return any(lane.claim in claims and lane.in_hand() for lane in lanes)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in hand."""
        return not any(lane.in_hand() for lane in (*self._lanes.values(), *self._parting))

    # Partitions that go, and that wait

    def part(self, state: object) -> int | None:
        """Begin no more of a partition.

        Returns the first offset that was dropped, None where none was: who goes on with the
        partition goes on there.
        """
        lane = self._lanes.pop(state, None)
        if lane is None:
            return None
        lane.part()
        self._parting.add(lane)
        self._forget_if_over(lane)
        return lane.dropped

    def part_all(self) -> None:
        """The same with all, which stay what they are: what they have dropped is not done."""
        for lane in self._lanes.values():
            lane.part()

    def lose(self, state: object) -> None:
        """What is in hand of a partition counts for nothing, and the rest is dropped."""
        for lane in [*self._lanes_of(state)]:
            lane.lose()
            self._lanes.pop(state, None)
            self._parting.add(lane)
            self._forget_if_over(lane)

    def pause(self, state: object) -> None:
        """Begin nothing of a partition until it goes on."""
        lane = self._lanes.get(state)
        if lane is not None:
            lane.pause()

    def go_on(self, state: object) -> None:
        """Go on with a partition that was paused."""
        lane = self._lanes.get(state)
        if lane is not None:
            lane.go_on()
            self._queue(lane)

    def is_full(self, lane: Shard) -> bool:
        """Whether its partition is to be held back now."""
        limit = max(1, lane.enough // 2) if lane.is_full else lane.enough
        return not lane.is_parting and lane.waiting >= limit

    def left_undone(self) -> dict[object, int]:
        """The first offset of each partition that is not done; those that go are among them."""
        states = {*self._lanes, *(lane.state for lane in self._parting)}
        found = {state: self.lowest(state) for state in states}
        return {state: offset for state, offset in found.items() if offset is not None}


def _first(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
