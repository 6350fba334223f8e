"""Runs one storm: chooses the actions by a seed, then checks the members' log lines."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import kproto

from .command import StormProgress, log_folder
from .group_log import (
    Conversions,
    GroupRecord,
    commits_of,
    conversions_of,
    left_behind,
    read_group_log,
)
from .protocols import AUTO, BROKERS_OWN, MIXED, SESSION_MS, UNHARMED_SESSION_MS, is_classic
from .running import Group, MemberProcess
from .sightings import Verdict, judge

__all__ = ["Plan", "Result", "storm"]

TOPIC: Final = "storm"
GROUP: Final = "members"

#: The range of seconds of a stall; some exceed the session timeout (6 s).
_STALLS_S: Final = (1.0, 15.0)
_PAUSE_S: Final = (0.5, 5.0)
_LEAVES_WITHIN_S: Final = 30.0
_SEEN_WITHIN_S: Final = 90.0


@dataclass(frozen=True)
class Plan:
    """The plan of a storm. The same seed chooses the same actions.

    `ours` is the maximum number of kproto's members at a time, `others` that of other clients'
    members; `kinds` are the other clients. `rate` is in records per second. Without `harms`, no
    member is killed, stalled or slow. Raises ValueError if a client lacks the assignor's group
    protocol.
    """

    minutes: float = 10.0
    seed: int = 1
    partitions: int = 24
    rate: int = 400
    ours: int = 8
    others: int = 1
    kinds: tuple[str, ...] = ("java",)
    assignor: str = "cooperative-sticky"
    version: str = "4.4.0"
    harms: bool = True

    def __post_init__(self) -> None:
        cannot = [kind for kind in self.kinds if is_classic(kind, self.version)]
        if self.others and cannot and self.assignor in BROKERS_OWN:
            raise ValueError(
                f"{', '.join(cannot)} cannot be a member of the consumer protocol with Kafka "
                f"{self.version}: leave it out, or use the assignor {MIXED}"
            )


@dataclass
class Result:
    """The result of a storm, in which members of a group join, leave, stall and are killed."""

    plan: Plan
    verdict: Verdict = field(default_factory=Verdict)
    actions: Counter[str] = field(default_factory=Counter)
    members: int = 0
    conversions: Conversions = field(default_factory=Conversions)
    #: By client: the number of members that ended because of a known bug of client or broker.
    known_ends: Counter[str] = field(default_factory=Counter)
    took_s: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Returns True if all checks pass, and every member ended as planned."""
        return self.verdict.is_right and not self.notes


async def storm(
    plan: Plan, bootstrap: str, progress: StormProgress, keep: Path | None = None
) -> Result:
    """Runs the plan on a running broker; keeps the logs in the new folder `keep`, if given."""
    result = Result(plan)
    begun = time.monotonic()
    with log_folder(keep) as folder:
        group = Group(
            bootstrap,
            f"{TOPIC}-{plan.seed}",
            GROUP,
            plan.assignor,
            plan.version,
            folder,
            SESSION_MS if plan.harms else UNHARMED_SESSION_MS,
        )
        async with kproto.Client(bootstrap) as client:
            await client.create_topics(kproto.NewTopic(group.topic, plan.partitions))
            await _Storm(plan, group, client, result, progress).run()
    result.took_s = time.monotonic() - begun
    return result


