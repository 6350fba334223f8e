"""Runs one storm of share groups: chooses the actions by a seed, then checks the log lines."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import kproto
from kproto.client.admin.configs import ConfigResource, ConfigResourceType
from kproto.messages import FindCoordinatorRequest
from tools.share.java import share_worker

from ..command import StormProgress, log_folder
from ..process import StormProcess
from .brokers import LIMIT, LOCK_S, NODES, StormBrokers
from .modes import ACCEPT, JAVA, MODES, POISON
from .sightings import STATE_TOPIC, ShareMember, ShareVerdict, StateLog, judge, state_log_of

__all__ = ["SharePlan", "ShareResult", "share_storm"]

ROOT: Final = Path(__file__).resolve().parents[3]
TOPIC: Final = "share-storm"
GROUP: Final = "workers"
OFFSETS_TOPIC: Final = "__consumer_offsets"

#: The key types of FindCoordinator.
_GROUP_KEY, _SHARE_KEY = 0, 2

#: The range of seconds of a stop of a member; some exceed the lock (3 s) and the session (6 s).
_STOPS_S: Final = (1.0, 9.0)
_PAUSE_S: Final = (0.5, 4.0)
_DOWN_S: Final = (2.0, 10.0)
#: The share of records that most members release.
_POISONED: Final = 0.01
_LEAVES_WITHIN_S: Final = 60.0
_SETTLED_WITHIN_S: Final = 180.0
_STARTED_WITHIN_S: Final = 120.0

SETTINGS: Final = kproto.ClientSettings(api_timeout_ms=60_000, delivery_timeout_ms=120_000)


@dataclass(frozen=True)
class SharePlan:
    """The plan of a storm. The same seed chooses the same actions.

    `members` is the maximum number of kproto's members at a time, and `others` that of Java's;
    `rate` is in records per second. `pause_s` is the range of seconds between actions, and `down_s`
    that of seconds until a killed broker is started again.
    """

    minutes: float = 10.0
    seed: int = 1
    partitions: int = 6
    rate: int = 150
    members: int = 5
    others: int = 1
    kills_brokers: bool = True
    pause_s: tuple[float, float] = _PAUSE_S
    down_s: tuple[float, float] = _DOWN_S


@dataclass
class ShareResult:
    """The result of a storm of share groups."""

    plan: SharePlan
    brokers: str = ""
    verdict: ShareVerdict = field(default_factory=ShareVerdict)
    actions: Counter[str] = field(default_factory=Counter)
    members: int = 0
    took_s: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Returns True if all checks pass, and every member ended as planned."""
        return self.verdict.is_right and not self.notes


async def share_storm(
    plan: SharePlan, brokers: StormBrokers, progress: StormProgress, keep: Path | None = None
) -> ShareResult:
    """Runs the plan on running brokers; keeps the logs in the new folder `keep`, if given."""
    result = ShareResult(plan, brokers.title)
    begun = time.monotonic()
    with log_folder(keep) as folder:
        async with kproto.Client(brokers.bootstrap, SETTINGS) as client:
            await client.create_topics(kproto.NewTopic(TOPIC, plan.partitions, NODES))
            resource = ConfigResource(ConfigResourceType.GROUP, GROUP)
            configs = {"share.auto.offset.reset": "earliest"}
            await client.admin.incremental_alter_configs({resource: configs})
            await _Storm(plan, brokers, client, result, progress, folder).run()
    result.took_s = time.monotonic() - begun
    return result


class _Process(StormProcess):
    """The process of a member in one of the modes `MODES`, or of a member of Java's client."""

    def __init__(self, number: int, mode: str, bootstrap: str, folder: Path) -> None:
        name = f"{mode}-{number}"
        self.mode = mode
        self._lines = folder / f"{name}.lines"
        said = folder / f"{name}.log"
        if mode == JAVA:  # its lines are its output
            command = share_worker(bootstrap, TOPIC, GROUP, max_poll_records=50, output="storm")
        else:
            arguments = [bootstrap, TOPIC, GROUP, mode, str(self._lines)]
            command = [sys.executable, "-m", f"{__package__}.member", *arguments]
        with said.open("wb") as output, self._lines.open("wb") as lines:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=lines if mode == JAVA else output,
                stderr=output,
            )
        super().__init__(name, process, said, [])

    @property
    def has_started(self) -> bool:
        """True if the member has written a line."""
        return self._lines.stat().st_size > 0

    def ask_to_leave(self) -> None:
        """Makes the member leave the group and end: by SIGTERM, or by the end of Java's input."""
        if self.mode != JAVA:
            super().ask_to_leave()
        self._close_input()

    def _close_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """Kills the process, and waits for its end."""
        super().kill()
        self._close_input()

    def told(self) -> ShareMember:
        """Returns the member as its log lines describe it."""
        member = ShareMember(self.name, harmed=list(self._harmed))
        text = self._lines.read_text(encoding="utf-8")
        for line in text[: text.rfind("\n") + 1].splitlines():
            member.take(line)
        return member


