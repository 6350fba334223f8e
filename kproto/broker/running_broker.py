"""Runs an embedded broker in a thread, for tests that block and for other processes.

    with kproto.broker.running() as broker:
        broker.create_topic("orders", partitions=3)
        ...  # any client connects to broker.bootstrap
        assert [record.value for record in broker.records("orders")] == [b"one"]

`RunningBroker` has the methods of `Cluster`, without `await`. Any thread may call them; so may an
async test, because each call takes microseconds, apart from those that wait on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from ..clock import Clock
from ..loop_thread import LoopThread
from ..manual_clock import ManualClock, PausableClock
from ..messages.base import Request
from ..records import Record
from ..wire.errors import ConfigurationError
from .cluster import Cluster
from .faults import Control, ControlFunction
from .group_states import GroupState
from .group_waiting import WAIT_TIMEOUT_S
from .handlers import KAFKA_APIS
from .registry import Api
from .request_log import LoggedRequest, RequestLog
from .settings import BrokerSettings
from .topics import Topic

__all__ = ["RunningBroker", "running"]

R = TypeVar("R", bound=Request[Any])
T = TypeVar("T")


@contextmanager
def running(
    settings: BrokerSettings | None = None,
    *,
    brokers: int = 1,
    racks: Sequence[str | None] | None = None,
    clock: Clock | None = None,
    apis: Iterable[Api] = KAFKA_APIS,
) -> Iterator[RunningBroker]:
    """Runs an embedded cluster of `brokers` nodes in a thread, until the end of the block.

    Without `clock`, a `PausableClock` gives the time, so that a test can freeze it. The other
    arguments are those of `Cluster`. Raises ConfigurationError for invalid arguments, and
    BrokerConnectionError if an address is not available.
    """
    used_clock = PausableClock() if clock is None else clock

    def make() -> Cluster:
        return Cluster(brokers, racks=racks, settings=settings, clock=used_clock, apis=apis)

    log = RequestLog()
    with LoopThread(make) as thread:
        thread.call(lambda cluster: cluster.control(log))
        yield RunningBroker(thread, used_clock, log)


class RunningBroker:
    """Controls an embedded cluster that runs in a thread, from any other thread; see `running`.

    Each method has the arguments, the result and the errors of the method of `Cluster` with its
    name. Do not change the objects that the methods return.
    """

    def __init__(self, thread: LoopThread[Cluster], clock: Clock, log: RequestLog) -> None:
        self._thread = thread
        self._clock = clock
        self._log = log

    def call(self, function: Callable[[Cluster], T]) -> T:
        """Runs `function(cluster)` in the broker's thread, and returns its result.

        Raises what `function` raises. Raises ConfigurationError in the broker's thread, and after
        the end of the block.
        """
        return self._thread.call(function)

    # State

    @property
    def bootstrap(self) -> str:
        """Returns `host:port` of all nodes, comma-separated as for bootstrap.servers."""
        return self.call(lambda it: it.bootstrap)

    def bootstrap_of(self, listener: str) -> str:
        """Returns the comma-separated `host:port` of all nodes for the listener named `listener`.

        Raises ConfigurationError for an unknown listener.
        """
        return self.call(lambda it: it.bootstrap_of(listener))

    @property
    def cluster_id(self) -> str:
        """Returns the cluster id that clients see in metadata."""
        return self.call(lambda it: it.cluster_id)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Returns the ids of all nodes in ascending order, including stopped nodes."""
        return self.call(lambda it: it.nodes)

    @property
    def connections(self) -> int:
        """Returns the number of client connections of all nodes."""
        return self.call(lambda it: it.connections)

    @property
    def controller(self) -> int:
        """Returns the node id of the controller; -1 if all nodes are stopped."""
        return self.call(lambda it: it.controller)

    def coordinator(self, key: str, kind: str = "group") -> int:
        """Returns the node id of the coordinator of `key`, as `Cluster.coordinator` does."""
        return self.call(lambda it: it.coordinator(key, kind))

    @property
    def topics(self) -> dict[str, Topic]:
        """Applies retention to all topics, and returns the topics by name."""
        return self.call(lambda it: it.topics)

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """Returns the log end offset of a partition, which is the offset of the next record.

        Raises BrokerResponseError for an unknown partition.
        """
        return self.call(lambda it: it.end_offset(topic, partition))

    def records(
        self, topic: str, partition: int | None = None, *, read_committed: bool = True
    ) -> list[Record]:
        """Returns all records of a topic, or of one partition, decoded, without control records.

        The records of all partitions are ordered by partition, then by offset. Returns the records
        up to the last stable offset, and omits the records of aborted transactions. With
        `read_committed=False`, also returns the records of aborted and open transactions, and the
        records after the first open one.

        Raises BrokerResponseError for an unknown topic or partition, CorruptBatchError for a batch
        that cannot be decoded, and MissingCodecError for a codec that is not installed.
        """
        return self.call(lambda it: it.records(topic, partition, read_committed=read_committed))

    def snapshot(self, topic: str, *, read_committed: bool = True) -> str:
        """Returns the records of a topic as JSON, for approval tests; raises as `records` does.

        Offsets and timestamps are left out, because they differ between runs.
        """
        return self.call(lambda it: it.snapshot(topic, read_committed=read_committed))

    @property
    def groups(self) -> dict[str, GroupState]:
        """Returns the groups by group id, with members, committed offsets and lag."""
        return self.call(lambda it: it.groups)

    def wait_for_group(
        self,
        group_id: str,
        *,
        lag: int | None = None,
        members: int | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> GroupState:
        """Waits until a group has at most `lag`, and is stable with `members` members; returns it.

        A condition that is None is not checked; without conditions, waits until the group exists.
        Blocks the calling thread: in an async test, `await asyncio.to_thread(…)`. Raises
        TimeoutError, with the last state of the group, after `timeout_s`.
        """
        return self._thread.run(
            lambda it: it.wait_for_group(group_id, lag=lag, members=members, timeout_s=timeout_s),
            timeout_s + WAIT_TIMEOUT_S,
        )

    def leader(self, topic: str, partition: int = 0) -> int:
        """Returns the node id of a partition's leader; -1 if there is none."""
        return self.call(lambda it: it.leader(topic, partition))

    def leader_epoch(self, topic: str, partition: int = 0) -> int:
        """Returns the leader epoch of a partition, which starts at 0."""
        return self.call(lambda it: it.leader_epoch(topic, partition))

    def in_sync(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Returns the node ids in the ISR of a partition."""
        return self.call(lambda it: it.in_sync(topic, partition))

    # Actions

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        configs: Mapping[str, str | None] | None = None,
        *,
        replication_factor: int | None = None,
    ) -> Topic:
        """Creates a topic, and returns it.

        Raises BrokerResponseError with the error code that CreateTopics would return.
        """
        return self.call(
            lambda it: it.create_topic(
                name, partitions, configs, replication_factor=replication_factor
            )
        )

    def delete_topic(self, name: str) -> None:
        """Deletes a topic. Raises BrokerResponseError for an unknown topic."""
        self.call(lambda it: it.delete_topic(name))

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
        partition: int = 0,
    ) -> int:
        """Appends one record to a partition, as the leader does, and returns its offset.

        `timestamp` is in ms, by default the time of the broker's clock. Waiting consumers get the
        record at once. The key selects no partition.

        Raises BrokerResponseError with the error code that Produce would return.
        """
        return self.call(
            lambda it: it.produce(
                topic, value, key=key, headers=headers, timestamp=timestamp, partition=partition
            )
        )

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Moves the log start offset to `before`, unless the log start offset is higher already.

        Raises BrokerResponseError for an unknown partition, and if `before` is beyond the log end.
        """
        self.call(lambda it: it.delete_records(topic, partition, before))

    def truncate(self, topic: str, partition: int, offset: int) -> int:
        """Truncates a log at `offset`, as an unclean leader election does; returns the end offset.

        Raises BrokerResponseError for an unknown partition or an offset outside of the log.
        """
        return self.call(lambda it: it.truncate(topic, partition, offset))

    def stop_broker(self, node: int) -> None:
        """Stops a node as a controlled shutdown does.

        Raises ConfigurationError for an unknown node.
        """
        self._thread.run(lambda it: it.stop_broker(node))

    def start_broker(self, node: int) -> None:
        """Starts a stopped node on the same ports.

        Raises ConfigurationError for an unknown node, and BrokerConnectionError if another process
        uses a port.
        """
        self._thread.run(lambda it: it.start_broker(node))

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Makes the in-sync replica `node` the leader of a partition, and bumps the leader epoch.

        Raises BrokerResponseError for an unknown partition, and for a node that is stopped or not
        in sync.
        """
        self.call(lambda it: it.move_leader(topic, partition, node))

    def move_controller(self, node: int) -> None:
        """Makes a node the controller.

        Raises ConfigurationError if the node is unknown or stopped.
        """
        self.call(lambda it: it.move_controller(node))

    # Faults

    def control(
        self,
        function: ControlFunction,
        *,
        request: type[Request[Any]] | None = None,
        times: int | None = None,
        node: int | None = None,
    ) -> Control:
        """Adds a control function or a named fault, as `Cluster.control` does.

        The function is called in the broker's thread.
        """
        return self.call(lambda it: it.control(function, request=request, times=times, node=node))

    def remove_control(self, control: Control) -> None:
        """Removes a control from all nodes; does nothing if it is removed already."""
        self.call(lambda it: it.remove_control(control))

    # The log of requests

    @overload
    def requests(self, request: type[R]) -> list[LoggedRequest[R]]: ...

    @overload
    def requests(self, request: None = None) -> list[LoggedRequest[Any]]: ...

    def requests(self, request: type[R] | None = None) -> list[LoggedRequest[Any]]:
        """Returns the requests of the class `request`, oldest first; without it, all requests.

        `RequestLog` says how many requests are kept.
        """
        return self.call(lambda _: self._log.requests(request))

    def clear_requests(self) -> None:
        """Forgets all requests, so that a test can look at those of its next step only."""
        self.call(lambda _: self._log.clear())

    # The clock

    def now_ms(self) -> int:
        """Returns the time of the broker's clock, in ms since 1970."""
        return self.call(lambda _: self._clock.now_ms())

    def freeze(self) -> None:
        """Stops the broker's clock: until `resume`, only `advance` changes it.

        A Fetch of an empty partition then waits until a record arrives, or until `advance`. Raises
        ConfigurationError unless the clock is a `PausableClock`.
        """
        clock = self._pausable()
        self.call(lambda _: clock.freeze())

    def resume(self) -> None:
        """Lets the broker's clock run again. Raises ConfigurationError as `freeze` does."""
        clock = self._pausable()
        self.call(lambda _: clock.resume())

    def advance(self, ms: float) -> None:
        """Sets the broker's clock ahead by `ms`; everything that is due until then happens.

        Raises ConfigurationError unless the clock is a `ManualClock` or a `PausableClock`.
        """
        clock = self._clock
        if not isinstance(clock, ManualClock):
            raise ConfigurationError(
                f"the broker's clock is {clock!r}, which cannot be advanced: leave out clock=, or "
                "pass a ManualClock"
            )
        self._thread.run(lambda _: clock.advance(ms))

    def _pausable(self) -> PausableClock:
        if not isinstance(self._clock, PausableClock):
            raise ConfigurationError(
                f"the broker's clock is {self._clock!r}, which cannot be frozen: leave out clock=, "
                "or pass a PausableClock"
            )
        return self._clock
