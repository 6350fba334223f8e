"""Random members, at random times, over coordinators that move: what holds for every group.

Now and then there is no room for what they make of it.

Some are played on two groups: one sees every millisecond, the other looks now and then. What is
heard and what is stored must be the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from kproto.broker.groups import (
    ClassicGroupState,
    JoinResult,
    LeaveRequest,
    PendingResult,
    SyncResult,
)
from kproto.broker.groups.offset_commit_checks import resets_session, validate_offset_commit
from tests.support.selection import rest_slow

from .classic_group_driver import NEW_MEMBER_MS, Play, error_of, protocols
from .test_coordinator_moves import moved

SCHEDULES: Final = 150
ALL_SCHEDULES: Final = 5_000
STEPS: Final = 120

SESSIONS: Final = (300, 1_000, 3_000)
REBALANCES: Final = (0, 500, 2_000, 5_000)
METADATA: Final = (b"1", b"2")
NO_ROOM: Final = "UNKNOWN_SERVER_ERROR"
SUPPORTED_OPERATIONS: Final = (("range",), ("range", "sticky"), ("sticky", "range"))


@dataclass
class Client:
    """What one of those who come and go knows of itself; `instance_id` where it is static."""

    name: str
    instance_id: str | None
    member_id: str = ""
    generation: int = -1
    told: tuple[str, ...] = ()
    names: tuple[str, ...] = ("range",)
    metadata: bytes = b"1"
    session_ms: int = 1_000
    rebalance_ms: int = 2_000
    pending_join: PendingResult[JoinResult] | None = None
    pending_sync: PendingResult[SyncResult] | None = None
    #: The generation that `pending_sync` is of.
    syncs: int = -1


@dataclass
class Laws:
    """What holds for a group, whatever happens."""

    play: Play
    #: By generation: what all of its members must be told alike.
    generations: dict[int, tuple[object, ...]] = field(default_factory=dict)
    #: By generation and member: what the leader assigned.
    assigned: dict[int, dict[str, bytes]] = field(default_factory=dict)
    waiting: list[PendingResult[Any]] = field(default_factory=list)
    #: Of static members: the id of the first of their former selves.
    first_ids: dict[str, str] = field(default_factory=dict)

    def forget(self) -> None:
        """A coordinator is gone: generations that were not stored may be there again."""
        kept = self.play.group.generation
        for known in (self.generations, self.assigned):
            for generation in [it for it in known if it > kept]:
                del known[generation]

    def hold(self) -> None:
        group = self.play.group
        assert (group.leader is None) == (not group.members)
        assert group.leader is None or group.leader in group.members
        assert (not group.members) or group.state is not ClassicGroupState.EMPTY
        assert set(group.static_ids.values()) == {
            it.member_id for it in group.members.values() if it.instance_id is not None
        }
        assert not set(group.pending_ids) & set(group.members)
        for member in group.members.values():
            assert (
                member.pending_join is None or group.state is ClassicGroupState.PREPARING_REBALANCE
            )
            assert (
                member.pending_sync is None or group.state is ClassicGroupState.COMPLETING_REBALANCE
            )
            assert member.deadline_ms is not None or member.is_waiting, "it would stay for ever"
        if group.state is ClassicGroupState.STABLE:
            expected = self.assigned[group.generation]
            for member in group.members.values():
                assert member.assignment == expected[member.member_id]
        still = [it for it in self.waiting if it.answer is None]
        assert not still or group.next_deadline_ms is not None, "somebody waits for ever"
        self.waiting = still

    def joined(self, answer: JoinResult) -> None:
        """Of one generation all hear the same; its leader alone hears of its members."""
        if answer.error == NO_ROOM:
            assert (answer.member_id, answer.members) == ("", ())
            return
        if answer.error != "NONE":
            assert (answer.generation, answer.members, answer.leader) == (-1, (), "")
            return
        leader = self.first_ids.get(answer.leader, answer.leader)
        same = (answer.protocol_type, answer.protocol, leader)
        assert self.generations.setdefault(answer.generation, same) == same
        # Who comes back and cannot skip the assignment hears of its former self as the leader.
        assert answer.member_id == answer.leader or not answer.members
        assert (answer.member_id in [it.member_id for it in answer.members]) == bool(answer.members)

    def replaced(self, former: str, new_id: str) -> None:
        """What was assigned to a static member is its next self's, and so is that it leads."""
        self.first_ids[new_id] = self.first_ids.get(former, former)
        for members in self.assigned.values():
            if former in members:
                members[new_id] = members[former]