class _Storm:
    """A storm: its members, and the actions that the seed chooses."""

    def __init__(
        self,
        plan: Plan,
        group: Group,
        client: kproto.Client,
        result: Result,
        progress: StormProgress,
    ) -> None:
        self._plan = plan
        self._group = group
        self._client = client
        self._result = result
        self._progress = progress
        self._chance = random.Random(plan.seed)
        self._begun = time.monotonic()
        self._members: list[MemberProcess] = []
        self._gone: list[MemberProcess] = []
        self._is_over = False

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send())
                await self._act()
                self._is_over = True
            over = time.time()
            ends = await self._ends()
            await self._until_seen(ends)
            await self._all_leave()
            written = await read_group_log(self._client, self._group.name)
            self._keep(written)
            told = [each.told() for each in self._gone]
            behind = left_behind(written)
            for its in told:
                its.left_behind += behind.get(its.name, [])
            self._result.members = len(told)
            self._result.conversions = conversions_of(written, until=over)
            self._result.verdict = judge(told, commits_of(written, self._group.topic), ends)
            self._result.notes += [
                f"{each.name}: {error}" for each in told if each.is_strict for error in each.errors
            ]
        finally:
            for each in self._members:
                each.kill()

    async def _send(self) -> None:
        chance = random.Random(f"{self._plan.seed} sends")
        async with self._client.producer(linger_ms=5) as producer:
            while not self._is_over:
                async with asyncio.timeout(60):
                    for _ in range(self._plan.rate // 20):
                        partition = chance.randrange(self._plan.partitions)
                        await producer.enqueue(self._group.topic, b"storm", partition=partition)
                await asyncio.sleep(0.05)

    # Actions

    async def _act(self) -> None:
        ends = self._begun + self._plan.minutes * 60
        for _ in range(min(3, self._plan.ours)):
            self._join("kproto")
        for at in range(self._plan.others):
            self._join(self._plan.kinds[at % len(self._plan.kinds)])
        while time.monotonic() < ends:
            await asyncio.sleep(self._chance.uniform(*_PAUSE_S))
            self._look_for_dead()
            action, weight = zip(*self._possible(), strict=True)
            (chosen,) = self._chance.choices(action, weight)
            self._result.actions[chosen] += 1
            await getattr(self, f"_{chosen}")()
            self._progress(chosen, time.monotonic() - self._begun, len(self._members))
        for each in self._members:
            each.wake()

    def _possible(self) -> list[tuple[str, int]]:
        ours = [each for each in self._members if each.kind == "kproto"]
        able = [each for each in self._members if not each.is_stalled]
        found = []
        if len(ours) < self._plan.ours:
            found.append(("our_join", 4 if len(ours) < self._plan.ours // 2 else 2))
        if len(self._members) - len(ours) < self._plan.others:
            found.append(("other_join", 2))
        if len(able) > 1:
            found.append(("leave", 3))
            if self._plan.harms:
                found += [("kill", 1), ("stall", 1)]
        if self._plan.assignor == MIXED and 0 < len(self._maybe_consumers()) < len(able):
            found.append(("convert", 1))
        if self._plan.harms and any(each in ours for each in able):
            found.append(("slow", 1))
        if any(each.is_stalled for each in self._members):
            found.append(("wake", 2))
        return found or [("nothing", 1)]

    async def _nothing(self) -> None:
        pass

    async def _our_join(self) -> None:
        self._join("kproto")

    async def _other_join(self) -> None:
        self._join(self._chance.choice(self._plan.kinds))

    def _join(self, kind: str) -> None:
        number = len(self._members) + len(self._gone)
        self._members.append(MemberProcess(kind, number, self._group))

    def _one(self, *, ours: bool = False) -> MemberProcess:
        able = [each for each in self._members if not each.is_stalled]
        return self._chance.choice([each for each in able if not ours or each.kind == "kproto"])

    async def _leave(self) -> None:
        await self._leaves([self._one()])

    def _maybe_consumers(self) -> list[MemberProcess]:
        its = [each for each in self._members if each.assignor in (*BROKERS_OWN, AUTO)]
        return [each for each in its if not each.is_stalled]

    async def _convert(self) -> None:
        """Stops the members that can use the consumer protocol; the group then becomes classic."""
        await self._leaves(self._maybe_consumers())

    async def _leaves(self, leaving: Sequence[MemberProcess]) -> None:
        for each in leaving:
            each.ask_to_leave()
        deadline = time.monotonic() + _LEAVES_WITHIN_S
        for each in leaving:
            self._members.remove(each)
            self._gone.append(each)
            if not await asyncio.to_thread(each.ended_by, deadline):
                self._result.notes.append(
                    f"{each.name} had not left after {_LEAVES_WITHIN_S:g} s:\n{each.last_words()}"
                )
                each.kill()
            elif (
                each.kind == "kproto"
                and each.exit_code != 0
                and not each.is_new
                and not self._is_known_end(each)
            ):
                text = f"{each.name} failed ({each.exit_code}):\n{each.last_words()}"
                self._result.notes.append(text)

    def _is_known_end(self, ended: MemberProcess) -> bool:
        is_known = ended.ended_by_known_fault()
        self._result.known_ends[ended.kind] += is_known
        return is_known

    async def _kill(self) -> None:
        each = self._one()
        self._members.remove(each)
        self._gone.append(each)
        await asyncio.to_thread(each.kill)

    async def _stall(self) -> None:
        each = self._one()
        each.stall()
        seconds = self._chance.uniform(*_STALLS_S)
        asyncio.get_running_loop().call_later(seconds, each.wake)

    async def _wake(self) -> None:
        next(each for each in self._members if each.is_stalled).wake()

    async def _slow(self) -> None:
        self._one(ours=True).be_slow()

    def _look_for_dead(self) -> None:
        for each in list(self._members):
            if not each.is_there:
                self._members.remove(each)
                self._gone.append(each)
                if not self._is_known_end(each):
                    words = f"{each.name} ended by itself ({each.exit_code}):\n{each.last_words()}"
                    self._result.notes.append(words)

    # The end

    async def _ends(self) -> dict[int, int]:
        places = [(self._group.topic, at) for at in range(self._plan.partitions)]
        found = await self._client.list_offsets(dict.fromkeys(places, "latest"))
        return {partition: offset for (_, partition), offset in found.items()}

    async def _until_seen(self, ends: dict[int, int]) -> None:
        """Waits until members have seen all records; after 90 s, notes how many are unseen."""
        deadline = time.monotonic() + _SEEN_WITHIN_S
        wanted = sum(ends.values())
        while True:
            self._look_for_dead()
            if not self._members:
                self._join("kproto" if self._plan.ours else self._plan.kinds[0])
            told = [each.told() for each in [*self._members, *self._gone]]
            seen = len({(s.partition, s.offset) for each in told for s in each.seen})
            self._progress(f"{wanted - seen} unseen", time.monotonic() - self._begun, 0)
            if seen == wanted:
                return
            if time.monotonic() > deadline:
                self._result.notes.append(
                    f"{wanted - seen} records were not seen {_SEEN_WITHIN_S:g} s after the end"
                )
                return
            await asyncio.sleep(1)

    async def _all_leave(self) -> None:
        await self._leaves(list(self._members))

    def _keep(self, written: Iterable[GroupRecord]) -> None:
        with (self._group.folder / "group.log").open("w", encoding="utf-8") as log:
            for offset, at, (key, value, _) in written:
                log.write(f"{offset} {at:.3f} {key!r} {value!r}\n")
