"""Runs random schedules of classic group members, and checks invariants at each step.

Members join, sync, send heartbeats, leave and restart at random times. Coordinators move, and log
writes sometimes fail.

Some schedules run on two groups. The first group handles its deadlines every millisecond, the
second group only after larger steps. Both groups must return the same responses and store the same
records.
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
    LeavingMember,
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
WRITE_FAILED: Final = "UNKNOWN_SERVER_ERROR"
SUPPORTED_OPERATIONS: Final = (("range",), ("range", "sticky"), ("sticky", "range"))


@dataclass
class Client:
    """The state that a group member keeps; `instance_id` is set for a static member."""

    name: str
    instance_id: str | None
    member_id: str = ""
    generation: int = -1
    member_ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ("range",)
    metadata: bytes = b"1"
    session_ms: int = 1_000
    rebalance_ms: int = 2_000
    pending_join: PendingResult[JoinResult] | None = None
    pending_sync: PendingResult[SyncResult] | None = None
    #: The generation that `pending_sync` belongs to.
    sync_generation: int = -1


@dataclass
class Invariants:
    """Checks a group's state and responses against its earlier states and responses."""

    play: Play
    #: By generation: the protocol type, protocol and leader that every member must receive.
    generations: dict[int, tuple[object, ...]] = field(default_factory=dict)
    #: By generation and member: the assignment from the leader.
    assigned: dict[int, dict[str, bytes]] = field(default_factory=dict)
    waiting: list[PendingResult[Any]] = field(default_factory=list)
    #: By static member: the id of the first member with that instance id.
    first_ids: dict[str, str] = field(default_factory=dict)

    def forget(self) -> None:
        """Drops generations that were not stored: another coordinator can reuse their numbers."""
        kept = self.play.group.generation
        for known in (self.generations, self.assigned):
            for generation in [it for it in known if it > kept]:
                del known[generation]

    def check(self) -> None:
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
            assert member.deadline_ms is not None or member.is_waiting, (
                "the member would never expire"
            )
        if group.state is ClassicGroupState.STABLE:
            expected = self.assigned[group.generation]
            for member in group.members.values():
                assert member.assignment == expected[member.member_id]
        pending = [it for it in self.waiting if it.answer is None]
        assert not pending or group.next_deadline_ms is not None, "a request is never answered"
        self.waiting = pending

    def joined(self, answer: JoinResult) -> None:
        """Checks that a generation has one protocol, and that only the leader gets the members."""
        if answer.error == WRITE_FAILED:
            assert (answer.member_id, answer.members) == ("", ())
            return
        if answer.error != "NONE":
            assert (answer.generation, answer.members, answer.leader) == (-1, (), "")
            return
        leader = self.first_ids.get(answer.leader, answer.leader)
        same = (answer.protocol_type, answer.protocol, leader)
        assert self.generations.setdefault(answer.generation, same) == same
        # A static member that replaces another, and cannot skip the assignment, gets the former
        # member's id as the leader.
        assert answer.member_id == answer.leader or not answer.members
        assert (answer.member_id in [it.member_id for it in answer.members]) == bool(answer.members)

    def replace_static_member(self, former: str, new_id: str) -> None:
        """Transfers the former member's assignment and leadership to its replacement."""
        self.first_ids[new_id] = self.first_ids.get(former, former)
        for members in self.assigned.values():
            if former in members:
                members[new_id] = members[former]


