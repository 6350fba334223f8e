"""The actions that random schedules of consumer groups and of share groups have in common.

`schedules` and `share_schedules` add their own actions and checks. The draws of a schedule depend
on its seed, and on the order of the actions in the lists of possible actions.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

import kproto
from kproto.broker import Close, Cluster
from kproto.broker.faults import Control, LoseResponses, SilentConnection, Slow
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock

from .manual_time import STRIDE_MS, ManualTime

__all__ = ["GroupMember", "GroupSchedule", "Outcome", "play_all", "report_unseen"]

MOST_MEMBERS: Final = 4
STEPS: Final = 14

#: The settings of all clients of a schedule.
SETTINGS: Final = kproto.ClientSettings(
    request_timeout_ms=4_000,
    delivery_timeout_ms=30_000,
    api_timeout_ms=30_000,
    reconnect_backoff_max_ms=500,
    retry_backoff_max_ms=500,
    connect_timeout_ms=2_000,
    connect_timeout_max_ms=4_000,
)

Action: TypeAlias = Callable[[], Any]


@dataclass
class Outcome:
    """The result of the schedule of one `seed`: violations (`wrong`), and counts."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    records: int = 0


OutcomeT = TypeVar("OutcomeT", bound=Outcome)


def report_unseen(outcome: Outcome) -> None:
    """Adds the errors that the event loop reports to the violations."""
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: outcome.wrong.append(f"unseen: {context.get('message')} {context}")
    )


