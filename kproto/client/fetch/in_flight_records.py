"""What is in the hands of the user: it is not done, and all before it that was handed out is.

The record in hand is found by looking at what is left of its list, when somebody wants to know; so
handing out a record costs what it costs without a group. Knows no broker and no clock but the times
that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from operator import length_hint
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from ...records import Record
from ..metadata.cluster import TopicPartition
from .completed_fetch import CompletedFetch, FetchedBatch, FetchedRecords, FetchedValues
from .fetch_buffer import FetchBuffer, RecordInterceptor
from .partition_state import PartitionState

__all__ = [
    "AdaptiveBatchSize",
    "InFlightRange",
    "InFlightRecords",
    "PollMarker",
    "PollTimer",
    "RecordProcessor",
]

T = TypeVar("T")

#: How often somebody asked for what was not there in a list, and the first offset in hand.
PollMarker: TypeAlias = tuple[int, int]


class InFlightRange(NamedTuple):
    """Something of a partition is in the user's hands: from `offset` on, up to before `behind`."""

    state: PartitionState
    offset: int
    behind: int


class RecordProcessor(Protocol):
    """Who handles several records at once, and knows what of them is done: `running` has it.

    Partitions are known by their state, and by the claim under which they were assigned.
    """

    def first_incomplete(self, state: object) -> int | None:
        """The first offset that is not done; None where all are that were taken."""
        ...

    def incomplete_offsets(self, state: object) -> tuple[int, list[int]] | None:
        """The highest offset that was in hand, and those up to there that are not done; None
        where nothing was, or all is done.
        """
        ...

    def first_queued(self, state: object) -> int | None:
        """The first offset that was taken and never in hand."""
        ...

    @property
    def queued_positions(self) -> dict[TopicPartition, int]:
        """That of each partition of which there are some."""
        ...

    def is_in_flight(self, claims: Collection[object]) -> bool:
        """Whether something of these is in hand."""
        ...

    def oldest_started_at(self, now: float) -> float:
        """Since when the oldest has been in hand; `now` where nothing is."""
        ...

    def drop(self, state: object) -> int | None:
        """No more of a partition is to be begun; returns from where on."""
        ...

    def forget(self, state: object) -> None:
        """The partition is read from elsewhere."""
        ...

    def abandon(self, states: Iterable[object], claims: Collection[object]) -> None:
        """Others have these now."""
        ...

    def pause(self, state: object) -> None:
        """Begin nothing of a partition until it goes on."""
        ...

    def resume(self, state: object) -> None:
        """Go on with one that was paused."""
        ...


