"""Defines `Setting`: a classic member at a scripted broker, with a manual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kproto import Client
from kproto.client.groups.classic.member import ClassicMember
from kproto.client.groups.classic.phases import Phase
from kproto.client.groups.settings import GroupSettings
from kproto.testing.clock import ManualClock
from tests.support.recording_listener import new_classic_member
from tests.unit.client.groups.any_setting import AnySetting
from tests.unit.client.scripted_broker import ScriptedBroker, quick

from ..scripted_group import ScriptedGroup

__all__ = ["Setting", "a_member"]


class Setting(AnySetting):
    """A scripted broker with its group, a client and one classic member."""

    member: ClassicMember

    def __init__(
        self, broker: ScriptedBroker, client: Client, clock: ManualClock, **settings: Any
    ) -> None:
        its: dict[str, Any] = {"assignors": ("range",)} | settings
        self.broker, self.client, self.clock = broker, client, clock
        self.group = ScriptedGroup(broker)
        self.member, self.its = new_classic_member(client, GroupSettings("g", **its), "t")

    @property
    def phase(self) -> Phase:
        return self.member._membership.phase


@asynccontextmanager
async def a_member(client: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[Setting]:
    clock = ManualClock()
    async with ScriptedBroker({"t": 2}) as broker:
        its = quick(metadata_wait_ms=1_000, delivery_timeout_ms=120_000, **(client or {}))
        async with Client(broker.bootstrap, its, clock=clock) as using:
            setting = Setting(broker, using, clock, **settings)
            yield setting
            await setting.member.close()
