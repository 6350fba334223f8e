"""Provides a group consumer on a scripted broker; the test controls its group membership."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from kproto import Client
from kproto.client.commits.offset_requests import Identity
from kproto.client.consumer.group_consumer import GroupConsumer
from kproto.client.consumer.rebalance_listener import RebalanceCallbacks, RebalanceListenerInvoker
from kproto.client.fetch.fetch_options import FetchOptions
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.client.metadata.cluster import TopicPartition
from kproto.client.metadata.cluster_view import ClusterView
from kproto.client.settings import ClientSettings
from kproto.clock import SYSTEM_CLOCK, Clock
from kproto.wire.errors import BrokerResponseError
from kproto.wire.uuid import Uuid
from tests.unit.client.scripted_broker import ScriptedBroker, quick
from tests.unit.client.scripted_coordinator import ScriptedCoordinator
from tests.unit.client.scripted_log import ScriptedLog, batch

__all__ = ["FAR", "QUICK", "GenerationIdentity", "Group", "ScriptedMember", "group"]

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=1000)

#: A deadline that no test reaches, in seconds of the clock.
FAR = 1e9


class GenerationIdentity(NamedTuple):
    """The identity of a classic member: member id, generation and instance id."""

    member_id: str
    generation: int
    instance_id: str | None = None
    has_epoch: bool = False


class ScriptedMember:
    """Replaces the group membership of a consumer, and speaks no group protocol.

    The scripted member records the consumer's calls in `calls`. The test assigns and revokes the
    consumer's partitions through `owner`.
    """

    def __init__(
        self, view: ClusterView, settings: GroupSettings, owner: RebalanceListenerInvoker
    ) -> None:
        self.owner = owner
        self.wanted: Subscription | None = None
        self.identity: Identity | None = GenerationIdentity("m", 7)
        self.assignment_valid_until = float("inf")
        self.calls: list[Any] = []
        self.refused: list[tuple[str, Identity]] = []
        self.polls = 0
        self.closes: asyncio.Event | None = None
        #: Partitions for which `is_assigned` returns true, with the topic ids of KIP-848.
        self.assigned_ids: set[tuple[TopicPartition, Uuid]] = set()

    def start(self) -> None:
        self.calls.append("start")

    async def leave(self, leave: bool, reason: str) -> None:
        self.calls.append(("leave", leave))

    async def close(self) -> None:
        self.calls.append("close")
        if self.closes is not None:
            await self.closes.wait()

    def subscribe(self, subscription: Subscription) -> None:
        self.wanted = subscription

    def unsubscribe(self) -> None:
        self.wanted = None

    def request_rejoin(self, reason: str) -> None:
        self.calls.append(("rejoin", reason))

    def on_topics_changed(self) -> None:
        self.calls.append("topics changed")

    def on_poll(self) -> None:
        self.polls += 1

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        return (tp, topic_id) in self.assigned_ids

    def on_commit_refused(self, error: BrokerResponseError, identity: Identity) -> None:
        self.refused.append((error.name, identity))


@dataclass
class Group:
    """A scripted broker with its log and coordinator, and a client with scripted members."""

    broker: ScriptedBroker
    log: ScriptedLog
    coordinator: ScriptedCoordinator
    client: Client
    members: list[ScriptedMember]

    @property
    def member(self) -> ScriptedMember:
        return self.members[-1]

    @property
    def owner(self) -> RebalanceListenerInvoker:
        return self.member.owner

    def consumer(self, topics: Any = "t", **given: Any) -> GroupConsumer:
        callbacks = {name: given.pop(name, None) for name in RebalanceCallbacks._fields}
        names = [each.name for each in fields(GroupSettings)]
        settings = GroupSettings("g", **{name: given.pop(name) for name in names if name in given})

        def make(*arguments: Any) -> ScriptedMember:
            self.members.append(ScriptedMember(*arguments))
            return self.member

        start = given.pop("start", "earliest")
        return GroupConsumer(
            self.client._view,
            topics,
            settings,
            make,
            start=start,
            callbacks=RebalanceCallbacks(**callbacks),
            fetch_options=FetchOptions(**{"max_wait_ms": 20, **given}),
        )


@asynccontextmanager
async def group(
    *partitions: list[bytes],
    settings: ClientSettings = QUICK,
    clock: Clock = SYSTEM_CLOCK,
    make: Callable[[int, bytes], bytes] = lambda offset, value: batch(offset, [value]),
) -> AsyncIterator[Group]:
    """Yields a group that reads topic `t`.

    `partitions` has the values of each partition; each value is in a batch of its own.
    """
    async with ScriptedBroker({"t": len(partitions)}) as broker:
        log = ScriptedLog(broker)
        for partition, values in enumerate(partitions):
            for offset, value in enumerate(values):
                log.append(make(offset, value), partition=partition)
        coordinator = ScriptedCoordinator(broker)
        async with Client(broker.bootstrap, settings, clock=clock) as client:
            yield Group(broker, log, coordinator, client, [])
