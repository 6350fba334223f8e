"""Members of a group on the embedded cluster, and what became of each record.

A `Stage` has the cluster, whose time a clock of tests has: it is turned beside all that goes on, so
that a session is over in no time. Its `Ledger` notes what was handed out, done and committed, and
says what was wrong. Knows no cancellation.
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
    "Again",
    "Key",
    "Ledger",
    "Other",
    "Stage",
    "begin",
    "next_unless",
    "staged",
]

TOPIC: Final = "read"
GROUP: Final = "readers"
PARTITIONS: Final = 4
EACH: Final = 4
"""So many records a partition has, two to a batch."""

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

#: The hands move by no more than that at once, in ms, and so many turns of the loop lie between:
#: an answer takes some six.
STRIDE_MS: Final = 250.0
TURNS: Final = 20

#: Turns of the loop in which what was closed has ended.
ENDING: Final = 20

#: Whose a task is.
_whose: ContextVar[str] = ContextVar("whose", default="")


def protocol_of(assignor: str) -> dict[str, Any]:
    """Settings of a member of the protocol that has the assignor; "uniform" is a broker's."""
    if assignor == "uniform":
        return {"group_protocol": "consumer", "server_assignor": assignor}
    return {
        "group_protocol": "classic",
        "assignors": [assignor],
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 1_000,
    }


class Again(Enum):
    """Which records may come again."""

    NONE = "none"
    IN_HAND = "what was in hand at the end"
    UNCOMMITTED = "what was not committed"
    ANY = "any, as somebody seeks"


class Ledger:
    """What was handed out, done and committed. `all_done` is set when every record is done."""

    def __init__(self, cluster: Cluster, clock: ManualClock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._done: list[set[int]] = [set() for _ in range(PARTITIONS)]
        self._handed: set[Key] = set()
        self._owners: dict[int, str] = {}
        self.all_done = asyncio.Event()
        self.wrong: list[str] = []
        self.again = Again.NONE
        self.in_hand: set[Key] = set()  # of him who has ended
        cluster.control(self._look_at_commit, request=OffsetCommitRequest)

    def handed_out(self, name: str, key: Key) -> None:
        """Somebody has a record in his hands."""
        partition, offset = key
        if self._owners.get(partition) != name:
            self.wrong.append(f"{name} gets {key} of {self._owners.get(partition)!r}")
        if key in self._handed:
            is_committed = self.committed.get(partition, 0) > offset
            match self.again:
                case Again.NONE:
                    may = False
                case Again.IN_HAND:
                    may = key in self.in_hand and not is_committed
                case Again.UNCOMMITTED:
                    may = not is_committed
                case Again.ANY:
                    may = True
            if not may:
                committed = ", committed" if is_committed else ""
                self.wrong.append(f"{name} gets {key} again{committed}")
        self._handed.add(key)

    def is_done(self, key: Key) -> None:
        """A record was handled."""
        partition, offset = key
        self._done[partition].add(offset)
        if all(len(each) == EACH for each in self._done):
            self.all_done.set()

    def done_of(self, partition: int) -> int:
        """The offset behind what is done of a partition, read in order."""
        return len(self._done[partition])

    def takes(self, name: str, places: Collection[TopicPartition]) -> None:
        """Somebody reads these from now on."""
        for _, partition in places:
            owner = self._owners.setdefault(partition, name)
            if owner != name:
                self.wrong.append(f"{name} takes {partition}, which {owner} has")

    def leaves(self, name: str, places: Collection[TopicPartition] | None = None) -> None:
        """Somebody reads these no more, or nothing at all."""
        partitions = range(PARTITIONS) if places is None else [each for _, each in places]
        for partition in partitions:
            if self._owners.get(partition) == name:
                del self._owners[partition]

    @property
    def committed(self) -> dict[int, int]:
        """The offsets that the coordinator has, by partition."""
        group = self._cluster._cluster.groups.find(GROUP, read_clock(self._clock))
        if group is None:
            return {}
        return {at: its.offset for at, its in group.offsets.of_topic(TOPIC).items()}

    def _look_at_commit(self, request: ReceivedRequest) -> None:
        message = request.message
        assert isinstance(message, OffsetCommitRequest)
        for topic in message.topics:
            for each in topic.partitions:
                place, offset = each.partition_index, each.committed_offset
                missing = set(range(offset)) - self._done[place]
                if missing:
                    self.wrong.append(f"{place}:{offset} is committed, and not done: {missing}")


class Stage:
    """A cluster of two, and who reads; made by `staged`."""

    def __init__(self, cluster: Cluster, clock: ManualClock, assignor: str) -> None:
        self.cluster = cluster
        self.clock = clock
        self.assignor = assignor
        self.ledger = Ledger(cluster, clock)
        self.callbacks_s = 0.0  #: so long a callback takes, by the clock
        self.others: list[Other] = []
        self._tasks: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()

    def note_tasks(self) -> None:
        """Remember of each task from now on whose it is."""

        def made(loop: asyncio.AbstractEventLoop, work: Any, **given: Any) -> asyncio.Task[Any]:
            task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **given)
            self._tasks[task] = _whose.get()
            return task

        asyncio.get_running_loop().set_task_factory(made)

    @property
    def members(self) -> tuple[str, ...]:
        """The member ids that the coordinator has."""
        group = self.cluster._cluster.groups.find(GROUP, read_clock(self.clock))
        return () if group is None else tuple(group.members)

    def client(self) -> kproto.Client:
        return kproto.Client(self.cluster.bootstrap, SETTINGS, clock=self.clock)

    def consumer(self, client: kproto.Client, name: str, **given: Any) -> GroupConsumer:
        """A member whose comings and goings are noted; `given` callbacks are called behind that."""
        taken = given.pop("on_assigned", None)
        left = given.pop("on_revoked", None)

        async def on_assigned(places: list[TopicPartition]) -> None:
            self.ledger.takes(name, places)
            await (self._pause() if taken is None else taken(places))

        async def on_revoked(places: list[TopicPartition]) -> None:
            await (self._pause() if left is None else left(places))
            self.ledger.leaves(name, places)

        async def on_lost(places: list[TopicPartition]) -> None:
            self.ledger.leaves(name, places)
            await self._pause()

        topics = given.pop("topics", TOPIC)
        settings = GROUP_SETTINGS | protocol_of(self.assignor) | given
        return client.consumer(
            topics, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost, **settings
        )

    async def _pause(self) -> None:
        await self.clock.sleep(self.callbacks_s)

    def other(self) -> Other:
        """Somebody else joins."""
        self.others.append(Other(self, f"other-{len(self.others)}"))
        return self.others[-1]

    def move_coordinator(self) -> None:
        coordinator = self.cluster.coordinator(GROUP)
        to = next(node for node in self.cluster.nodes if node != coordinator)
        self.cluster.move_leader("__consumer_offsets", 0, to)

    def stop_coordinator(self) -> None:
        """Begin to stop the node that coordinates; it stays away."""
        self._stopping = asyncio.ensure_future(
            self.cluster.stop_broker(self.cluster.coordinator(GROUP))
        )

    async def others_leave(self) -> None:
        """Have all others leave in order."""
        for other in self.others:
            other.stop.set()
        for other in self.others:
            await other.task

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for something; the test's own limit ends it."""
        while not holds():  # noqa: ASYNC110 - what is waited for is no event of one loop
            await asyncio.sleep(0)

    async def no_task_of(self, name: str, *rooms: str) -> None:
        """Nothing that somebody began in the client, or in some rooms of it, goes on."""
        folders = [f"/kproto/client/{room}" for room in rooms or ("",)]
        for _ in range(ENDING):
            await asyncio.sleep(0)
        left = [
            task
            for task, whose in self._tasks.items()
            if whose == name and not task.done() and _is_in(task, folders)
        ]
        assert not left, f"tasks are left: {left}"

    def no_connection_of_its_own(self, client: kproto.Client) -> None:
        """What is connected is the client's, and no consumer's."""
        own = [key for key in client._view._pool._open if key[1] is not None]
        assert not own, f"connections are left: {own}"

    async def nobody_is_connected(self) -> None:
        for _ in range(ENDING):
            await asyncio.sleep(0)
        assert self.cluster.connections == 0


