"""Offers the helpers of an embedded broker on a real cluster, as far as a client can."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn, TypeVar

import pytest

from ..broker import GroupMember, GroupState, RunningBroker
from ..broker.group_states import TopicPartition
from ..broker.group_waiting import WAIT_TIMEOUT_S, wait_for_group
from ..broker.topic_snapshot import topic_snapshot
from ..client import Client, NewTopic
from ..client.admin.errors import AdminError
from ..clock import SYSTEM_CLOCK
from ..loop_thread import LoopThread
from ..messages import InitProducerIdRequest
from ..records import Record
from ..wire.errors import ConfigurationError, KprotoError, UnsupportedVersionError
from .options import BrokerOptions

__all__ = ["RealCluster", "real_cluster"]

T = TypeVar("T")

#: Time between two looks at a group: each takes several requests.
_POLL_S: Final = 0.05


@contextmanager
def real_cluster(bootstrap: str, options: BrokerOptions) -> Iterator[RealCluster]:
    """Connects to a cluster, and creates the topics of a test.

    At the end, deletes the topics and groups of the test.

    Skips the test if the cluster has too few brokers or no transactions. Raises ConfigurationError
    if a topic of the test exists: the plugin deletes only topics that it has created.
    """
    properties = os.environ.get("KPROTO_PROPERTIES")

    def make() -> Client:
        if properties:
            return Client.from_properties(properties, bootstrap=bootstrap)
        return Client(bootstrap)

    with LoopThread(make, "client of a real cluster") as thread:
        cluster = RealCluster(thread, bootstrap)
        try:
            cluster.prepare(options)
            yield cluster
        finally:
            cluster.delete_created_groups()
            cluster.delete_created_topics()


class RealCluster:
    """Has the helpers of `RunningBroker` that a client can perform on a real cluster.

    A test that uses another helper, such as a fault or the clock, is skipped.
    """

    def __init__(self, thread: LoopThread[Client], bootstrap: str) -> None:
        self._thread = thread
        self._created: list[str] = []
        self._other_groups: set[str] = set()  # they existed before the test
        self.bootstrap = bootstrap

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and hasattr(RunningBroker, name):
            pytest.skip(f"{name} needs the embedded broker, and KPROTO_BOOTSTRAP names a real one")
        raise AttributeError(f"a real cluster has no attribute {name!r}")

    def _run(self, function: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        return self._thread.run(function)

    def prepare(self, options: BrokerOptions) -> None:
        """Checks that the cluster has what a test needs, and creates the test's topics."""

        async def check(client: Client) -> str | None:
            await client.refresh()
            found = len(client.cluster.brokers)
            if found < options.brokers:
                return f"the cluster has {found} brokers, and the test needs {options.brokers}"
            if options.transactions:
                connection = await client.connection()
                try:
                    connection.version_of(InitProducerIdRequest)
                except UnsupportedVersionError:
                    return "the cluster has no transactions, which the test needs"
            return None

        reason = self._run(check)
        if reason is not None:
            pytest.skip(reason)
        self._other_groups = self._run(_group_ids)
        for name, partitions in options.topics.items():
            self.create_topic(name, partitions)

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        configs: Mapping[str, str | None] | None = None,
        *,
        replication_factor: int | None = None,
    ) -> None:
        """Creates a topic, which is deleted at the end of the test.

        Raises BrokerResponseError, such as TOPIC_ALREADY_EXISTS.
        """
        topic = NewTopic(
            name,
            -1 if partitions is None else partitions,
            -1 if replication_factor is None else replication_factor,
            configs=configs or {},
        )

        async def create(client: Client) -> None:
            await client.create_topics(topic)
            await client.topic(name)  # waits until the brokers list the topic

        self._run(create)
        self._created.append(name)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic that the test has created.

        Raises ConfigurationError for another topic.
        """
        if name not in self._created:
            raise ConfigurationError(
                f"topic {name!r} was not created by this test, and is not deleted on a real cluster"
            )
        self._created.remove(name)

        async def delete(client: Client) -> None:
            await client.delete_topics(name)
            # Until no broker lists the topic, a test that creates it again would see the old one.
            while name in await client.admin.list_topics():
                await SYSTEM_CLOCK.sleep(_POLL_S)

        self._run(delete)

    def delete_created_topics(self) -> None:
        """Deletes all topics that the test has created."""
        for name in list(self._created):
            self.delete_topic(name)

    def delete_created_groups(self) -> None:
        """Deletes the groups that appeared during the test, and read only topics of the test.

        A group that has members, or no committed offset, stays.
        """

        async def delete(client: Client) -> None:
            for group_id in await _group_ids(client) - self._other_groups:
                with suppress(KprotoError):
                    committed = await client.committed_offsets(group_id)
                    if committed and {tp[0] for tp in committed} <= {*self._created}:
                        await client.admin.delete_consumer_groups([group_id])

        self._run(delete)

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
        """Sends one record, and returns its offset. Raises BrokerResponseError."""

        async def send(client: Client) -> int:
            async with client.producer() as producer:
                ack = await producer.send(
                    topic,
                    value,
                    key=key,
                    headers=headers,
                    timestamp=timestamp,
                    partition=partition,
                )
            return ack.offset

        return self._run(send)

    def records(
        self, topic: str, partition: int | None = None, *, read_committed: bool = True
    ) -> list[Record]:
        """Returns all records of a topic, or of one partition, by partition, then by offset.

        With `read_committed=False`, also returns records of aborted and open transactions, as
        `RunningBroker.records` does.
        """

        async def read(client: Client) -> list[Record]:
            count = len((await client.topic(topic)).partitions)
            wanted = range(count) if partition is None else [partition]
            async with client.consumer(
                [(topic, index) for index in wanted],
                start="earliest",
                stop_at_end=True,
                read_committed=read_committed,
            ) as consumer:
                found = [record async for record in consumer]
            return sorted(found, key=lambda it: (it.partition, it.offset))

        return self._run(read)

    def snapshot(self, topic: str, *, read_committed: bool = True) -> str:
        """Returns the records of a topic as JSON, as `RunningBroker.snapshot` does."""

        async def partitions(client: Client) -> int:
            return len((await client.topic(topic)).partitions)

        count = self._run(partitions)
        return topic_snapshot(topic, count, self.records(topic, read_committed=read_committed))

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """Returns the high watermark of a partition."""
        tp = (topic, partition)
        return self._run(lambda client: client.list_offsets({tp: "latest"}))[tp]

    @property
    def groups(self) -> dict[str, GroupState]:
        """Returns the groups of consumers by group id, with members, offsets and lag.

        Leaves out groups that cannot be described, for example because other users of the cluster
        delete them, or their topics, at this moment.
        """

        async def read(client: Client) -> dict[str, GroupState]:
            found: dict[str, GroupState] = {}
            for each in await client.admin.list_consumer_groups():
                with suppress(KprotoError):
                    state = await _state_of(client, each.group_id)
                    if state is not None:
                        found[each.group_id] = state
            return found

        return self._run(read)

    def wait_for_group(
        self,
        group_id: str,
        *,
        lag: int | None = None,
        members: int | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> GroupState:
        """Waits until a group has at most `lag`, and is stable with `members` members; returns it.

        Raises TimeoutError, with the last state of the group, after `timeout_s`.
        """

        async def wait(client: Client) -> GroupState:
            async def find() -> GroupState | None:
                return await _state_of(client, group_id)

            return await wait_for_group(
                find, group_id, lag=lag, members=members, timeout_s=timeout_s, poll_s=_POLL_S
            )

        return self._thread.run(wait, timeout_s + WAIT_TIMEOUT_S)


async def _group_ids(client: Client) -> set[str]:
    return {each.group_id for each in await client.admin.list_consumer_groups()}


async def _state_of(client: Client, group_id: str) -> GroupState | None:
    """Returns a group; None if it does not exist."""
    if group_id not in await _group_ids(client):
        return None
    try:
        described = (await client.admin.describe_consumer_groups([group_id]))[group_id]
    except AdminError as error:
        if getattr(error.errors.get(group_id), "name", None) == "GROUP_ID_NOT_FOUND":
            return None  # it was deleted after the list
        raise
    members = tuple(
        GroupMember(
            it.member_id,
            it.client_id,
            tuple(sorted(TopicPartition(tp[0], tp[1]) for tp in it.assignment)),
        )
        for it in described.members
    )
    committed = await client.committed_offsets(group_id)
    offsets = {TopicPartition(tp[0], tp[1]): its.offset for tp, its in committed.items()}
    names = {tp.topic for tp in offsets} | {tp.topic for it in members for tp in it.assignment}
    partitions = [
        TopicPartition(name, index)
        for name in sorted(names)
        for index in range(len((await client.topic(name)).partitions))
    ]
    starts = await client.list_offsets(dict.fromkeys(partitions, "earliest"))
    ends = await client.list_offsets(dict.fromkeys(partitions, "latest"))
    lags = {tp: max(0, ends[tp] - max(offsets.get(tp, 0), starts[tp])) for tp in partitions}
    return GroupState(group_id, described.type.lower(), described.state, members, offsets, lags)
