"""Runs group members on the embedded cluster, and keeps a ledger of every record.

A `Stage` has a cluster on a manual clock. A background task advances the clock, so that sessions
expire without real waiting. The stage's `Ledger` tracks which records were delivered, processed and
committed, and collects violations. The tests cancel coroutines of the members.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from enum import Enum
from typing import Any, Final
from weakref import WeakKeyDictionary

import kproto
from kproto import GroupConsumer
from kproto.broker import BrokerSettings, Cluster
from kproto.broker.context import read_clock
from kproto.client.metadata.cluster import TopicPartition
from kproto.messages import OffsetCommitRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.records import RecordBatch, encode_batch
from kproto.testing.clock import ManualClock

__all__ = [
    "EACH",
    "GROUP",
    "PARTITIONS",
    "TOPIC",
    "Key",
    "Ledger",
    "OtherMember",
    "Redelivery",
    "Stage",
    "begin",
    "next_unless",
    "staged",
]

TOPIC: Final = "read"
GROUP: Final = "readers"
PARTITIONS: Final = 4
EACH: Final = 4
"""Records per partition, two to a batch."""

#: A partition and an offset.
Key = tuple[int, int]

SETTINGS: Final = kproto.ClientSettings(
    request_timeout_ms=4_000,
    delivery_timeout_ms=30_000,
    api_timeout_ms=30_000,
    retry_backoff_max_ms=500,
    reconnect_backoff_max_ms=500,
)
BROKERS: Final = BrokerSettings(
    offsets_topic_num_partitions=1,
    group_consumer_min_session_timeout_ms=6_000,
    group_consumer_session_timeout_ms=6_000,
    group_consumer_min_heartbeat_interval_ms=1_000,
    group_consumer_heartbeat_interval_ms=1_000,
)
GROUP_SETTINGS: Final[dict[str, Any]] = {
    "group": GROUP,
    "max_poll_interval_ms": 20_000,
    "auto_commit_interval_ms": 2_000,
    "max_wait_ms": 300,
}

#: The clock advances by at most `STRIDE_MS`. Between two steps the event loop runs
#: `LOOP_ITERATIONS` iterations: a response needs about six.
STRIDE_MS: Final = 250.0
LOOP_ITERATIONS: Final = 20

#: Iterations of the event loop after which a closed client has no task and no connection left.
CLOSING_ITERATIONS: Final = 20

#: The name of the member that started the current task.
_owner_name: ContextVar[str] = ContextVar("whose", default="")


def protocol_of(assignor: str) -> dict[str, Any]:
    """Returns the settings of a member with this assignor.

    "uniform" is an assignor of the broker (consumer protocol, KIP-848). The other assignors belong
    to the classic protocol.
    """
    if assignor == "uniform":
        return {"group_protocol": "consumer", "server_assignor": assignor}
    return {
        "group_protocol": "classic",
        "assignors": [assignor],
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 1_000,
    }


class Redelivery(Enum):
    """Selects the records that the group may deliver again without a violation."""

    NONE = "none"
    IN_FLIGHT = "records that were in flight at the end"
    UNCOMMITTED = "records that were not committed"
    ANY = "any record, because the consumer seeks"


class Ledger:
    """Tracks delivered, processed and committed records, and the owner of each partition.

    `all_processed` is set when every record of the topic is processed.
    """

    def __init__(self, cluster: Cluster, clock: ManualClock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._processed: list[set[int]] = [set() for _ in range(PARTITIONS)]
        self._delivered: set[Key] = set()
        self._owners: dict[int, str] = {}
        self.all_processed = asyncio.Event()
        self.violations: list[str] = []
        self.redelivery = Redelivery.NONE
        self.in_flight: set[Key] = set()  # in flight when the consumer under test ended
        cluster.control(self._check_commit, request=OffsetCommitRequest)

    def record_delivered(self, name: str, key: Key) -> None:
        """Records that member `name` has received a record; checks owner and redelivery."""
        partition, offset = key
        if self._owners.get(partition) != name:
            self.violations.append(f"{name} gets {key} of {self._owners.get(partition)!r}")
        if key in self._delivered:
            is_committed = self.committed.get(partition, 0) > offset
            match self.redelivery:
                case Redelivery.NONE:
                    may = False
                case Redelivery.IN_FLIGHT:
                    may = key in self.in_flight and not is_committed
                case Redelivery.UNCOMMITTED:
                    may = not is_committed
                case Redelivery.ANY:
                    may = True
            if not may:
                committed = ", committed" if is_committed else ""
                self.violations.append(f"{name} gets {key} again{committed}")
        self._delivered.add(key)

    def mark_processed(self, key: Key) -> None:
        """Marks a record as processed."""
        partition, offset = key
        self._processed[partition].add(offset)
        if all(len(each) == EACH for each in self._processed):
            self.all_processed.set()

    def next_offset_of(self, partition: int) -> int:
        """Returns the next offset of a partition whose records were processed in order."""
        return len(self._processed[partition])

    def partitions_assigned(self, name: str, partitions: Collection[TopicPartition]) -> None:
        """Makes `name` the owner of these partitions; a second owner is a violation."""
        for _, partition in partitions:
            owner = self._owners.setdefault(partition, name)
            if owner != name:
                self.violations.append(f"{name} is assigned {partition}, which {owner} owns")

    def partitions_released(
        self, name: str, partitions: Collection[TopicPartition] | None = None
    ) -> None:
        """Removes `name` as the owner of `partitions`; None stands for all partitions."""
        released = range(PARTITIONS) if partitions is None else [each for _, each in partitions]
        for partition in released:
            if self._owners.get(partition) == name:
                del self._owners[partition]

    @property
    def committed(self) -> dict[int, int]:
        """The offsets that the coordinator has stored, by partition."""
        group = self._cluster._cluster.groups.find(GROUP, read_clock(self._clock))
        if group is None:
            return {}
        return {at: its.offset for at, its in group.offsets.of_topic(TOPIC).items()}

    def _check_commit(self, request: ReceivedRequest) -> None:
        message = request.message
        assert isinstance(message, OffsetCommitRequest)
        for topic in message.topics:
            for each in topic.partitions:
                partition, offset = each.partition_index, each.committed_offset
                missing = set(range(offset)) - self._processed[partition]
                if missing:
                    self.violations.append(
                        f"{partition}:{offset} is committed before {missing} are processed"
                    )


class Stage:
    """A cluster of two brokers, and the members that read from it; `staged` creates it."""

    def __init__(self, cluster: Cluster, clock: ManualClock, assignor: str) -> None:
        self.cluster = cluster
        self.clock = clock
        self.assignor = assignor
        self.ledger = Ledger(cluster, clock)
        self.callbacks_s = 0.0  #: seconds of the clock that a rebalance callback takes
        self.others: list[OtherMember] = []
        self._tasks: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()

    def note_tasks(self) -> None:
        """Makes the event loop store, for each new task, the member that started the task."""

        def made(loop: asyncio.AbstractEventLoop, work: Any, **given: Any) -> asyncio.Task[Any]:
            task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **given)
            self._tasks[task] = _owner_name.get()
            return task

        asyncio.get_running_loop().set_task_factory(made)

    @property
    def members(self) -> tuple[str, ...]:
        """The ids of the members that the coordinator has in the group."""
        group = self.cluster._cluster.groups.find(GROUP, read_clock(self.clock))
        return () if group is None else tuple(group.members)

    def client(self) -> kproto.Client:
        return kproto.Client(self.cluster.bootstrap, SETTINGS, clock=self.clock)

    def consumer(self, client: kproto.Client, name: str, **given: Any) -> GroupConsumer:
        """Returns a member that reports its assignment to the ledger.

        `given` are consumer settings. A given `on_assigned` runs after the ledger has recorded the
        partitions. A given `on_revoked` runs before the ledger releases the partitions.
        """
        on_assigned_too = given.pop("on_assigned", None)
        on_revoked_too = given.pop("on_revoked", None)

        async def on_assigned(partitions: list[TopicPartition]) -> None:
            self.ledger.partitions_assigned(name, partitions)
            await (self._pause() if on_assigned_too is None else on_assigned_too(partitions))

        async def on_revoked(partitions: list[TopicPartition]) -> None:
            await (self._pause() if on_revoked_too is None else on_revoked_too(partitions))
            self.ledger.partitions_released(name, partitions)

        async def on_lost(partitions: list[TopicPartition]) -> None:
            self.ledger.partitions_released(name, partitions)
            await self._pause()

        topics = given.pop("topics", TOPIC)
        settings = GROUP_SETTINGS | protocol_of(self.assignor) | given
        return client.consumer(
            topics, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost, **settings
        )

    async def _pause(self) -> None:
        await self.clock.sleep(self.callbacks_s)

    def other(self) -> OtherMember:
        """Adds another member to the group, and returns it."""
        self.others.append(OtherMember(self, f"other-{len(self.others)}"))
        return self.others[-1]

    def move_coordinator(self) -> None:
        coordinator = self.cluster.coordinator(GROUP)
        to = next(node for node in self.cluster.nodes if node != coordinator)
        self.cluster.move_leader("__consumer_offsets", 0, to)

    def stop_coordinator(self) -> None:
        """Begins to stop the broker of the group coordinator; the broker stays stopped."""
        self._stopping = asyncio.ensure_future(
            self.cluster.stop_broker(self.cluster.coordinator(GROUP))
        )

    async def others_leave(self) -> None:
        """Ends all other members; each commits and leaves the group."""
        for other in self.others:
            other.stop.set()
        for other in self.others:
            await other.task

    async def until(self, holds: Callable[[], object]) -> None:
        """Waits until a condition holds; only the test's own timeout limits the wait."""
        while not holds():  # noqa: ASYNC110 - a condition, and no event
            await asyncio.sleep(0)

    async def no_task_of(self, name: str, *packages: str) -> None:
        """Raises AssertionError if a client task of member `name` is still running.

        If `packages` are given, only tasks with code in these packages of `kproto.client` count.
        """
        folders = [f"/kproto/client/{package}" for package in packages or ("",)]
        for _ in range(CLOSING_ITERATIONS):
            await asyncio.sleep(0)
        left = [
            task
            for task, whose in self._tasks.items()
            if whose == name and not task.done() and _is_in(task, folders)
        ]
        assert not left, f"tasks are left: {left}"

    def no_connection_of_its_own(self, client: kproto.Client) -> None:
        """Raises AssertionError if a consumer left its own fetch connection open."""
        own = [key for key in client._view._pool._open if key[1] is not None]
        assert not own, f"connections are left: {own}"

    async def no_connection_is_left(self) -> None:
        """Waits until the cluster has seen the end of each connection, for at most ten seconds."""
        for _ in range(10_000):
            if not self.cluster.connections:
                break
            await asyncio.sleep(0.001)
        assert self.cluster.connections == 0


