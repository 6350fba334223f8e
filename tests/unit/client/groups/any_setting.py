"""Defines `AnySetting`, the base class of the test setups with one member of either protocol."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from enum import Enum
from typing import Any

from kproto.client import Client
from kproto.messages.base import Request
from kproto.testing.clock import ManualClock
from tests.support.recording_listener import RecordingListener
from tests.unit.client.scripted_broker import ScriptedBroker

__all__ = ["PARTITIONS", "AnySetting"]

PARTITIONS = {("t", 0), ("t", 1)}


class AnySetting(ABC):
    """A scripted broker, a manual clock, a client and one group member of either protocol."""

    broker: ScriptedBroker
    client: Client
    clock: ManualClock
    group: Any
    member: Any
    its: RecordingListener

    @property
    @abstractmethod
    def phase(self) -> Enum:
        """Returns the phase of the member."""

    async def joined(self) -> None:
        self.member.start()
        await self.until(lambda: self.its.partitions == PARTITIONS)
        await self.until(lambda: self.phase.name == "STABLE")

    async def unsubscribe_while_partitions_are_lost(self, request: type[Request[Any]]) -> None:
        """Checks that unsubscribe calls on_partitions_lost again, at once.

        The member unsubscribes while the first call of the callback is running. `request` is the
        class of the heartbeat whose response reports the lost membership.
        """
        await self.joined()
        self.its.lost_gate = asyncio.Event()
        self.group.errors[request] = ["UNKNOWN_MEMBER_ID"]
        await self.pass_until(lambda: self.its.names[-1] == "lose")
        self.member.unsubscribe()
        await self.until(lambda: self.its.names[-2:] == ["lose", "lose"])
        self.its.lost_gate.set()
        await self.until(lambda: self.phase.name == "UNSUBSCRIBED")
        assert self.its.names == ["assign", "lose", "lose", "told"]

    async def until(self, condition: Any) -> None:
        await self.broker.until(condition)

    async def pass_until(self, condition: Any, ms: float = 100) -> None:
        """Advances the clock in steps of `ms` until `condition()` is true."""
        while not condition():
            await self.clock.advance(ms)
            await asyncio.sleep(0.001)

    def is_in(self, phase: Enum) -> bool:
        return self.phase is phase

    def requests(self, request: type[Request[Any]]) -> list[Any]:
        return [each.message for each in self.broker.asked if isinstance(each.message, request)]