class Schedule:
    """One random course of things, on one group; two of one seed do the same."""

    def __init__(self, seed: int, *, every_ms: bool) -> None:
        self.chance = random.Random(seed)
        delay_ms = self.chance.choice((0, 0, 700))
        self.play = Play(
            delay_ms=delay_ms, max_size=self.chance.choice((3, 100)), new_member_ms=NEW_MEMBER_MS
        )
        self.laws = Laws(self.play)
        self.every_ms = every_ms
        self.heard: list[object] = []
        self.clients = [Client(name, name if name in "de" else None) for name in "abcde"]
        self._ids = 0

    def run(self) -> None:
        acts: list[Callable[[Client], None]] = [
            *[self.next_of] * 12,
            self.forget_answer,
            self.change,
            self.come_back,
            self.leave,
            self.commit,
            self.join,
            self.sync_as_if,
        ]
        for _ in range(STEPS):
            if self.chance.random() < 0.5:
                self.pass_time(self.chance.choice((1, 10, 100, 250, 600, 1_500)))
            if self.chance.random() < 0.02:
                self.move()
            if self.chance.random() < 0.05:
                self.play.refuses = self.chance.choice(("", "", NO_ROOM))
            self.chance.choice(acts)(self.chance.choice(self.clients))
            self.look()
        self.end()

    def look(self) -> None:
        """Let everybody hear what is there for them, and check what holds."""
        self.laws.hold()
        for client in self.clients:
            if client.pending_join is not None and client.pending_join.answer is not None:
                self.hear_joined(client, client.pending_join.answer)
            if client.pending_sync is not None and client.pending_sync.answer is not None:
                self.hear_synced(client, client.pending_sync.answer)

    def pass_time(self, ms: int) -> None:
        for _ in range(ms if self.every_ms else 1):
            self.play.wait(1 if self.every_ms else ms)
            self.laws.hold()

    def move(self) -> None:
        self.play.group.advance(self.play.now)
        self.look()  # at what the former coordinator has said
        moved(self.play)
        self.laws.forget()
        self.heard.append("moved")

    # What clients do

    def next_of(self, client: Client) -> None:
        """A member joins, asks for its assignment, and lives on."""
        if client.pending_join is not None or client.pending_sync is not None:
            return
        if client.generation < 0:
            self.join(client)
        elif client.told is not None and self.chance.random() < 0.4:
            self.sync(client)
        else:
            self.beat(client)

    def ask(self, do: Callable[[], Any]) -> Any:
        """Whatever is answered wakes who waits; so does what makes them wait less."""
        before = [it for it in self.laws.waiting if it.answer is None]
        self.play.group.advance(self.play.now)
        wakes, next_deadline_ms = self.play.wakes, self.play.group.next_deadline_ms
        open_before = [it for it in before if it.answer is None]
        found = do()
        after = self.play.group.next_deadline_ms
        answered = any(it.answer is not None for it in open_before)
        nearer = after is not None and (next_deadline_ms is None or after < next_deadline_ms)
        if answered or (nearer and open_before):
            assert self.play.wakes > wakes
        return found

    def join(self, client: Client) -> None:
        if client.pending_join is not None:
            return
        self._ids += 1
        former = self.play.group.static_ids.get(client.instance_id or "")
        given: dict[str, Any] = {
            "protocols": protocols(*client.names, metadata=client.metadata),
            "session_timeout_ms": client.session_ms,
            "rebalance_timeout_ms": client.rebalance_ms,
            "instance_id": client.instance_id,
            "requires_known_member_id": self.chance.random() < 0.7,
            "supports_skipping_assignment": self.chance.random() < 0.5,
        }
        new_id = f"{client.name}{self._ids}"
        client.pending_join = self.ask(
            lambda: self.play.join(client.member_id, new_id=new_id, **given)
        )
        if former is not None and new_id in self.play.group.members:
            self.laws.replaced(former, new_id)
        client.pending_sync = None
        self.laws.waiting.append(client.pending_join)

    def hear_joined(self, client: Client, answer: JoinResult) -> None:
        client.pending_join = None
        self.heard.append((client.name, answer))
        self.laws.joined(answer)
        client.generation, client.told = answer.generation, ()
        if answer.error == "NONE":
            client.member_id = answer.member_id
            client.told = tuple(it.member_id for it in answer.members)
        elif answer.error == "MEMBER_ID_REQUIRED":
            client.member_id = answer.member_id
        elif answer.error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"):
            client.member_id = ""

    def sync(self, client: Client) -> None:
        generation = client.generation
        plan = {it: f"{it}@{generation}/{len(self.heard)}".encode() for it in client.told}
        group = self.play.group
        self.play.group.advance(self.play.now)
        assigns = (
            group.state is ClassicGroupState.COMPLETING_REBALANCE
            and group.leader == client.member_id
            and group.generation == generation
        )
        if assigns:
            self.laws.assigned[generation] = {it: plan.get(it, b"") for it in group.members}
        client.syncs = generation
        client.pending_sync = self.ask(
            lambda: self.play.sync(
                client.member_id, plan, generation=generation, instance_id=client.instance_id
            )
        )
        self.laws.waiting.append(client.pending_sync)

    def sync_as_if(self, client: Client) -> None:
        """Of a generation that is not there."""
        self.play.group.advance(self.play.now)
        later = self.play.group.generation + 1
        answer = self.play.sync(client.member_id, generation=later).answer
        assert answer is not None
        assert answer.error in ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID")

    def hear_synced(self, client: Client, answer: SyncResult) -> None:
        client.pending_sync = None
        self.heard.append((client.name, answer))
        if answer.error == "NONE":
            expected = self.laws.assigned[client.syncs]
            assert answer.assignment == expected[client.member_id]
        else:
            self.start_anew(client, answer.error)

    def beat(self, client: Client) -> None:
        error = self.ask(
            lambda: self.play.heartbeat(client.member_id, client.generation, client.instance_id)
        )
        self.heard.append((client.name, error))
        if error == "NONE":
            assert client.member_id in self.play.group.members
            assert client.generation == self.play.group.generation
        else:
            self.start_anew(client, error)

    def commit(self, client: Client) -> None:
        """Which lets a session go on, as a heartbeat does."""
        group = self.play.group
        known = client.member_id, client.generation, client.instance_id

        def commit() -> None:
            validate_offset_commit(group, *known, 9)
            if resets_session(group):
                group.reset_session(client.member_id, self.play.now)

        self.heard.append((client.name, self.ask(lambda: error_of(commit))))

    def start_anew(self, client: Client, error: str) -> None:
        client.generation = -1
        if error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"):
            client.member_id = ""

    def leave(self, client: Client) -> None:
        by_instance = client.instance_id is not None and self.chance.random() < 0.5
        leaving = LeaveRequest("" if by_instance else client.member_id, client.instance_id)
        self.heard.append((client.name, self.ask(lambda: self.play.leave(leaving))))
        client.member_id, client.generation = "", -1

    # What goes wrong

    def forget_answer(self, client: Client) -> None:
        """A connection is lost, and with it the answer."""
        client.pending_join = client.pending_sync = None
        client.generation = -1

    def come_back(self, client: Client) -> None:
        """It begins anew, and knows of nothing."""
        client.pending_join = client.pending_sync = None
        client.member_id, client.generation = "", -1

    def change(self, client: Client) -> None:
        client.names = self.chance.choice(SUPPORTED_OPERATIONS)
        client.metadata = self.chance.choice(METADATA)
        client.session_ms = self.chance.choice(SESSIONS)
        client.rebalance_ms = self.chance.choice(REBALANCES)
        client.generation = -1

    def end(self) -> None:
        """Nobody does anything any more: all are answered, and the group is empty in time."""
        left = [it for it in self.laws.waiting if it.answer is None]
        longest = NEW_MEMBER_MS + max(SESSIONS) + 2 * max(REBALANCES)
        self.play.ms += longest
        self.play.group.advance(self.play.now)
        self.laws.hold()
        assert all(it.answer is not None for it in left)
        assert (self.play.state, self.play.members) == (ClassicGroupState.EMPTY, [])
        assert self.play.group.next_deadline_ms is None
        self.heard.append([it.answer for it in left])


@pytest.mark.parametrize("first", range(0, SCHEDULES, 25))
def test_members_at_random(first: int) -> None:
    for seed in range(first, first + 25):
        late = Schedule(seed, every_ms=False)
        late.run()
        assert late.heard


@pytest.mark.parametrize("seed", rest_slow(range(20), 5, 8))
def test_late_advance_equals_timely_advance(seed: int) -> None:
    late, at_once = Schedule(seed, every_ms=False), Schedule(seed, every_ms=True)
    late.run()
    at_once.run()
    assert late.heard == at_once.heard
    assert late.play.stored == at_once.play.stored


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(SCHEDULES, ALL_SCHEDULES, 50))
def test_many_members_at_random(first: int) -> None:
    for seed in range(first, first + 50):
        Schedule(seed, every_ms=False).run()