class GroupMember(ABC):
    """Runs one member of the group in a task, and processes its records like an application."""

    def __init__(self, seed: int, name: str) -> None:
        self.name = name
        self.stop = asyncio.Event()
        self._chance = random.Random(f"{seed} {name}")
        self.task = asyncio.create_task(self._run())

    @abstractmethod
    async def _run(self) -> None:
        """Reads records until `stop` is set."""

    async def _each_record(self, consumer: Any, handle: Callable[[Any], Any]) -> None:
        """Calls `handle` with each record, until the member must stop."""
        records = aiter(consumer)
        stopping = asyncio.create_task(self.stop.wait())
        try:
            while not stopping.done():
                coming = asyncio.ensure_future(anext(records))
                try:
                    await asyncio.wait([coming, stopping], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not coming.done():
                        coming.cancel()
                if coming.cancelled() or not coming.done():
                    break
                await handle(coming.result())
        finally:
            stopping.cancel()


MemberT = TypeVar("MemberT", bound=GroupMember)


class GroupSchedule(ABC, Generic[MemberT]):
    """Runs one random schedule; tracks its members and its faults."""

    topic: ClassVar[str]
    partitions: ClassVar[int]
    value: ClassVar[bytes]  #: of all records
    member_prefix: ClassVar[str]  #: of the names of members
    finished: ClassVar[str]  #: the state in which `_is_finished` is True

    def __init__(
        self, outcome: Outcome, cluster: Cluster, clock: ManualClock, apis: Iterable[Any]
    ) -> None:
        self.cluster = cluster
        self.clock = clock
        self.chance = random.Random(outcome.seed)
        self.members: list[MemberT] = []
        self.cut_off: set[str] = set()
        self.written = [0] * self.partitions
        self._outcome = outcome
        self._apis: Sequence[Any] = tuple(apis)  # the requests that faults can affect
        self._number = 0
        self._faults: list[Control] = []
        self._stopped: int | None = None
        self._time = ManualTime(clock)

    async def run(self) -> None:
        """Draws and carries out the actions; ends the faults, and waits until all is finished."""
        self.cluster.control(self._cuts_off)
        try:
            await self._prepare()
            self._join()
            self._join()
            await self._writes()
            for _ in range(STEPS):
                action = self.chance.choice(self._possible())
                self._outcome.actions[action.__name__.strip("_")] += 1
                await action()
                await self._time.pass_ms(self.chance.uniform(0, 6_000))
            await self._heal()
            if not self.members:
                self._join()
            await self._until(self.finished, self._is_finished)
            for member in self.members:
                member.stop.set()
            await self._until(
                "all have left", lambda: all(each.task.done() for each in self.members)
            )
        finally:
            for member in self.members:
                member.task.cancel()
            waiting = asyncio.gather(*(m.task for m in self.members), return_exceptions=True)
            while not waiting.done():
                await self._time.pass_ms(STRIDE_MS)
        self._outcome.records = sum(self.written)

    # Defined by each kind of group

    async def _prepare(self) -> None:
        """Prepares the group before its first member joins."""

    @abstractmethod
    def _new_member(self, name: str) -> MemberT:
        """Starts a member."""

    @abstractmethod
    def _is_finished(self) -> bool:
        """Returns True if no record is left to process."""

    @abstractmethod
    def _always_possible(self) -> list[Action]:
        """Returns the actions that do not depend on the members."""

    def _possible_for_members(self) -> list[Action]:
        """Returns the actions that affect one member for some time."""
        return [self._is_cut_off]

    def _unfinished(self) -> str:
        """Returns details for a violation; begins with a separator."""
        return ""

    # Actions

    def _possible(self) -> list[Action]:
        found = self._always_possible()
        if len(self.members) < MOST_MEMBERS:
            found += [self._joins] * 4
        if len(self.members) > 1:
            found += [self._leaves, self._leaves, self._cancels]
        if self.members:
            found += self._possible_for_members()
        return found

    async def _writes(self) -> None:
        await self._ends("records are written", self._write())

    async def _write(self) -> None:
        bootstrap = self.cluster.bootstrap
        async with (
            kproto.Client(bootstrap, SETTINGS, clock=self.clock) as client,
            client.producer() as producer,
        ):
            for partition in range(self.partitions):
                count = self.chance.randrange(12)
                for _ in range(count):
                    await producer.enqueue(self.topic, self.value, partition=partition)
                self.written[partition] += count

    async def _joins(self) -> None:
        self._join()

    def _join(self) -> None:
        self._number += 1
        self.members.append(self._new_member(f"{self.member_prefix}-{self._number}"))

    async def _leaves(self) -> None:
        member = self.chance.choice(self.members)
        member.stop.set()
        await self._goes(member)

    async def _cancels(self) -> None:
        member = self.chance.choice(self.members)
        await self._cancel(member)
        await self._goes(member)

    async def _cancel(self, member: MemberT) -> None:
        member.task.cancel()

    async def _goes(self, member: MemberT) -> None:
        """Waits until a member has ended, then removes it; its actions are still checked."""
        await self._until(f"{member.name} has gone", member.task.done)
        self.members.remove(member)

    async def _is_cut_off(self) -> None:
        member = self.chance.choice(self.members)
        self.cut_off.add(member.name)
        await self._time.pass_ms(self.chance.uniform(500, 12_000))
        self.cut_off.discard(member.name)

    def _fault(self, function: Callable[[ReceivedRequest], Any], times: int = 1) -> None:
        self._fault_in(self.chance.choice(self._apis), function, times)

    def _fault_in(self, api: Any, function: Callable[[ReceivedRequest], Any], times: int) -> None:
        self._faults.append(self.cluster.control(function, request=api, times=times))

    async def _loses_answer(self) -> None:
        self._fault(LoseResponses())

    async def _delays(self) -> None:
        self._fault(Slow(self.chance.randrange(100, 5_000)), times=3)

    async def _closes(self) -> None:
        after = self.chance.random() < 0.5
        self._fault(lambda _: Close(after_handling=after))

    async def _stops_or_starts(self) -> None:
        if self._stopped is None:
            self._stopped = self.chance.choice(list(self.cluster.nodes))
            await self.cluster.stop_broker(self._stopped)
        else:
            await self._start()

    async def _start(self) -> None:
        if self._stopped is not None:
            await self.cluster.start_broker(self._stopped)
            self._stopped = None

    async def _heal(self) -> None:
        """Ends all faults."""
        await self._start()
        self.cut_off.clear()
        for control in self._faults:
            self.cluster.remove_control(control)

    # Checks

    def _cuts_off(self, request: ReceivedRequest) -> Any:
        return SilentConnection()(request) if request.client_id in self.cut_off else None

    def wrong(self, what: str) -> None:
        """Adds a violation with the time of the manual clock."""
        self._outcome.wrong.append(f"at {self.clock.monotonic():.3f} s: {what}")

    # Time

    async def _until(self, what: str, holds: Callable[[], bool]) -> None:
        if not await self._time.until(holds):
            self.wrong(f"not {what}{self._unfinished()}")

    async def _ends(self, what: str, work: Any) -> None:
        task = asyncio.create_task(work)
        await self._until(what, task.done)
        task.result()


def play_all(play: Callable[[int], OutcomeT], first_seed: int, count: int) -> list[OutcomeT]:
    """Runs `count` schedules; prints the progress, and the first violation of each schedule."""
    for name in ("kproto", "asyncio"):  # the schedules cause the errors on purpose
        logging.getLogger(name).setLevel(logging.CRITICAL)
    outcomes = []
    for seed in range(first_seed, first_seed + count):
        outcome = play(seed)
        outcomes.append(outcome)
        if outcome.wrong:
            print(f"\r\033[Kseed {seed}: {outcome.wrong[0]}", flush=True)
        print(f"\r{len(outcomes)} of {count}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return outcomes
