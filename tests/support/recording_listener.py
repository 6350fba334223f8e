"""Defines `RecordingListener`: an assignment listener that only records its calls.

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

__all__ = ["RecordingListener", "new_classic_member", "new_member"]

M = TypeVar("M", ConsumerMember, GroupMember, ClassicMember)


class RecordingListener:
    """Records the calls that the member makes, and the partitions that are currently assigned.

    If `revoke_gate` is set, `revoke` waits for this event before it records the call, as if a
    record were in process. If `lost_gate` is set, `on_partitions_lost` records the call, then waits
    for `lost_gate`.
    """

    def __init__(self) -> None:
        self.partitions: set[TopicPartition] = set()
        self.calls: list[tuple[str, tuple[TopicPartition, ...]]] = []
        self.error: KprotoError | None = None
        self.is_late = False
        self.revoke_gate: asyncio.Event | None = None
        self.lost_gate: asyncio.Event | None = None
        self.until = 0.0
        self.on_call: Callable[[str, Collection[TopicPartition]], None] = lambda name, partitions: (
            None
        )

    def _note(self, name: str, partitions: Collection[TopicPartition]) -> None:
        self.calls.append((name, tuple(sorted(partitions))))
        self.on_call(name, partitions)

    @property
    def names(self) -> list[str]:
        """Returns the names of the calls, in order."""
        return [name for name, _ in self.calls]

    def owned_partitions(self) -> Collection[TopicPartition]:
        return frozenset(self.partitions)

    async def revoke(self, tps: Collection[TopicPartition], until: float) -> None:
        assert set(tps) <= self.partitions
        self.until = until
        if self.revoke_gate is not None:
            self.calls.append(("waits", ()))
            await self.revoke_gate.wait()
        self._note("revoke", tps)
        self.partitions.difference_update(tps)

    async def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        assert set(partitions) <= self.partitions
        self._note("lose", partitions)
        self.partitions.difference_update(partitions)
        if self.lost_gate is not None:
            await self.lost_gate.wait()
            self.calls.append(("told", ()))

    async def assign(self, tps: Collection[TopicPartition]) -> None:
        assert self.partitions.isdisjoint(tps)
        self._note("assign", tps)
        self.partitions.update(tps)

    def on_member_failed(self, error: KprotoError) -> None:
        self.error = error

    def poll_interval_exceeded(self, now: float) -> bool:
        return self.is_late

    async def until_true(self, condition: Callable[[], object]) -> None:
        """Waits until `condition` holds; only the test's own timeout limits the wait."""
        while not condition():  # noqa: ASYNC110 - the state may change in another event loop
            await asyncio.sleep(0.002)


def new_classic_member(
    client: Client, settings: GroupSettings, wanted: str | Subscription
) -> tuple[ClassicMember, RecordingListener]:
    """Returns a classic member, which is not started yet, and the member's listener."""
    return new_member(ClassicMember, client, settings, wanted)


def new_member(
    kind: Callable[[ClusterView, GroupSettings, RecordingListener], M],
    client: Client,
    settings: GroupSettings,
    wanted: str | Subscription,
) -> tuple[M, RecordingListener]:
    """Returns a member of class `kind`, which is not started yet, and the member's listener."""
    listener = RecordingListener()
    member = kind(client._view, settings, listener)
    member.subscribe(Subscription.to(wanted) if isinstance(wanted, str) else wanted)
    return member, listener