class InFlightRecords(FetchBuffer):
    """Handing out that knows what was handed out last and is not done: the next was not asked for.

    Partitions may be set `aside`: what came of them waits until they are taken back. Where somebody
    is `handling` what is handed out, nothing is in hand but what he says.
    """

    __slots__ = ("_aside", "_asked", "_by_record", "_held", "_portions", "_taken", "handling")

    def __init__(self, change: RecordInterceptor | None = None) -> None:
        super().__init__(change)
        self._held: InFlightRange | None = None
        self._by_record: PartitionState | None = None  # the record taken last of the current list
        self._taken: tuple[PartitionState, int] | None = None  # what was last, and from where on
        self._asked = 0
        self._portions = AdaptiveBatchSize()
        self._aside: dict[PartitionState, list[CompletedFetch]] = {}
        self.handling: RecordProcessor | None = None

    # What is in hand

    def asked(self, now: float) -> float:
        """The next is asked for: what is in hand is done. Returns how long it was, in seconds."""
        self._held = self._by_record = None
        self._asked += 1
        return self._portions.asked(now)

    def given(self, now: float) -> None:
        """Something was handed out."""
        self._portions.given(now)

    @property
    def in_hand(self) -> InFlightRange | None:
        """What is in hand."""
        if self.handling is not None:
            return None
        state = self._by_record
        if state is None:
            return self._held
        assert self._current is not None, "a record of it is in hand"
        records = self._current.records
        offset = records[len(records) - length_hint(self._left) - 1].offset
        return InFlightRange(state, offset, offset + 1)

    def _hold(self, held: InFlightRange | None) -> None:
        self._held = held
        self._by_record = None

    @property
    def sign(self) -> PollMarker:
        """Another one than before, where something was asked for since."""
        held = self.in_hand
        return self._asked, -1 if held is None else held.offset

    def done(self, state: PartitionState) -> int:
        """The offset behind what is done of a partition, which has a position."""
        if self.handling is not None:
            lowest = self.handling.first_incomplete(state)
            return self.position_of(state) if lowest is None else lowest
        held = self.in_hand
        if held is not None and held.state is state:
            return held.offset
        return self.position_of(state)

    def ahead(self, state: PartitionState) -> tuple[int, list[int]] | None:
        """Up to where something was in hand, and which offsets before that are not done."""
        return None if self.handling is None else self.handling.incomplete_offsets(state)

    def position_of(self, state: PartitionState) -> int:
        """The offset of the next record of a partition, which has a position."""
        if self.handling is not None:
            first = self.handling.first_queued(state)
            if first is not None:
                return first
        source = self._source
        left = length_hint(self._left)
        if left and self._current is not None and source is not None and source.state is state:
            return self._current.records[-left].offset
        for waiting in self._aside.get(state, ()):
            return waiting.position
        for waiting in self.ready:
            if waiting.state is state:
                return waiting.position
        return state.position

    # What is handed out

    def begin(self, fetched: FetchedRecords) -> Record:
        assert self._held is not None, "the list was taken"
        self._by_record = self._held.state
        first = super().begin(fetched)
        self.rest = islice(self._left, self._portions.size - 1)
        return first

    def take_record(self) -> Record | None:
        source = self._source
        if source is not None and self._current is not None:
            for record in self._left:  # another portion of the same list, which is not copied
                self._by_record = source.state
                self.rest = islice(self._left, self._portions.size - 1)
                return record
        return super().take_record()

    def take_records(self) -> FetchedRecords | None:
        fetched = super().take_records()
        return self._hands_out(fetched, 0 if fetched is None else fetched.records[-1].offset + 1)

    def take_values(self) -> FetchedValues | None:
        fetched = super().take_values()
        return self._hands_out(fetched, 0 if fetched is None else fetched.next_offset)

    def take_batch(self) -> FetchedBatch | None:
        fetched = super().take_batch()
        return self._hands_out(fetched, 0 if fetched is None else fetched.batch.next_offset)

    @property
    def taken_of(self) -> PartitionState:
        """Which partition the list is of that was taken last."""
        assert self._taken is not None, "one was taken"
        return self._taken[0]

    def _hands_out(self, fetched: T | None, behind: int) -> T | None:
        """What was taken is in hand: not so where nothing was, or a hook has left nothing of it."""
        if fetched is not None:
            assert self._taken is not None, "it was taken"
            self._hold(InFlightRange(*self._taken, behind))
        return fetched

    def _first_of(
        self, take: Callable[[CompletedFetch], T | None]
    ) -> tuple[T, CompletedFetch] | None:
        begins = 0

        def looked(waiting: CompletedFetch) -> T | None:
            nonlocal begins
            begins = waiting.position
            return take(waiting)

        found = super()._first_of(looked)
        if found is not None:
            self._taken = found[1].state, begins
        return found

    def _take_rest(self) -> FetchedRecords | None:
        left = super()._take_rest()
        if left is not None and self._source is not None:
            self._taken = self._source.state, left.records[0].offset
        return left

    def put_back_rest(self) -> None:
        held = self.in_hand
        super().put_back_rest()
        self._hold(held)

    # Partitions that go, and that wait

    def drop(self, state: PartitionState) -> int:
        """Hand out no more of a partition; returns the offset behind what was handed out."""
        held = self.in_hand
        dropped = None if self.handling is None else self.handling.drop(state)
        position = self.position_of(state) if dropped is None else dropped
        super().drop(state)
        if held is not None and held.state is state:
            self._hold(held)  # what is left of its list is gone
        self._aside.pop(state, None)
        return position

    def drop_for_another_log(self, state: PartitionState) -> int:
        """The same; what somebody handles of it is not done, and comes again if it is there."""
        undone = None if self.handling is None else self.handling.first_incomplete(state)
        position = self.drop(state)
        self.forget(state)
        return position if undone is None else min(position, undone)

    def set_back(self, state: PartitionState) -> None:
        if self.handling is not None:
            self.drop(state)
            self.forget(state)

    def set_aside(self, state: PartitionState) -> None:
        """Hand out nothing of a partition until it is taken back, and keep what has come."""
        if self._source is not None and self._source.state is state:
            self.put_back_rest()
        self._aside[state] = [waiting for waiting in self.ready if waiting.state is state]
        left = [waiting for waiting in self.ready if waiting.state is not state]
        self.ready.clear()
        self.ready.extend(left)

    def take_back(self, state: PartitionState) -> None:
        """Hand out a partition that was set aside."""
        self.ready.extend(self._aside.pop(state, ()))

    def forget(self, state: PartitionState) -> None:
        """It was dropped, and is read from elsewhere: what is in hand of it does not count."""
        if self.handling is not None:
            self.handling.forget(state)

    def pause(self, state: PartitionState) -> None:
        """Begin nothing of what was taken of a partition."""
        if self.handling is not None:
            self.handling.pause(state)

    def go_on(self, state: PartitionState) -> None:
        """Go on with it."""
        if self.handling is not None:
            self.handling.resume(state)

    def add(self, waiting: CompletedFetch) -> None:
        aside = self._aside.get(waiting.state)
        if aside is None:
            super().add(waiting)
        else:
            aside.append(waiting)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        found = {
            (state.topic, state.partition): waiting[0].position
            for state, waiting in self._aside.items()
            if waiting
        }
        found |= super().positions
        return found if self.handling is None else found | self.handling.queued_positions