def _is_in(task: asyncio.Task[Any], folders: list[str]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and any(folder in code.co_filename for folder in folders)


def begin(name: str, work: Any) -> asyncio.Task[Any]:
    """Begin what is somebody's, as is all that he begins."""
    context = copy_context()
    context.run(_whose.set, name)
    return asyncio.create_task(work, context=context)


class Other:
    """A member of its own client, who asks for records until `stop`; until it wakes it has none."""

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
        """How many partitions it has."""
        return len(self._consumer.assignment)

    def wake(self) -> None:
        """Read from now on."""
        self._sleeps = False
        self._consumer.resume(*self._consumer.paused)

    async def _assigned(self, places: list[TopicPartition]) -> None:
        if self._sleeps:
            self._consumer.pause(*places)
        await asyncio.sleep(0)

    async def _run(self) -> None:
        ledger = self._stage.ledger
        async with self._client:
            try:
                async with self._consumer:
                    await read(ledger, self.name, self._consumer, self.stop)
            finally:
                ledger.leaves(self.name)


async def next_unless(
    over: asyncio.Future[Any], records: AsyncIterator[kproto.Record]
) -> kproto.Record | None:
    """The next record, or None if it is `over` before that comes."""
    coming = asyncio.ensure_future(anext(records))
    try:
        await asyncio.wait([coming, over], return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not coming.done():
            coming.cancel()
            await asyncio.wait([coming])
    return None if coming.cancelled() else coming.result()


async def read(ledger: Ledger, name: str, consumer: GroupConsumer, stop: asyncio.Event) -> None:
    """Read record by record until `stop` is set; the last one is done then."""
    records = aiter(consumer)
    over = asyncio.ensure_future(stop.wait())
    try:
        while not stop.is_set():
            record = await next_unless(over, records)
            if record is None:
                break
            ledger.handed_out(name, (record.partition, record.offset))
            await asyncio.sleep(0)
            ledger.is_done((record.partition, record.offset))
    finally:
        over.cancel()


@asynccontextmanager
async def staged(assignor: str) -> AsyncIterator[Stage]:
    """A stage with its topic filled, and its time turned; who is left on it leaves at the end."""
    clock = ManualClock()
    async with Cluster(2, settings=BROKERS, clock=clock) as cluster:
        topic = cluster.create_topic(TOPIC, PARTITIONS, replication_factor=2)
        for partition in topic.partitions:
            for offset in range(0, EACH, 2):
                records = [(None, b"%d" % at, (), clock.now_ms()) for at in (offset, offset + 1)]
                partition.log.append(RecordBatch(encode_batch(records)), clock.now_ms())
        stage = Stage(cluster, clock, assignor)
        stage.note_tasks()
        turning = asyncio.create_task(_turn(clock))
        try:
            yield stage
        finally:
            await stage.others_leave()
            turning.cancel()
            await asyncio.wait([turning])


async def _turn(clock: ManualClock) -> None:
    while True:
        for _ in range(TURNS):
            await asyncio.sleep(0)
        following = clock.next_timer_ms
        if following is not None:
            await clock.advance(min(STRIDE_MS, max(following, 1.0)))
