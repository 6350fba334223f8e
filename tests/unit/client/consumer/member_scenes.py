"""What `test_cancelled_members` cancels: coroutines of a consumer whose member is a real one.

A row of `ROWS` brings a consumer to where the coroutine under test begins, and gives that one. What
callbacks wait for is of `ON_ASSIGNED` and `ON_REVOKED`; what goes on beside, `beside_members` says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import kproto
from kproto import GroupConsumer, Record, Stop
from kproto.client.groups.protocol_selection import GroupMember
from kproto.client.groups.state_machine import MembershipStateMachine
from kproto.client.metadata.cluster import TopicPartition
from tests.unit.client.consumer.members_on_cluster import (
    PARTITIONS,
    TOPIC,
    Again,
    Key,
    Stage,
    next_unless,
)

__all__ = [
    "BY_HAND",
    "ME",
    "ON_ASSIGNED",
    "ON_REVOKED",
    "ROWS",
    "InCallback",
    "Row",
    "Scene",
]

#: Who is cancelled.
ME: Final = "me"

PLACES: Final = [(TOPIC, at) for at in range(PARTITIONS)]


@dataclass
class Scene:
    """A consumer on a stage. `ends` where the coroutine under test closes it."""

    stage: Stage
    client: kproto.Client
    consumer: GroupConsumer
    expected: int = PARTITIONS  #: partitions that it gets
    ends: bool = False
    ends_if_cancelled: bool = False
    closes_again: bool = False  #: whoever was cancelled as he closed it
    again: Again = Again.NONE  #: behind the end, where it was not cancelled
    in_hand: list[Key] = field(default_factory=list)
    _records: AsyncIterator[Any] | None = None

    @property
    def records(self) -> AsyncIterator[Any]:
        self._records = self._records or aiter(self.consumer)
        return self._records

    def make(self, **given: Any) -> GroupConsumer:
        """Another consumer in the place of the one that there was; no one has begun yet."""
        self.consumer = self.stage.consumer(self.client, ME, **given)
        return self.consumer

    async def enter(self) -> None:
        """Join, and be given what is to be had."""
        await self.consumer.__aenter__()
        await self.stage.until(lambda: len(self.consumer.assignment) == self.expected)

    def is_done(self) -> None:
        """What is in hand is done."""
        for key in self.in_hand:
            self.stage.ledger.is_done(key)
        self.in_hand = []

    def have(self, partition: int, *offsets: int) -> None:
        for offset in offsets:
            self.stage.ledger.handed_out(ME, (partition, offset))
            self.in_hand.append((partition, offset))

    async def take(self, count: int) -> None:
        """Ask for so many records; half of the partitions have some eight."""
        for _ in range(count):
            self.is_done()
            record = await anext(self.records)
            self.have(record.partition, record.offset)

    async def take_all(self) -> None:
        """Read until every record is done, here or there."""
        over = asyncio.ensure_future(self.stage.ledger.all_done.wait())
        try:
            while True:
                self.is_done()
                if over.done() or self.stage.ledger.all_done.is_set():
                    break
                record = await next_unless(over, self.records)
                if record is not None:
                    self.have(record.partition, record.offset)
        finally:
            over.cancel()

    @property
    def member(self) -> MembershipStateMachine[Any, Any]:
        """Where its member stands."""
        assert isinstance(self.consumer._member, GroupMember)
        return self.consumer._member._member._membership

    async def hears_of_a_rebalance(self) -> None:
        """Wait until a member that has partitions knows that the group agrees anew."""
        if self.consumer.assignment:
            await self.stage.until(lambda: self.member.phase.name != "STABLE")

    def will_end(self, again: Again = Again.NONE) -> None:
        """The coroutine under test ends the consumer; cancelled, its commits may not be made."""
        self.ends = True
        self.again = again


Row = Callable[[Scene], Awaitable[Awaitable[object]]]
ROWS: dict[str, Row] = {}


def row(function: Row) -> Row:
    ROWS[function.__name__] = function
    return function


# Reading


@row
async def the_whole_life(scene: Scene) -> Awaitable[object]:
    scene.will_end()

    async def live() -> None:
        async with scene.consumer:
            await scene.take(3)
            await scene.consumer.commit()
            await scene.take(3)
            scene.is_done()

    return live()


@row
async def entering_and_the_first_record(scene: Scene) -> Awaitable[object]:
    await scene.consumer.__aenter__()
    return scene.take(1)


@row
async def the_next_records(scene: Scene) -> Awaitable[object]:
    scene.make(max_partition_fetch_bytes=1)  # a batch at a time
    await scene.enter()
    await scene.take(3)
    return scene.take(5)


@row
async def batches(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    iteration = scene.consumer.record_lists()

    async def read() -> None:
        for _ in range(3):
            scene.is_done()
            fetched = await anext(iteration)
            scene.have(fetched.partition, *(record.offset for record in fetched.records))

    return read()


@row
async def values(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    iteration = scene.consumer.values()

    async def read() -> None:
        for _ in range(3):
            scene.is_done()
            fetched = await anext(iteration)
            offsets = range(fetched.next_offset - len(fetched.values), fetched.next_offset)
            scene.have(fetched.partition, *offsets)

    return read()


@row
async def raw_batches(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    iteration = scene.consumer.raw_batches()

    async def read() -> None:
        for _ in range(3):
            scene.is_done()
            fetched = await anext(iteration)
            batch = fetched.batch
            scene.have(fetched.partition, *range(batch.base_offset, batch.next_offset))

    return read()


# Handling


async def handling(scene: Scene, count: int, **given: Any) -> None:
    """Have so many records handled, each of which takes its time."""
    handled = 0

    async def handle(record: Record) -> None:
        nonlocal handled
        key = (record.partition, record.offset)
        scene.stage.ledger.handed_out(ME, key)
        await scene.stage.clock.sleep(0.2)
        scene.stage.ledger.is_done(key)
        handled += 1
        if handled == count:
            raise Stop(done=True)

    await scene.consumer.run(handle, stop_on=(), **given)


@row
async def running(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return handling(scene, 5)


@row
async def running_in_any_order(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return handling(scene, 5, order="none")


# Commits


@row
async def committing(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(6)
    return scene.consumer.commit()


@row
async def committing_with_metadata(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(6)
    return scene.consumer.commit(None, "said")


@row
async def committing_a_record(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(5)
    scene.is_done()
    record = await anext(scene.records)
    scene.have(record.partition, record.offset)
    scene.is_done()
    return ours(scene.consumer.commit(record))


@row
async def committing_a_list(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    fetched = await anext(scene.consumer.record_lists())
    scene.have(fetched.partition, *(record.offset for record in fetched.records))
    scene.is_done()
    return ours(scene.consumer.commit(fetched))


@row
async def committing_offsets(scene: Scene) -> Awaitable[object]:
    scene.make(auto_commit=False)
    scene.stage.ledger.again = Again.UNCOMMITTED
    await scene.enter()
    await scene.take(6)
    partition, offset = scene.in_hand[-1]
    scene.is_done()
    return ours(scene.consumer.commit({(TOPIC, partition): offset + 1}, "m"))


@row
async def committing_one_behind_the_other(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(6)
    before = asyncio.ensure_future(scene.consumer.commit())
    before.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.sleep(0)
    return scene.consumer.commit(None, "behind")


async def ours(commit: Awaitable[object]) -> None:
    """A commit of what may have gone to others meanwhile."""
    try:
        await commit
    except kproto.CommitFailedError as error:
        if "not assigned to this consumer" not in str(error):
            raise


# Looking


def mine(scene: Scene) -> TopicPartition:
    """The first of the partitions that are assigned."""
    return min(scene.consumer.assignment)


async def as_long_as_it_is_mine(looking: Awaitable[object]) -> None:
    try:
        await looking
    except kproto.ConfigurationError as error:
        if "is not assigned to this consumer" not in str(error):
            raise


@row
async def looking_at_commits(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(2)
    return scene.consumer.committed(*PLACES)


@row
async def looking_for_a_position(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return as_long_as_it_is_mine(scene.consumer.position(mine(scene)))


@row
async def seeking_to_the_start(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(5)
    scene.is_done()
    scene.stage.ledger.again = Again.ANY
    scene.consumer.seek(mine(scene), "earliest")
    return as_long_as_it_is_mine(scene.consumer.position(mine(scene)))


@row
async def seeking_and_reading(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(5)
    scene.is_done()
    scene.stage.ledger.again = Again.ANY
    for place in scene.consumer.assignment:
        scene.consumer.seek(place, 0)
    return scene.take(3)


@row
async def looking_for_the_lag(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(1)
    return scene.consumer.lag()


@row
async def looking_for_times(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return scene.consumer.offsets_for_times(dict.fromkeys(PLACES, 5))


# Other topics, other partitions


@row
async def subscribing_again(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(3)
    partition, offset = scene.in_hand[-1]
    scene.is_done()
    await scene.consumer.commit({(TOPIC, partition): offset + 1})  # nothing is in hand any more

    async def change() -> None:
        scene.consumer.unsubscribe()
        try:
            while not scene.member.is_out:
                await scene.stage.clock.sleep(0.1)
        finally:
            scene.consumer.subscribe(TOPIC)
        await scene.take(4)

    return change()


@row
async def subscribing_again_at_once(scene: Scene) -> Awaitable[object]:
    scene.make(max_partition_fetch_bytes=1)
    await scene.enter()
    await scene.take(3)
    scene.consumer.unsubscribe()
    scene.consumer.subscribe(TOPIC)
    return scene.take(5)


@row
async def rebalancing(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(3)
    scene.consumer.enforce_rebalance("as you like")
    return scene.take(6)


# The end


@row
async def leaving(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(6)
    scene.is_done()
    scene.will_end()
    return scene.consumer.__aexit__(None, None, None)


@row
async def leaving_by_an_error(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(6)
    scene.will_end(Again.IN_HAND)
    return scene.consumer.__aexit__(ValueError, ValueError(), None)


@row
async def leaving_before_it_has_joined(scene: Scene) -> Awaitable[object]:
    await scene.consumer.__aenter__()
    scene.will_end()
    return scene.consumer.__aexit__(None, None, None)


@row
async def closing(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(6)
    scene.will_end(Again.IN_HAND)
    return scene.consumer.close()


@row
async def closing_without_leaving(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(6)
    scene.will_end(Again.IN_HAND)
    return scene.consumer.close(leave=False)


@row
async def closing_a_static_member(scene: Scene) -> Awaitable[object]:
    scene.make(instance_id="first")
    await scene.enter()
    await scene.take(6)
    scene.will_end(Again.IN_HAND)
    return scene.consumer.close()


@row
async def closing_a_static_member_for_good(scene: Scene) -> Awaitable[object]:
    scene.make(instance_id="first")
    await scene.enter()
    await scene.take(6)
    scene.will_end(Again.IN_HAND)
    return scene.consumer.close(leave=True)


@row
async def closing_twice(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(6)
    scene.will_end(Again.IN_HAND)
    scene.closes_again = True
    return scene.consumer.close()


@row
async def unsubscribing_and_leaving(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.take(6)
    scene.is_done()
    scene.will_end()
    scene.consumer.unsubscribe()
    return scene.consumer.__aexit__(None, None, None)


@row
async def closing_while_somebody_waits(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    scene.consumer.pause(*scene.consumer.assignment)
    asked = asyncio.ensure_future(anext(aiter(scene.consumer)))
    asked.add_done_callback(lambda done: done.cancelled() or done.exception())
    for _ in range(3):
        await asyncio.sleep(0)
    scene.will_end()
    return scene.consumer.close()


# Partitions by hand


BY_HAND: dict[str, Row] = {}


def by_hand(scene: Scene) -> None:
    scene.make(topics=PLACES)
    scene.stage.ledger.takes(ME, PLACES)


def row_by_hand(function: Row) -> Row:
    BY_HAND[function.__name__] = function
    return function


@row_by_hand
async def entering_by_hand(scene: Scene) -> Awaitable[object]:
    by_hand(scene)
    scene.ends_if_cancelled = True
    return scene.consumer.__aenter__()


@row_by_hand
async def reading_by_hand(scene: Scene) -> Awaitable[object]:
    by_hand(scene)
    await scene.consumer.__aenter__()
    return scene.take(5)


@row_by_hand
async def committing_by_hand(scene: Scene) -> Awaitable[object]:
    by_hand(scene)
    await scene.consumer.__aenter__()
    await scene.take(5)
    return scene.consumer.commit()


@row_by_hand
async def leaving_by_hand(scene: Scene) -> Awaitable[object]:
    by_hand(scene)
    await scene.consumer.__aenter__()
    await scene.take(5)
    scene.is_done()
    scene.will_end()
    return scene.consumer.__aexit__(None, None, None)


# Within callbacks


#: What a callback waits for, of the partitions that it is told.
InCallback = Callable[[Scene, list[TopicPartition]], Awaitable[object]]


def done_of(scene: Scene, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    return {place: scene.stage.ledger.done_of(place[1]) for place in places}


ON_REVOKED: Final[dict[str, InCallback]] = {
    "commit": lambda scene, places: scene.consumer.commit(),
    "commit_offsets": lambda scene, places: scene.consumer.commit(done_of(scene, places), "m"),
    "committed": lambda scene, places: scene.consumer.committed(*places),
    "offsets_for_times": lambda scene, places: scene.consumer.offsets_for_times(
        dict.fromkeys(places, 5)
    ),
}
ON_ASSIGNED: Final[dict[str, InCallback]] = ON_REVOKED | {
    "lag": lambda scene, places: scene.consumer.lag(),
    "position": lambda scene, places: scene.consumer.position(places[0]),
}