class AdaptiveBatchSize:
    """How many records of a list are handed out without a look at the session, `size`.

    A handler that does not wait for anything holds up the event loop, and with it heartbeats and
    commits; and the machine may be asleep between any two records: the slower the handler is, the
    fewer. Times in seconds of the client's clock.
    """

    __slots__ = ("_given_at", "size")

    def __init__(self) -> None:
        self.size = _FIRST_PORTION
        self._given_at: float | None = None

    def given(self, now: float) -> None:
        """Some were handed out."""
        self._given_at = now

    def asked(self, now: float) -> float:
        """They are done; returns how long that took, 0 where nothing was handed out."""
        if self._given_at is None:
            return 0.0
        took, self._given_at = now - self._given_at, None
        fitting = self.size * _PORTION_S / max(took, _TINY_S)
        if took < _PAUSE_S:
            fitting = max(fitting, self.size / _GROWTH)
        self.size = max(1, int(min(fitting, self.size * _GROWTH, _MOST)))
        return took


#: A portion shall take so long, in seconds: a handler of more gets one record at a time, and a look
#: costs a hundredth of it.
_PORTION_S: Final = 0.0004
_TINY_S: Final = 1e-6

#: What is shorter, in seconds, may have been the system, which had others go on meanwhile: then the
#: next is not much smaller.
_PAUSE_S: Final = 0.02

#: Until it is known how fast the handler is; and how much larger the next may be.
_FIRST_PORTION: Final = 1
_GROWTH: Final = 4

#: The largest: a fast handler may become slow within it. With half of it reading as a member costs
#: 6 % more than by hand, in place of 2.
_MOST: Final = 512


class PollTimer:
    """Since when nobody has asked for anything, as far as those who look can tell: not later.

    Times in seconds of the client's clock.
    """

    __slots__ = ("_sign", "since")

    def __init__(self, now: float) -> None:
        self._sign: PollMarker | None = None
        self.since = now

    def look(self, sign: PollMarker, now: float, *, is_asking: bool) -> None:
        """Take note of a sign of the reader; `is_asking` while he waits for what he asked for."""
        if is_asking or sign != self._sign:
            self._sign = sign
            self.since = now