class _Storm:
    """A storm: its members, and the actions that the seed chooses."""

    def __init__(
        self,
        plan: SharePlan,
        brokers: StormBrokers,
        client: kproto.Client,
        result: ShareResult,
        progress: StormProgress,
        folder: Path,
    ) -> None:
        self._plan = plan
        self._brokers = brokers
        self._client = client
        self._result = result
        self._progress = progress
        self._folder = folder
        self._chance = random.Random(plan.seed)
        self._begun = time.monotonic()
        self._members: list[_Process] = []
        self._gone: list[_Process] = []
        self._restart: asyncio.Task[None] | None = None
        self._is_over = False

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._produce())
                await self._act()
                self._is_over = True
            if self._restart is not None:
                await self._restart
            await self._leave_all()
            await self._settle()
            ends = await self._ends()
            records = [each async for each in self._client.consumer(STATE_TOPIC, stop_at_end=True)]
            log = state_log_of(records, GROUP)
            self._keep(log)
            told = [each.told() for each in self._gone]
            self._result.members = len(told)
            self._result.verdict = judge(told, log, ends, LIMIT, LOCK_S)
        finally:
            for each in self._members:
                each.kill()
            if self._restart is not None:
                self._restart.cancel()

    async def _produce(self) -> None:
        """Sends records to all partitions, until the storm is over."""
        chance = random.Random(f"{self._plan.seed} sends")
        async with self._client.producer(linger_ms=5) as producer:
            while not self._is_over:
                for _ in range(max(1, self._plan.rate // 20)):
                    partition = chance.randrange(self._plan.partitions)
                    value = POISON if chance.random() < _POISONED else b"storm"
                    await producer.enqueue(TOPIC, value, partition=partition)
                await asyncio.sleep(0.05)

    def _keep(self, log: StateLog) -> None:
        with (self._folder / "states.log").open("w", encoding="utf-8") as file:
            for (partition, offset), states in sorted(log.items()):
                file.write(f"{partition} {offset} {states}\n")

    # Actions

    async def _act(self) -> None:
        ends = self._begun + self._plan.minutes * 60
        for mode in MODES[: self._plan.members]:
            self._start_member(mode)
        for _ in range(self._plan.others):
            self._start_member(JAVA)
        while time.monotonic() < ends:
            await asyncio.sleep(self._chance.uniform(*self._plan.pause_s))
            self._note_dead()
            names, weights = zip(*self._possible(), strict=True)
            (chosen,) = self._chance.choices(names, weights)
            if await getattr(self, f"_{chosen}")() is not False:
                self._result.actions[chosen] += 1
            self._progress(chosen, time.monotonic() - self._begun, len(self._members))
        for each in self._members:
            each.wake()

    def _possible(self) -> list[tuple[str, int]]:
        found = [("nothing", 1)]
        able = self._able()
        others = sum(each.mode == JAVA for each in self._members)
        if len(self._members) - others < self._plan.members:
            found.append(("join", 6))
        if others < self._plan.others:
            found.append(("java_join", 3))
        if len(able) > 1:
            found += [("leave", 2), ("kill", 3), ("stop", 3)]
        if self._plan.kills_brokers and (self._restart is None or self._restart.done()):
            found += [
                ("kill_leader", 3),
                ("kill_group_coordinator", 2),
                ("kill_share_coordinator", 2),
            ]
        return found

    def _able(self) -> list[_Process]:
        return [each for each in self._members if not each.is_stalled and each.has_started]

    async def _nothing(self) -> None:
        pass

    async def _join(self) -> None:
        self._start_member(self._chance.choice(MODES))

    async def _java_join(self) -> None:
        self._start_member(JAVA)

    def _start_member(self, mode: str) -> None:
        number = len(self._members) + len(self._gone)
        self._members.append(_Process(number, mode, self._brokers.bootstrap, self._folder))

    async def _leave(self) -> None:
        await self._leaves([self._chance.choice(self._able())])

    async def _leaves(self, leaving: list[_Process]) -> None:
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
            elif each.exit_code and each.has_started:
                self._result.notes.append(
                    f"{each.name} failed ({each.exit_code}):\n{each.last_words()}"
                )

    async def _kill(self) -> None:
        each = self._chance.choice(self._able())
        self._members.remove(each)
        self._gone.append(each)
        await asyncio.to_thread(each.kill)

    async def _stop(self) -> None:
        each = self._chance.choice(self._able())
        each.stall()
        seconds = self._chance.uniform(*_STOPS_S)
        asyncio.get_running_loop().call_later(seconds, each.wake)

    def _note_dead(self) -> None:
        for each in list(self._members):
            if not each.is_there:
                self._members.remove(each)
                self._gone.append(each)
                self._result.notes.append(
                    f"{each.name} ended by itself ({each.exit_code}):\n{each.last_words()}"
                )

    # Kills of brokers

    async def _kill_leader(self) -> bool:
        partition = self._chance.randrange(self._plan.partitions)
        return await self._kill_broker(lambda: self._leader_of(partition))

    async def _kill_group_coordinator(self) -> bool:
        return await self._kill_broker(lambda: self._coordinator(_GROUP_KEY, GROUP))

    async def _kill_share_coordinator(self) -> bool:
        partition = self._chance.randrange(self._plan.partitions)

        async def find() -> int:
            topic_id = (await self._client.topic(TOPIC)).topic_id
            return await self._coordinator(_SHARE_KEY, f"{GROUP}:{topic_id}:{partition}")

        return await self._kill_broker(find)

    async def _kill_broker(self, find: Callable[[], Awaitable[int]]) -> bool:
        """Kills a broker, if all replicas are in sync; starts it again in the background."""
        seconds = self._chance.uniform(*self._plan.down_s)
        try:
            if not await self._is_in_sync():
                return False
            node = await find()
        except kproto.KprotoError:
            return False
        if node < 0:
            return False
        await self._brokers.kill(node)
        self._restart = asyncio.create_task(self._restarts(node, seconds))
        return True

    async def _restarts(self, node: int, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._brokers.start(node)

    async def _leader_of(self, partition: int) -> int:
        (topic,) = await self._client.refresh([TOPIC])
        return topic.partitions[partition].leader

    async def _coordinator(self, kind: int, key: str) -> int:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        found = await self._client.retrying(lambda: self._client.request(request))
        (coordinator,) = found.coordinators
        return -1 if coordinator.error_code else coordinator.node_id

    async def _is_in_sync(self) -> bool:
        """Returns True if each partition has all its replicas in sync."""
        topics = await self._client.refresh([TOPIC, STATE_TOPIC, OFFSETS_TOPIC])
        return all(
            topic.partitions and len(each.in_sync) == NODES
            for topic in topics
            for each in topic.partitions.values()
        )

    # The end

    async def _leave_all(self) -> None:
        deadline = time.monotonic() + _STARTED_WITHIN_S
        while time.monotonic() < deadline:
            if all(each.has_started for each in self._members):
                break
            await asyncio.sleep(0.1)  # the processes start
        await self._leaves(list(self._members))

    async def _settle(self) -> None:
        """Waits until members that accept each record have settled all records."""
        for _ in range(max(1, self._plan.members // 2)):
            self._start_member(ACCEPT)
        deadline = time.monotonic() + _SETTLED_WITHIN_S
        lag: int | None = None
        while lag != 0:
            self._note_dead()
            lag = await self._lag()
            self._progress(f"{lag} not settled", time.monotonic() - self._begun, 0)
            if lag and time.monotonic() > deadline:
                self._result.notes.append(
                    f"{lag} records were not settled {_SETTLED_WITHIN_S:g} s after the end"
                )
                break
            await asyncio.sleep(0.2)
        await self._leave_all()

    async def _lag(self) -> int:
        """Returns the number of records that are neither accepted nor archived."""
        found = await self._client.admin.list_share_group_offsets({GROUP: None})
        ends = await self._ends()
        its = {tp[1]: each.lag for tp, each in found[GROUP].items() if each is not None}
        return sum(its.get(at) or (0 if at in its else end) for at, end in ends.items())

    async def _ends(self) -> dict[int, int]:
        places = [(TOPIC, at) for at in range(self._plan.partitions)]
        found = await self._client.list_offsets(dict.fromkeys(places, "latest"))
        return {partition: offset for (_, partition), offset in found.items()}