def _is_in(task: asyncio.Task[Any], folders: list[str]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and any(folder in code.co_filename for folder in folders)


def begin(name: str, work: Any) -> asyncio.Task[Any]:
    """Starts a task of member `name`; tasks that this task starts belong to the same member."""
    context = copy_context()
    context.run(_owner_name.set, name)
    return asyncio.create_task(work, context=context)


class OtherMember:
    """A member that has its own client, and polls until `stop` is set.

    Its partitions are paused until `wake` is called.
    """

    def __init__(self, stage: Stage, name: str) -> None:
        self.name = name
        self.stop = asyncio.Event()
        self._stage = stage
        self._sleeps = True
        self._client = stage.client()
        self._consumer = stage.consumer(self._client, name, on_assigned=self._assigned)
        self.task = begin(name, self._run())

    @property
    def assignment(self) -> int:
        """The number of partitions that this member has."""
        return len(self._consumer.assignment)

    def wake(self) -> None:
        """Resumes all partitions, including those of later assignments."""
        self._sleeps = False
        self._consumer.resume(*self._consumer.paused)

    async def _assigned(self, partitions: list[TopicPartition]) -> None:
        if self._sleeps:
            self._consumer.pause(*partitions)
        await asyncio.sleep(0)

    async def _run(self) -> None:
        ledger = self._stage.ledger
        async with self._client:
            try:
                async with self._consumer:
                    await read(ledger, self.name, self._consumer, self.stop)
            finally:
                ledger.partitions_released(self.name)


async def next_unless(
    over: asyncio.Future[Any], records: AsyncIterator[kproto.Record]
) -> kproto.Record | None:
    """Returns the next record, or None if `over` completes first."""
    coming = asyncio.ensure_future(anext(records))
    try:
        await asyncio.wait([coming, over], return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not coming.done():
            coming.cancel()
            await asyncio.wait([coming])
    return None if coming.cancelled() else coming.result()


async def read(ledger: Ledger, name: str, consumer: GroupConsumer, stop: asyncio.Event) -> None:
    """Polls and processes record by record until `stop` is set."""
    records = aiter(consumer)
    over = asyncio.ensure_future(stop.wait())
    try:
        while not stop.is_set():
            record = await next_unless(over, records)
            if record is None:
                break
            ledger.record_delivered(name, (record.partition, record.offset))
            await asyncio.sleep(0)
            ledger.mark_processed((record.partition, record.offset))
    finally:
        over.cancel()


@asynccontextmanager
async def staged(assignor: str) -> AsyncIterator[Stage]:
    """Yields a stage with a filled topic and a running clock.

    At the end of the block, all other members leave the group.
    """
    clock = ManualClock()
    async with Cluster(2, settings=BROKERS, clock=clock) as cluster:
        topic = cluster.create_topic(TOPIC, PARTITIONS, replication_factor=2)
        for partition in topic.partitions:
            for offset in range(0, EACH, 2):
                records = [(None, b"%d" % at, (), clock.now_ms()) for at in (offset, offset + 1)]
                partition.log.append(RecordBatch(encode_batch(records)), clock.now_ms())
        stage = Stage(cluster, clock, assignor)
        stage.note_tasks()
        clock_driver = asyncio.create_task(_drive_clock(clock))
        try:
            yield stage
        finally:
            await stage.others_leave()
            clock_driver.cancel()
            await asyncio.wait([clock_driver])


async def _drive_clock(clock: ManualClock) -> None:
    while True:
        for _ in range(LOOP_ITERATIONS):
            await asyncio.sleep(0)
        following = clock.next_timer_ms
        if following is not None:
            await clock.advance(min(STRIDE_MS, max(following, 1.0)))
