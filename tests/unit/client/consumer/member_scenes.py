"""Prepares the consumer coroutines that `test_cancelled_members` cancels.

The consumers read from an embedded cluster. Each row of `ROWS` and `MANUAL_ROWS` prepares a
consumer and returns the coroutine under test. In `ROWS` the consumer is a member of a group; in
`MANUAL_ROWS` the caller assigns its partitions. `ON_ASSIGNED` and `ON_REVOKED` have the coroutines
that rebalance callbacks await. `beside_members` defines the events that happen at the same time.
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
    Key,
    Redelivery,
    Stage,
    next_unless,
)

__all__ = [
    "MANUAL_ROWS",
    "ME",
    "ON_ASSIGNED",
    "ON_REVOKED",
    "ROWS",
    "InCallback",
    "Row",
    "Scene",
]

#: The name of the member under test, whose coroutine is cancelled.
ME: Final = "me"

ALL_PARTITIONS: Final = [(TOPIC, at) for at in range(PARTITIONS)]


@dataclass
class Scene:
    """The consumer under test, and the cluster and members of its `stage`.

    `ends` is true if the coroutine under test closes the consumer. `ends_if_cancelled` is true if
    a cancellation of this coroutine closes the consumer.
    """

    stage: Stage
    client: kproto.Client
    consumer: GroupConsumer
    expected: int = PARTITIONS  #: partitions that the group assigns to the consumer
    ends: bool = False
    ends_if_cancelled: bool = False
    closes_again: bool = False  #: the caller closes again after a cancelled close
    redelivery: Redelivery = Redelivery.NONE  #: allowed if no call was cancelled
    in_flight: list[Key] = field(default_factory=list)
    _records: AsyncIterator[Any] | None = None

    @property
    def records(self) -> AsyncIterator[Any]:
        self._records = self._records or aiter(self.consumer)
        return self._records

    def make(self, **given: Any) -> GroupConsumer:
        """Replaces the consumer, which must not have started, and returns the new one."""
        self.consumer = self.stage.consumer(self.client, ME, **given)
        return self.consumer

    async def enter(self) -> None:
        """Joins the group and waits for the expected number of partitions."""
        await self.consumer.__aenter__()
        await self.stage.until(lambda: len(self.consumer.assignment) == self.expected)

    def mark_processed(self) -> None:
        """Marks the records in flight as processed in the ledger."""
        for key in self.in_flight:
            self.stage.ledger.mark_processed(key)
        self.in_flight = []

    def deliver(self, partition: int, *offsets: int) -> None:
        """Marks records as delivered in the ledger, and adds them to `in_flight`."""
        for offset in offsets:
            self.stage.ledger.record_delivered(ME, (partition, offset))
            self.in_flight.append((partition, offset))

    async def poll(self, count: int) -> None:
        """Polls `count` records one by one; each poll first marks the previous record processed."""
        for _ in range(count):
            self.mark_processed()
            record = await anext(self.records)
            self.deliver(record.partition, record.offset)

    async def poll_until_all_processed(self) -> None:
        """Polls until every record of the topic is processed, by this or another member."""
        over = asyncio.ensure_future(self.stage.ledger.all_processed.wait())
        try:
            while True:
                self.mark_processed()
                if over.done() or self.stage.ledger.all_processed.is_set():
                    break
                record = await next_unless(over, self.records)
                if record is not None:
                    self.deliver(record.partition, record.offset)
        finally:
            over.cancel()

    @property
    def member(self) -> MembershipStateMachine[Any, Any]:
        """The state machine of the consumer's group membership."""
        assert isinstance(self.consumer._member, GroupMember)
        return self.consumer._member._member._membership

    async def await_rebalance(self) -> None:
        """Waits until the member leaves STABLE; returns at once if the member has no partitions."""
        if self.consumer.assignment:
            await self.stage.until(lambda: self.member.phase.name != "STABLE")

    def will_end(self, redelivery: Redelivery = Redelivery.NONE) -> None:
        """Declares that the coroutine under test closes the consumer.

        If the coroutine is not cancelled, the group may deliver only the records of `redelivery`
        again. A cancelled coroutine may skip the last commit, so the group may then deliver all
        uncommitted records again.
        """
        self.ends = True
        self.redelivery = redelivery


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
            await scene.poll(3)
            await scene.consumer.commit()
            await scene.poll(3)
            scene.mark_processed()

    return live()


