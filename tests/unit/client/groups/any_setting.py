"""What tests of a member of either kind have: a scripted broker, a clock, what was asked."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from enum import Enum
from typing import Any

from kproto.client import Client
from kproto.messages.base import Request
from kproto.testing.clock import ManualClock
from tests.support.group_owner import Reading
from tests.unit.client.scripted_broker import ScriptedBroker

__all__ = ["PLACES", "AnySetting"]

PLACES = {("t", 0), ("t", 1)}


class AnySetting(ABC):
    """A broker, a client and a member of it."""

    broker: ScriptedBroker
    client: Client
    clock: ManualClock
    group: Any
    member: Any
    its: Reading

    @property
    @abstractmethod
    def phase(self) -> Enum:
        """Where the member is."""

    async def joined(self) -> None:
        self.member.start()
        await self.until(lambda: self.its.places == PLACES)
        await self.until(lambda: self.phase.name == "STABLE")

    async def unsubscribed_as_it_loses_all(self, request: type[Request[Any]]) -> None:
        """It unsubscribes while its user is told that all is lost: he is told anew at once.

        `request` is the heartbeat, by whose answer it is lost.
        """
        await self.joined()
        self.its.telling = asyncio.Event()
        self.group.errors[request] = ["UNKNOWN_MEMBER_ID"]
        await self.pass_until(lambda: self.its.names[-1] == "lose")
        self.member.unsubscribe()
        await self.until(lambda: self.its.names[-2:] == ["lose", "lose"])
        self.its.telling.set()
        await self.until(lambda: self.phase.name in ("UNSUBSCRIBED", "UNSUBSCRIBED"))
        assert self.its.names == ["assign", "lose", "lose", "told"]

    async def until(self, condition: Any) -> None:
        await self.broker.until(condition)

    async def pass_until(self, condition: Any, ms: float = 100) -> None:
        """Let time pass until something has happened."""
        while not condition():
            await self.clock.advance(ms)
            await asyncio.sleep(0.001)

    def is_in(self, phase: Enum) -> bool:
        return self.phase is phase

    def asked(self, request: type[Request[Any]]) -> list[Any]:
        return [each.message for each in self.broker.asked if isinstance(each.message, request)]