class Schedule:
    """A random schedule of one group; a second schedule with the same seed repeats it."""

    def __init__(self, seed: int, *, every_ms: bool) -> None:
        self.chance = random.Random(seed)
        delay_ms = self.chance.choice((0, 0, 700))
        self.play = Play(
            delay_ms=delay_ms, max_size=self.chance.choice((3, 100)), new_member_ms=NEW_MEMBER_MS
        )
        self.invariants = Invariants(self.play)
        self.every_ms = every_ms
        self.received: list[object] = []
        self.clients = [Client(name, name if name in "de" else None) for name in "abcde"]
        self._ids = 0

    def run(self) -> None:
        acts: list[Callable[[Client], None]] = [
            *[self.step] * 12,
            self.lose_response,
            self.change,
            self.restart,
            self.leave,
            self.commit,
            self.join,
            self.sync_later_generation,
        ]
        for _ in range(STEPS):
            if self.chance.random() < 0.5:
                self.pass_time(self.chance.choice((1, 10, 100, 250, 600, 1_500)))
            if self.chance.random() < 0.02:
                self.move()
            if self.chance.random() < 0.05:
                self.play.refuses = self.chance.choice(("", "", WRITE_FAILED))
            self.chance.choice(acts)(self.chance.choice(self.clients))
            self.deliver_responses()
        self.end()

    def deliver_responses(self) -> None:
        """Checks the invariants, and delivers every complete response to its client."""
        self.invariants.check()
        for client in self.clients:
            if client.pending_join is not None and client.pending_join.answer is not None:
                self.on_join_response(client, client.pending_join.answer)
            if client.pending_sync is not None and client.pending_sync.answer is not None:
                self.on_sync_response(client, client.pending_sync.answer)

    def pass_time(self, ms: int) -> None:
        for _ in range(ms if self.every_ms else 1):
            self.play.wait(1 if self.every_ms else ms)
            self.invariants.check()

    def move(self) -> None:
        self.play.group.advance(self.play.now)
        self.deliver_responses()  # responses of the former coordinator
        moved(self.play)
        self.invariants.forget()
        self.received.append("moved")

    # The clients' requests

    def step(self, client: Client) -> None:
        """Joins if the client has no generation; otherwise syncs or sends a heartbeat, at random.

        Does nothing while a response is pending.
        """
        if client.pending_join is not None or client.pending_sync is not None:
            return
        if client.generation < 0:
            self.join(client)
        elif client.member_ids is not None and self.chance.random() < 0.4:
            self.sync(client)
        else:
            self.heartbeat(client)

    def send(self, do: Callable[[], Any]) -> Any:
        """Runs `do`, and returns its result.

        Checks that the group notifies its watchers if a waiting request is answered, or if the next
        deadline becomes earlier while requests wait.
        """
        before = [it for it in self.invariants.waiting if it.answer is None]
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
        fields: dict[str, Any] = {
            "protocols": protocols(*client.names, metadata=client.metadata),
            "session_timeout_ms": client.session_ms,
            "rebalance_timeout_ms": client.rebalance_ms,
            "instance_id": client.instance_id,
            "requires_known_member_id": self.chance.random() < 0.7,
            "supports_skipping_assignment": self.chance.random() < 0.5,
        }
        new_id = f"{client.name}{self._ids}"
        client.pending_join = self.send(
            lambda: self.play.join(client.member_id, new_id=new_id, **fields)
        )
        if former is not None and new_id in self.play.group.members:
            self.invariants.replace_static_member(former, new_id)
        client.pending_sync = None
        self.invariants.waiting.append(client.pending_join)

    def on_join_response(self, client: Client, answer: JoinResult) -> None:
        client.pending_join = None
        self.received.append((client.name, answer))
        self.invariants.joined(answer)
        client.generation, client.member_ids = answer.generation, ()
        if answer.error == "NONE":
            client.member_id = answer.member_id
            client.member_ids = tuple(it.member_id for it in answer.members)
        elif answer.error == "MEMBER_ID_REQUIRED":
            client.member_id = answer.member_id
        elif answer.error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"):
            client.member_id = ""

    def sync(self, client: Client) -> None:
        generation = client.generation
        plan = {it: f"{it}@{generation}/{len(self.received)}".encode() for it in client.member_ids}
        group = self.play.group
        self.play.group.advance(self.play.now)
        assigns = (
            group.state is ClassicGroupState.COMPLETING_REBALANCE
            and group.leader == client.member_id
            and group.generation == generation
        )
        if assigns:
            self.invariants.assigned[generation] = {it: plan.get(it, b"") for it in group.members}
        client.sync_generation = generation
        client.pending_sync = self.send(
            lambda: self.play.sync(
                client.member_id, plan, generation=generation, instance_id=client.instance_id
            )
        )
        self.invariants.waiting.append(client.pending_sync)

    def sync_later_generation(self, client: Client) -> None:
        """Syncs a generation that does not exist yet."""
        self.play.group.advance(self.play.now)
        later = self.play.group.generation + 1
        answer = self.play.sync(client.member_id, generation=later).answer
        assert answer is not None
        assert answer.error in ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID")

    def on_sync_response(self, client: Client, answer: SyncResult) -> None:
        client.pending_sync = None
        self.received.append((client.name, answer))
        if answer.error == "NONE":
            expected = self.invariants.assigned[client.sync_generation]
            assert answer.assignment == expected[client.member_id]
        else:
            self.rejoin(client, answer.error)

    def heartbeat(self, client: Client) -> None:
        error = self.send(
            lambda: self.play.heartbeat(client.member_id, client.generation, client.instance_id)
        )
        self.received.append((client.name, error))
        if error == "NONE":
            assert client.member_id in self.play.group.members
            assert client.generation == self.play.group.generation
        else:
            self.rejoin(client, error)

    def commit(self, client: Client) -> None:
        """Commits offsets.

        In some states of the group, a valid commit resets the session timeout of the member.
        """
        group = self.play.group
        known = client.member_id, client.generation, client.instance_id

        def commit() -> None:
            validate_offset_commit(group, *known, 9)
            if resets_session(group):
                group.reset_session(client.member_id, self.play.now)

        self.received.append((client.name, self.send(lambda: error_of(commit))))

    def rejoin(self, client: Client, error: str) -> None:
        client.generation = -1
        if error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"):
            client.member_id = ""

    def leave(self, client: Client) -> None:
        by_instance = client.instance_id is not None and self.chance.random() < 0.5
        leaving = LeavingMember("" if by_instance else client.member_id, client.instance_id)
        self.received.append((client.name, self.send(lambda: self.play.leave(leaving))))
        client.member_id, client.generation = "", -1

    # Failures

    def lose_response(self, client: Client) -> None:
        """Loses the client's connection before the response arrives."""
        client.pending_join = client.pending_sync = None
        client.generation = -1

    def restart(self, client: Client) -> None:
        """Restarts the client, which forgets its member id."""
        client.pending_join = client.pending_sync = None
        client.member_id, client.generation = "", -1

    def change(self, client: Client) -> None:
        client.names = self.chance.choice(SUPPORTED_OPERATIONS)
        client.metadata = self.chance.choice(METADATA)
        client.session_ms = self.chance.choice(SESSIONS)
        client.rebalance_ms = self.chance.choice(REBALANCES)
        client.generation = -1

    def end(self) -> None:
        """Stops all clients: pending requests are answered, and the group becomes empty."""
        left = [it for it in self.invariants.waiting if it.answer is None]
        longest = NEW_MEMBER_MS + max(SESSIONS) + 2 * max(REBALANCES)
        self.play.ms += longest
        self.play.group.advance(self.play.now)
        self.invariants.check()
        assert all(it.answer is not None for it in left)
        assert (self.play.state, self.play.members) == (ClassicGroupState.EMPTY, [])
        assert self.play.group.next_deadline_ms is None
        self.received.append([it.answer for it in left])


@pytest.mark.parametrize("first", rest_slow(range(0, SCHEDULES, 25), 0, 2))
@pytest.mark.slow
def test_invariants_hold_in_random_schedules(first: int) -> None:
    for seed in range(first, first + 25):
        late = Schedule(seed, every_ms=False)
        late.run()
        assert late.received


@pytest.mark.parametrize("seed", rest_slow(range(20), 0, 3))
@pytest.mark.slow
def test_late_advance_equals_timely_advance(seed: int) -> None:
    late, at_once = Schedule(seed, every_ms=False), Schedule(seed, every_ms=True)
    late.run()
    at_once.run()
    assert late.received == at_once.received
    assert late.play.stored == at_once.play.stored


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(SCHEDULES, ALL_SCHEDULES, 50))
def test_invariants_hold_in_many_random_schedules(first: int) -> None:
    for seed in range(first, first + 50):
        Schedule(seed, every_ms=False).run()
