"""Defines `Reading`, an assignment listener of a group member, which only records its calls.

From the calls, a test sees in which order partitions were assigned and revoked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TypeVar

from kproto.client.client import Client
from kproto.client.groups.classic.member import ClassicMember
from kproto.client.groups.consumer.member import ConsumerMember
from kproto.client.groups.protocol_selection import GroupMember
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.client.metadata.cluster import TopicPartition
from kproto.client.metadata.cluster_view import ClusterView
from kproto.wire.errors import KprotoError

__all__ = ["Reading", "made", "made_as"]

M = TypeVar("M", ConsumerMember, GroupMember, ClassicMember)


class Reading:
    """Records the calls of an `AssignmentListener`, and the partitions assigned now.

    If `held` is set, a revocation waits for this event, as for a record in process. If `telling` is
    set, `on_partitions_lost` waits, too. If the call is cancelled, the next `on_partitions_lost`
    repeats it.
    """

    def __init__(self) -> None:
        self.places: set[TopicPartition] = set()
        self.calls: list[tuple[str, tuple[TopicPartition, ...]]] = []
        self.error: KprotoError | None = None
        self.is_late = False
        self.held: asyncio.Event | None = None
        self.telling: asyncio.Event | None = None
        self.until = 0.0
        self.on_call: Callable[[str, Collection[TopicPartition]], None] = lambda name, places: None

    def _note(self, name: str, places: Collection[TopicPartition]) -> None:
        self.calls.append((name, tuple(sorted(places))))
        self.on_call(name, places)

    @property
    def names(self) -> list[str]:
        """Returns the names of the calls, in order."""
        return [name for name, _ in self.calls]

    def owned_partitions(self) -> Collection[TopicPartition]:
        return frozenset(self.places)

    async def revoke(self, tps: Collection[TopicPartition], until: float) -> None:
        assert set(tps) <= self.places
        self.until = until
        if self.held is not None:
            self.calls.append(("waits", ()))
            await self.held.wait()
        self._note("revoke", tps)
        self.places.difference_update(tps)

    async def on_partitions_lost(self, places: Collection[TopicPartition]) -> None:
        assert set(places) <= self.places
        self._note("lose", places)
        self.places.difference_update(places)
        if self.telling is not None:
            await self.telling.wait()
            self.calls.append(("told", ()))

    async def assign(self, tps: Collection[TopicPartition]) -> None:
        assert self.places.isdisjoint(tps)
        self._note("assign", tps)
        self.places.update(tps)

    def on_member_failed(self, error: KprotoError) -> None:
        self.error = error

    def poll_interval_exceeded(self, now: float) -> bool:
        return self.is_late

    async def until_true(self, condition: Callable[[], object]) -> None:
        """Waits until `condition` holds; only the test's own timeout limits the wait."""
        while not condition():  # noqa: ASYNC110 - the state may change in another event loop
            await asyncio.sleep(0.002)


def made(
    client: Client, settings: GroupSettings, wanted: str | Subscription
) -> tuple[ClassicMember, Reading]:
    """Returns a classic member that is not started yet, and its listener."""
    return made_as(ClassicMember, client, settings, wanted)


def made_as(
    kind: Callable[[ClusterView, GroupSettings, Reading], M],
    client: Client,
    settings: GroupSettings,
    wanted: str | Subscription,
) -> tuple[M, Reading]:
    """Returns a member of this class that is not started yet, and its listener."""
    reading = Reading()
    member = kind(client._view, settings, reading)
    member.subscribe(Subscription.to(wanted) if isinstance(wanted, str) else wanted)
    return member, reading
