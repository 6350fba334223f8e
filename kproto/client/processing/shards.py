"""The records of one partition that were taken to be handled, and which of them may be now.

Sans-IO: no task, no clock. In a lane of order "partition" one record is in hand at a time; in the
others any may be whose key has none in hand. Offsets are never counted: what is not done is known,
so gaps of compaction and of transactions do not matter. What a record costs is a few steps on
lists and dicts, as a lane of empty handlers is to be near plain iteration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import repeat, takewhile
from operator import attrgetter, length_hint
from typing import Final

from ...records import Record
from ..metadata.cluster import TopicPartition

__all__ = ["OrderedShard", "Shard", "UnorderedShard"]

_NEVER: Final = float("inf")

_offset_of: Final = attrgetter("offset")

#: Records that may be handled are looked out so many at a time.
_CHUNK: Final = 256

#: With so many records that nobody has looked at, a partition is held back; and with less than half
#: of that it goes on. Two of the lists that reading gives at a time: so there is always one while
#: the next is made, and memory holds no more.
_ENOUGH: Final = 1_000

#: With so many bytes of values it is, too: large records come one or a few with a fetch, which is
#: of 1 MiB by default. How large they are is seen by so many of a list.
_ENOUGH_BYTES: Final = 8 << 20
_LOOKED_AT: Final = 16


class Shard(ABC):
    """Records of `place` that are not done, in the order of their offsets.

    `incoming` has lists that nobody has looked at, `early` records of a retry topic that are not
    due yet, each behind when it is, by the time of day and by the clock that is never set back.
    `attempts` has those that failed, with how often. A lane that
    `is_parting` gets no more, and begins nothing: `dropped` is the first offset behind all that
    were in hand that it has given up. One that `is_lost` counts for nothing. `is_ready` where it
    waits among the ready ones, `is_timed` where it is looked at again later, `is_full` where its
    partition is held back, as `enough` records wait or more.
    """

    __slots__ = (
        "attempts",
        "claim",
        "dropped",
        "early",
        "enough",
        "incoming",
        "is_full",
        "is_lost",
        "is_parting",
        "is_paused",
        "is_ready",
        "is_timed",
        "place",
        "state",
        "waiting",
    )

    def __init__(
        self,
        state: object,
        claim: object,
        place: TopicPartition,
    ) -> None:
        self.state = state
        self.claim = claim
        self.place = place
        self.incoming: deque[list[Record]] = deque()
        self.early: deque[tuple[float, float, Record]] = deque()
        self.attempts: dict[int, int] = {}
        self.waiting = 0  # records in `incoming` and `early`
        self.enough = _ENOUGH
        self.is_full = False
        self.is_lost = False
        self.is_parting = False
        self.is_paused = False
        self.is_ready = False
        self.is_timed = False
        self.dropped: int | None = None

    def add(
        self, records: list[Record], due_ms: list[float] | None = None, due: float = _NEVER
    ) -> None:
        """Take records behind all that were taken before; there is one at least.

        Those of a retry topic come with when each is due, in ms since 1970, and when all of them
        are, whatever the time of day is then: not before those that came before.
        """
        self.waiting += len(records)
        self.enough = _enough_of(records)
        if due_ms is None:
            self.incoming.append(records)
        else:
            self.early.extend(zip(due_ms, repeat(due), records))

    def ripen(self, now: float, now_ms: float) -> float | None:
        """Let what is due be handled; returns when the next one is, as far as can be told now.

        They stay in their order: one behind another is earlier only where the time of day was set
        back meanwhile, and then it waits for the one before.
        """
        early = self.early
        ripe: list[Record] = []
        while early and (early[0][0] <= now_ms or early[0][1] <= now):
            ripe.append(early.popleft()[2])
        if ripe:
            self.incoming.append(ripe)
        return min(early[0][1], now + (early[0][0] - now_ms) / 1000) if early else None

    def failed(self, record: Record) -> int:
        """The handler has failed with it, once more; returns how often that was."""
        count = self.attempts.get(record.offset, 0) + 1
        self.attempts[record.offset] = count
        return count

    def _next_list(self) -> list[Record]:
        records = self.incoming.popleft()
        self.waiting -= len(records)
        return records

    def _drop_incoming(self) -> None:
        self.incoming.clear()
        self.early.clear()
        self.waiting = 0

    def _first_incoming(self) -> int | None:
        if self.incoming:
            return self.incoming[0][0].offset
        return self.early[0][2].offset if self.early else None

    @abstractmethod
    def has_work(self) -> bool:
        """Whether something may be handled now; looks it out."""

    @abstractmethod
    def lowest(self) -> int | None:
        """The first offset that is not done; None where all are that were taken."""

    def ahead(self) -> tuple[int, list[int]] | None:
        """The highest offset that was in hand, and those up to there that are not done; None
        where none of them is done behind one that is not.
        """
        return None

    @abstractmethod
    def first_waiting(self) -> int | None:
        """The first offset that was never in hand; None where there is none."""

    @abstractmethod
    def in_hand(self) -> bool:
        """Whether something is in hand."""

    @abstractmethod
    def done(self, record: Record) -> None:
        """It is handled, or sent on."""

    @abstractmethod
    def put_off(self, record: Record) -> None:
        """It failed, and is to be handled again once it is `offer`ed; nothing that it holds up is
        before.
        """

    @abstractmethod
    def offer(self, record: Record) -> None:
        """One that was put off may be handled again."""

    @abstractmethod
    def leave(self, record: Record) -> None:
        """It failed, and will not be handled again here: it is not done, and stays so."""

    @abstractmethod
    def part(self) -> None:
        """Take no more, and begin nothing: what is not in hand is not done, and stays so."""

    @abstractmethod
    def lose(self) -> None:
        """Handle no more of it, and forget what was taken, but for what is in hand."""

    @abstractmethod
    def pause(self) -> None:
        """Have nothing more handled until it goes on."""

    @abstractmethod
    def go_on(self) -> None:
        """Go on after a pause."""


def _enough_of(records: list[Record]) -> int:
    """How many like these may wait to be looked at."""
    looked_at = records[:: len(records) // _LOOKED_AT + 1]
    size = sum(len(record.value or b"") for record in looked_at) // len(looked_at)
    return max(1, min(_ENOUGH, _ENOUGH_BYTES // max(1, size)))


class OrderedShard(Shard):
    """One record after the other: they are taken from `rest`, and `is_busy` while one is in hand.

    Which one that is, is found by looking at what is left, when somebody wants to know; so are the
    `handled` of a portion, that are more than the `counted` first ones of the list.
    """

    __slots__ = ("_is_put_off", "_records", "counted", "is_busy", "rest")

    def __init__(
        self,
        state: object,
        claim: object,
        place: TopicPartition,
    ) -> None:
        super().__init__(state, claim, place)
        self._records: list[Record] = []
        self.rest: Iterator[Record] = iter(())
        self.counted = 0
        self.is_busy = False
        self._is_put_off = False

    @property
    def taken(self) -> int:
        """How many records of the current list were taken."""
        return len(self._records) - length_hint(self.rest)

    @property
    def handled(self) -> int:
        """How many were handled that nobody has counted yet."""
        return self.taken - self.is_busy - self.counted

    def _have(self, records: list[Record]) -> None:
        self.counted = 0
        self._records = records
        self.rest = iter(records)

    def has_work(self) -> bool:
        if self.is_busy or self._is_put_off or self.is_paused:
            return False
        if not length_hint(self.rest):
            if not self.incoming:
                return False
            self._have(self._next_list())
        return not self.is_parting

    def lowest(self) -> int | None:
        if self.is_busy:
            return self._records[self.taken - 1].offset
        return self.first_waiting()

    def first_waiting(self) -> int | None:
        left = length_hint(self.rest)
        return self._records[-left].offset if left else self._first_incoming()

    def in_hand(self) -> bool:
        return self.is_busy

    def done(self, record: Record) -> None:
        self.is_busy = False
        self.attempts.clear()

    def put_off(self, record: Record) -> None:
        self._is_put_off = True
        self.leave(record)

    def offer(self, record: Record) -> None:
        self._is_put_off = False

    def leave(self, record: Record) -> None:
        self.is_busy = False
        self._have([record, *self.rest])

    def part(self) -> None:
        if not self.is_parting:
            self.dropped = self.first_waiting()
            self._stop()
            self.is_parting = True
            self._drop_incoming()

    def lose(self) -> None:
        self._stop()
        self.is_parting = self.is_lost = True
        self._drop_incoming()

    def _stop(self) -> list[Record]:
        """Have who takes from `rest` find nothing more; returns what was left of it."""
        left = list(self.rest)
        if left:
            self._records = self._records[: -len(left)]
        return left

    def cut(self) -> None:
        """Have who takes from `rest` come back, who goes on with what is left of it later."""
        left = self._stop()
        if left:
            self.incoming.appendleft(left)
            self.waiting += len(left)

    def pause(self) -> None:
        self.is_paused = True
        self.cut()

    def go_on(self) -> None:
        self.is_paused = False


class UnorderedShard(Shard):
    """Several records at once: those that may be handled now are `ready`, `left` are not done.

    With `by_key` a record waits while another one of its key is ready or in hand: `strands` has
    these keys, with what waits behind. The first and the last that is handled or done are less than
    `max_ahead` offsets apart; `edge` is the highest offset that was in hand. `_stuck` are those of
    `left` that will not be handled here.
    """

    __slots__ = (
        "_held",
        "_put_off",
        "_stuck",
        "by_key",
        "edge",
        "left",
        "max_ahead",
        "ready",
        "strands",
    )

    def __init__(
        self,
        state: object,
        claim: object,
        place: TopicPartition,
        *,
        by_key: bool,
        max_ahead: int,
    ) -> None:
        super().__init__(state, claim, place)
        self.by_key = by_key
        self.max_ahead = max_ahead
        self.ready: deque[Record] = deque()
        self.left: dict[int, Record] = {}
        self.strands: dict[bytes, deque[Record] | None] = {}
        self.edge = -1
        self._held: deque[Record] = deque()  # may be handled once the pause is over
        self._put_off: set[int] = set()
        self._stuck: set[int] = set()

    def has_work(self) -> bool:
        if self.incoming and len(self.ready) < self._chunk and not self.is_paused:
            self._look_out()
        return bool(self.ready)

    @property
    def _chunk(self) -> int:
        """How many are to be looked out; with two there is one for another worker, too."""
        return max(2, min(_CHUNK, self.enough))

    def _look_out(self) -> None:
        """See which of those that came may be handled."""
        incoming = self.incoming
        left = self.left
        first = next(iter(left)) if left else incoming[0][0].offset
        limit = first + self.max_ahead
        count = len(self.ready)
        while incoming and count < self._chunk:
            records = incoming[0]
            if records[-1].offset < limit:
                incoming.popleft()
            else:
                end = bisect_left(records, limit, key=_offset_of)
                if not end:
                    return
                incoming[0] = records[end:]
                records = records[:end]
            count += len(records)
            self.waiting -= len(records)
            self._sort_in(records)

    def _sort_in(self, records: list[Record]) -> None:
        left = self.left
        if not self.by_key:
            for record in records:
                left[record.offset] = record
            self.ready.extend(records)
            return
        add = self.ready.append
        strands = self.strands
        for record in records:
            left[record.offset] = record
            key = record.key
            if key is None:
                add(record)
            elif key not in strands:
                strands[key] = None
                add(record)
            else:
                behind = strands[key]
                if behind is None:
                    strands[key] = deque((record,))
                else:
                    behind.append(record)

    def done(self, record: Record) -> None:
        if self.attempts:
            self.attempts.pop(record.offset, None)
        self.left.pop(record.offset, None)
        key = record.key
        if key is None or not self.by_key:
            return
        behind = self.strands.get(key)
        if behind:
            (self._held if self.is_paused else self.ready).append(behind.popleft())
        else:
            self.strands.pop(key, None)

    def lowest(self) -> int | None:
        for offset in self.left:
            return offset
        return self._first_incoming()

    def ahead(self) -> tuple[int, list[int]] | None:
        edge = self.edge
        undone = [*takewhile(lambda offset: offset <= edge, self.left)]
        return (edge, undone) if undone else None

    def first_waiting(self) -> int | None:
        never = [record.offset for record in self._unhandled() if record.offset > self.edge]
        return min(never) if never else self._first_incoming()

    def _unhandled(self) -> Iterable[Record]:
        yield from self.ready
        yield from self._held
        for behind in self.strands.values():
            yield from behind or ()

    def in_hand(self) -> bool:
        return len(self.left) > len(self._stuck)

    def put_off(self, record: Record) -> None:
        if self.is_parting:
            self.leave(record)
        else:
            self._put_off.add(record.offset)

    def offer(self, record: Record) -> None:
        if record.offset in self._put_off:
            self._put_off.discard(record.offset)
            (self._held if self.is_paused else self.ready).appendleft(record)

    def leave(self, record: Record) -> None:
        if record.offset in self.left:
            self._stuck.add(record.offset)
            key = record.key
            if self.by_key and key is not None:
                behind = self.strands.get(key)
                self._stuck.update(each.offset for each in behind or ())
                self.strands[key] = None

    def part(self) -> None:
        if self.is_parting:
            return
        self.is_parting = True
        first = self._first_incoming()
        self._drop_incoming()
        dropped = [offset for offset in self.left if offset > self.edge]
        for offset in dropped:
            del self.left[offset]
        waiting = self._put_off | {record.offset for record in self._unhandled()}
        self._stuck.update(waiting & self.left.keys())
        self._forget_waiting()
        self.dropped = min(dropped, default=first)

    def lose(self) -> None:
        self.is_parting = self.is_lost = True
        self._drop_incoming()
        for record in [*self._unhandled()]:
            del self.left[record.offset]
        for offset in self._put_off | self._stuck:
            self.left.pop(offset, None)
        self._stuck.clear()
        self._forget_waiting()

    def _forget_waiting(self) -> None:
        """Nothing more is begun of it."""
        self.ready.clear()
        self._held.clear()
        self._put_off.clear()
        self.strands = dict.fromkeys(self.strands)

    def pause(self) -> None:
        self.is_paused = True
        self._held.extend(self.ready)
        self.ready.clear()

    def go_on(self) -> None:
        self.is_paused = False
        self.ready.extend(self._held)
        self._held.clear()