@row
async def entering_and_the_first_record(scene: Scene) -> Awaitable[object]:
    await scene.consumer.__aenter__()
    return scene.poll(1)


@row
async def the_next_records(scene: Scene) -> Awaitable[object]:
    scene.make(max_partition_fetch_bytes=1)  # a batch at a time
    await scene.enter()
    await scene.poll(3)
    return scene.poll(5)


@row
async def record_lists(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    iteration = scene.consumer.record_lists()

    async def read() -> None:
        for _ in range(3):
            scene.mark_processed()
            fetched = await anext(iteration)
            scene.deliver(fetched.partition, *(record.offset for record in fetched.records))

    return read()


@row
async def polling_within_a_timeout(scene: Scene) -> Awaitable[object]:
    await scene.enter()

    async def read() -> None:
        for _ in range(3):
            scene.mark_processed()
            for (_, partition), records in (await scene.consumer.poll(1_000, 3)).items():
                scene.deliver(partition, *(record.offset for record in records))

    return read()


@row
async def values(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    iteration = scene.consumer.values()

    async def read() -> None:
        for _ in range(3):
            scene.mark_processed()
            fetched = await anext(iteration)
            offsets = range(fetched.next_offset - len(fetched.values), fetched.next_offset)
            scene.deliver(fetched.partition, *offsets)

    return read()


@row
async def raw_batches(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    iteration = scene.consumer.raw_batches()

    async def read() -> None:
        for _ in range(3):
            scene.mark_processed()
            fetched = await anext(iteration)
            batch = fetched.batch
            scene.deliver(fetched.partition, *range(batch.base_offset, batch.next_offset))

    return read()


# Handling


async def handling(scene: Scene, count: int, **given: Any) -> None:
    """Processes `count` records with `run`; the handler takes 0.2 s of the clock for each."""
    handled = 0

    async def handle(record: Record) -> None:
        nonlocal handled
        key = (record.partition, record.offset)
        scene.stage.ledger.record_delivered(ME, key)
        await scene.stage.clock.sleep(0.2)
        scene.stage.ledger.mark_processed(key)
        handled += 1
        if handled == count:
            raise Stop(done=True)

    await scene.consumer.run(handle, stop_on=(), **given)


@row
async def running_batches(scene: Scene) -> Awaitable[object]:
    handled = 0

    async def handle(records: list[Record]) -> None:
        nonlocal handled
        keys = [(record.partition, record.offset) for record in records]
        for key in keys:
            scene.stage.ledger.record_delivered(ME, key)
        await scene.stage.clock.sleep(0.2)
        for key in keys:
            scene.stage.ledger.mark_processed(key)
        handled += len(keys)
        if handled >= 5:
            raise Stop(done=True)

    await scene.enter()
    return scene.consumer.run_batches(handle, batch_size=2, stop_on=())


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
    await scene.poll(6)
    return scene.consumer.commit()


@row
async def committing_with_metadata(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(6)
    return scene.consumer.commit(None, "said")


@row
async def committing_a_record(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(5)
    scene.mark_processed()
    record = await anext(scene.records)
    scene.deliver(record.partition, record.offset)
    scene.mark_processed()
    return ignore_lost_partitions(scene.consumer.commit(record))


@row
async def committing_a_list(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    fetched = await anext(scene.consumer.record_lists())
    scene.deliver(fetched.partition, *(record.offset for record in fetched.records))
    scene.mark_processed()
    return ignore_lost_partitions(scene.consumer.commit(fetched))


@row
async def committing_offsets(scene: Scene) -> Awaitable[object]:
    scene.make(auto_commit=False)
    scene.stage.ledger.redelivery = Redelivery.UNCOMMITTED
    await scene.enter()
    await scene.poll(6)
    partition, offset = scene.in_flight[-1]
    scene.mark_processed()
    return ignore_lost_partitions(scene.consumer.commit({(TOPIC, partition): offset + 1}, "m"))


@row
async def committing_behind_a_pending_commit(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(6)
    before = asyncio.ensure_future(scene.consumer.commit())
    before.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.sleep(0)
    return scene.consumer.commit(None, "behind")


async def ignore_lost_partitions(commit: Awaitable[object]) -> None:
    """Awaits a commit; ignores the error if a partition has moved to another member."""
    try:
        await commit
    except kproto.CommitFailedError as error:
        if "not assigned to this consumer" not in str(error):
            raise


# Positions, lag and offsets


def first_assigned(scene: Scene) -> TopicPartition:
    """Returns the lowest assigned partition."""
    return min(scene.consumer.assignment)


async def ignore_revocation(call: Awaitable[object]) -> None:
    """Awaits a call; ignores the error if its partition is revoked meanwhile."""
    try:
        await call
    except kproto.ConfigurationError as error:
        if "is not assigned to this consumer" not in str(error):
            raise


@row
async def fetching_committed_offsets(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(2)
    return scene.consumer.committed(*ALL_PARTITIONS)


@row
async def resolving_a_position(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return ignore_revocation(scene.consumer.position(first_assigned(scene)))


@row
async def seeking_to_committed_offsets(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(5)
    scene.mark_processed()
    scene.stage.ledger.redelivery = Redelivery.ANY
    return ignore_revocation(scene.consumer.seek_to_committed())


@row
async def seeking_to_the_start(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(5)
    scene.mark_processed()
    scene.stage.ledger.redelivery = Redelivery.ANY
    scene.consumer.seek(first_assigned(scene), "earliest")
    return ignore_revocation(scene.consumer.position(first_assigned(scene)))


@row
async def seeking_and_reading(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(5)
    scene.mark_processed()
    scene.stage.ledger.redelivery = Redelivery.ANY
    for tp in scene.consumer.assignment:
        scene.consumer.seek(tp, 0)
    return scene.poll(3)


@row
async def computing_the_lag(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(1)
    return scene.consumer.lag()


@row
async def listing_offsets_for_times(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    return scene.consumer.offsets_for_times(dict.fromkeys(ALL_PARTITIONS, 5))


# Other topics, other partitions


@row
async def subscribing_again(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(3)
    partition, offset = scene.in_flight[-1]
    scene.mark_processed()
    await scene.consumer.commit({(TOPIC, partition): offset + 1})  # no record is in flight any more

    async def change() -> None:
        scene.consumer.unsubscribe()
        try:
            while not scene.member.is_outside_group:
                await scene.stage.clock.sleep(0.1)
        finally:
            scene.consumer.subscribe(TOPIC)
        await scene.poll(4)

    return change()


@row
async def subscribing_again_at_once(scene: Scene) -> Awaitable[object]:
    scene.make(max_partition_fetch_bytes=1)
    await scene.enter()
    await scene.poll(3)
    scene.consumer.unsubscribe()
    scene.consumer.subscribe(TOPIC)
    return scene.poll(5)


@row
async def rebalancing(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(3)
    scene.consumer.enforce_rebalance("as you like")
    return scene.poll(6)


# The end


@row
async def leaving(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(6)
    scene.mark_processed()
    scene.will_end()
    return scene.consumer.__aexit__(None, None, None)


@row
async def leaving_by_an_error(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(6)
    scene.will_end(Redelivery.IN_FLIGHT)
    return scene.consumer.__aexit__(ValueError, ValueError(), None)


@row
async def leaving_before_it_has_joined(scene: Scene) -> Awaitable[object]:
    await scene.consumer.__aenter__()
    scene.will_end()
    return scene.consumer.__aexit__(None, None, None)


@row
async def closing(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(6)
    scene.will_end(Redelivery.IN_FLIGHT)
    return scene.consumer.close()


@row
async def closing_without_leaving(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(6)
    scene.will_end(Redelivery.IN_FLIGHT)
    return scene.consumer.close(leave=False)


@row
async def closing_a_static_member(scene: Scene) -> Awaitable[object]:
    scene.make(instance_id="first")
    await scene.enter()
    await scene.poll(6)
    scene.will_end(Redelivery.IN_FLIGHT)
    return scene.consumer.close()


@row
async def closing_a_static_member_for_good(scene: Scene) -> Awaitable[object]:
    scene.make(instance_id="first")
    await scene.enter()
    await scene.poll(6)
    scene.will_end(Redelivery.IN_FLIGHT)
    return scene.consumer.close(leave=True)


@row
async def closing_twice(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(6)
    scene.will_end(Redelivery.IN_FLIGHT)
    scene.closes_again = True
    return scene.consumer.close()


@row
async def unsubscribing_and_leaving(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    await scene.poll(6)
    scene.mark_processed()
    scene.will_end()
    scene.consumer.unsubscribe()
    return scene.consumer.__aexit__(None, None, None)


@row
async def closing_during_a_poll(scene: Scene) -> Awaitable[object]:
    await scene.enter()
    scene.consumer.pause(*scene.consumer.assignment)
    poll_task = asyncio.ensure_future(anext(aiter(scene.consumer)))
    poll_task.add_done_callback(lambda done: done.cancelled() or done.exception())
    for _ in range(3):
        await asyncio.sleep(0)
    scene.will_end()
    return scene.consumer.close()


# Manually assigned partitions


MANUAL_ROWS: dict[str, Row] = {}


def assign_manually(scene: Scene) -> None:
    scene.make(topics=ALL_PARTITIONS)
    scene.stage.ledger.partitions_assigned(ME, ALL_PARTITIONS)


def manual_row(function: Row) -> Row:
    MANUAL_ROWS[function.__name__] = function
    return function


@manual_row
async def entering_with_manual_assignment(scene: Scene) -> Awaitable[object]:
    assign_manually(scene)
    scene.ends_if_cancelled = True
    return scene.consumer.__aenter__()


@manual_row
async def reading_with_manual_assignment(scene: Scene) -> Awaitable[object]:
    assign_manually(scene)
    await scene.consumer.__aenter__()
    return scene.poll(5)


@manual_row
async def committing_with_manual_assignment(scene: Scene) -> Awaitable[object]:
    assign_manually(scene)
    await scene.consumer.__aenter__()
    await scene.poll(5)
    return scene.consumer.commit()


@manual_row
async def leaving_with_manual_assignment(scene: Scene) -> Awaitable[object]:
    assign_manually(scene)
    await scene.consumer.__aenter__()
    await scene.poll(5)
    scene.mark_processed()
    scene.will_end()
    return scene.consumer.__aexit__(None, None, None)


# Within callbacks


#: Returns the coroutine that a rebalance callback awaits, given the callback's partitions.
InCallback = Callable[[Scene, list[TopicPartition]], Awaitable[object]]


def next_offsets(scene: Scene, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    return {tp: scene.stage.ledger.next_offset_of(tp[1]) for tp in partitions}


ON_REVOKED: Final[dict[str, InCallback]] = {
    "commit": lambda scene, partitions: scene.consumer.commit(),
    "commit_offsets": lambda scene, partitions: scene.consumer.commit(
        next_offsets(scene, partitions), "m"
    ),
    "committed": lambda scene, partitions: scene.consumer.committed(*partitions),
    "offsets_for_times": lambda scene, partitions: scene.consumer.offsets_for_times(
        dict.fromkeys(partitions, 5)
    ),
}
ON_ASSIGNED: Final[dict[str, InCallback]] = ON_REVOKED | {
    "lag": lambda scene, partitions: scene.consumer.lag(),
    "position": lambda scene, partitions: scene.consumer.position(partitions[0]),
}
