"""Defines `Model`: a group with members, a coordinator and random failures on virtual time.

A seed determines one schedule. Members join, leave, crash, unsubscribe, rejoin, exceed the poll
interval and lose messages; the topic gets more partitions; the coordinator moves and loses state
that it had not stored. The model raises an error if a partition has two owners, or has no owner at
the end.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kproto.client.groups.classic.membership import ClassicMembership
from kproto.client.groups.classic.phases import Phase
from kproto.client.groups.effects import (
    ApplyAssignment,
    ComputeAssignment,
    Revoke,
    SendJoinGroup,
    SendLeaveGroup,
    SendSyncGroup,
    Step,
)
from kproto.client.groups.leader import compute_assignment, subscriptions_in
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.client.metadata.cluster import TopicPartition
from kproto.client.settings import ClientSettings
from kproto.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupRequest, SyncGroupResponse
from kproto.messages.join_group_response import JoinGroupResponseMember
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.wire.errors import BrokerConnectionError

__all__ = ["Model"]

SESSION_S, INTERVAL_S, POLL_S = 10.0, 1.0, 30.0

#: Seconds within which every schedule becomes stable after the last failure.
REST_S = 4 * POLL_S

Reply = Callable[[Any], None]


@dataclass
class Known:
    """A member in the coordinator's memory."""

    protocols: list[tuple[str, bytes]]
    ends_at: float  # end of the session
    joining: Reply | None = None
    syncing: Reply | None = None
    assignment: bytes = b""


@dataclass
class Stored:
    """The group state that the next coordinator loads from the log."""

    generation: int = 0
    protocol: str = ""
    members: dict[str, Known] = field(default_factory=dict)


class Coordinator:
    """Coordinates a classic group of dynamic members, by Kafka's rules."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.state = "Empty"
        self.generation = 0
        self.protocol = ""
        self.leader = ""
        self.members: dict[str, Known] = {}
        self.pending: dict[str, float] = {}
        self.joins_until = 0.0
        self.away_until = 0.0
        self.stored = Stored()
        self.ids = count(1)

    def move(self, away_s: float) -> None:
        """Moves the group to another broker, which loads the stored state `away_s` s later."""
        for member in self.members.values():
            for reply in (member.joining, member.syncing):
                if reply is not None:
                    reply("NOT_COORDINATOR")
        now = self.model.now
        self.away_until = now + away_s
        known = self.stored.members.items()
        self.generation, self.protocol = self.stored.generation, self.stored.protocol
        self.members = {
            member_id: Known(
                each.protocols, self.away_until + SESSION_S, None, None, each.assignment
            )
            for member_id, each in known
        }
        self.pending = {}
        self.state = "Stable" if self.members else "Empty"
        self.model.at(self.away_until + SESSION_S, self.tick)

    @property
    def is_away(self) -> bool:
        return self.model.now < self.away_until

    def tick(self) -> None:
        """Expires sessions and member ids, and completes the rebalance if this is possible.

        Does nothing while the group moves to another coordinator.
        """
        now = self.model.now
        if self.is_away:
            return
        for member_id, member in list(self.members.items()):
            held = member.joining is not None or member.syncing is not None
            if not held and now >= member.ends_at:
                self.remove(member_id)
        for member_id, ends_at in list(self.pending.items()):
            if now >= ends_at:
                del self.pending[member_id]
        if self.state == "Preparing":
            self.complete(is_late=now >= self.joins_until)

    def beat(self, member: Known) -> None:
        member.ends_at = self.model.now + SESSION_S
        self.model.at(member.ends_at, self.tick)

    def join(self, request: JoinGroupRequest, reply: Reply) -> None:
        member_id = request.member_id
        protocols = [(each.name, each.metadata) for each in request.protocols]
        if self.is_away:
            reply("NOT_COORDINATOR")
        elif not member_id:
            member_id = f"member-{next(self.ids)}"
            self.pending[member_id] = self.model.now + SESSION_S
            self.model.at(self.pending[member_id], self.tick)
            required = code_of("MEMBER_ID_REQUIRED")
            reply(JoinGroupResponse(error_code=required, member_id=member_id))
        elif member_id not in self.members and self.pending.pop(member_id, None) is None:
            reply("UNKNOWN_MEMBER_ID")
        else:
            member = self.members.get(member_id)
            if member is None:
                member = self.members[member_id] = Known(protocols, 0.0)
            member.protocols, member.joining = protocols, reply
            self.prepare()
            self.complete()

    def prepare(self) -> None:
        if self.state == "Preparing":
            return
        self.state = "Preparing"
        self.joins_until = self.model.now + POLL_S
        self.model.at(self.joins_until, self.tick)
        for member in self.members.values():
            syncing, member.syncing = member.syncing, None
            if syncing is not None:
                self.beat(member)
                syncing("REBALANCE_IN_PROGRESS")

    def complete(self, *, is_late: bool = False) -> None:
        """Completes the rebalance if all members have joined.

        Members with a pending member id must have joined, too. If `is_late`, first removes
        the members that have not joined.
        """
        if is_late:
            for member_id, member in list(self.members.items()):
                if member.joining is None:
                    del self.members[member_id]
            self.pending.clear()
        waiting = any(member.joining is None for member in self.members.values())
        if self.state != "Preparing" or waiting or self.pending:
            return
        self.generation += 1
        if not self.members:
            self.state = "Empty"
            self.store()
            return
        self.state = "Completing"
        self.protocol = next(iter(self.members.values())).protocols[0][0]
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        member_data = [
            JoinGroupResponseMember(
                member_id=member_id, metadata=dict(member.protocols)[self.protocol]
            )
            for member_id, member in self.members.items()
        ]
        for member_id, member in self.members.items():
            joining, member.joining = member.joining, None
            assert joining is not None
            self.beat(member)
            joining(
                JoinGroupResponse(
                    generation_id=self.generation,
                    protocol_type="consumer",
                    protocol_name=self.protocol,
                    leader=self.leader,
                    member_id=member_id,
                    members=member_data if member_id == self.leader else [],
                )
            )
        generation = self.generation
        self.model.at(self.model.now + POLL_S, lambda: self.remove_unsynced(generation))

    def remove_unsynced(self, generation: int) -> None:
        """Removes each member that has sent no SyncGroup within the rebalance timeout."""
        if (self.state, self.generation) == ("Completing", generation):
            for member_id, member in list(self.members.items()):
                if member.syncing is None:
                    self.remove(member_id)

    def sync(self, request: SyncGroupRequest, reply: Reply) -> None:
        member = self.members.get(request.member_id)
        if self.is_away:
            reply("NOT_COORDINATOR")
        elif member is None:
            reply("UNKNOWN_MEMBER_ID")
        elif request.generation_id != self.generation:
            reply("ILLEGAL_GENERATION")
        elif self.state == "Preparing":
            reply("REBALANCE_IN_PROGRESS")
        elif self.state == "Stable":
            self.beat(member)
            reply(self.synced(member))
        else:
            member.syncing = reply
            if request.member_id == self.leader:
                shares = {each.member_id: each.assignment for each in request.assignments}
                self.state = "Stable"
                for member_id, each in self.members.items():
                    each.assignment = shares.get(member_id, b"")
                self.store()
                for each in self.members.values():
                    syncing, each.syncing = each.syncing, None
                    self.beat(each)
                    if syncing is not None:
                        syncing(self.synced(each))

    def synced(self, member: Known) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type="consumer", protocol_name=self.protocol, assignment=member.assignment
        )

    def store(self) -> None:
        members = {
            member_id: Known(each.protocols, 0.0, assignment=each.assignment)
            for member_id, each in self.members.items()
        }
        self.stored = Stored(self.generation, self.protocol, members)

    def heartbeat(self, member_id: str, generation: int) -> str:
        member = self.members.get(member_id)
        if self.is_away:
            return "NOT_COORDINATOR"
        if member is None or self.state == "Empty":
            return "UNKNOWN_MEMBER_ID"
        if generation != self.generation:
            return "ILLEGAL_GENERATION"
        self.beat(member)
        return "REBALANCE_IN_PROGRESS" if self.state == "Preparing" else "NONE"

    def leave(self, member_id: str) -> None:
        self.pending.pop(member_id, None)
        if member_id in self.members:
            self.remove(member_id)
        self.complete()

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        for reply in (member.joining, member.syncing):
            if reply is not None:
                reply("UNKNOWN_MEMBER_ID")
        if self.state in ("Stable", "Completing"):
            self.prepare()
        self.complete()


class Simulated:
    """A membership, and a simulated driver that carries out its steps."""

    def __init__(self, model: Model, name: str, settings: GroupSettings) -> None:
        self.model, self.name = model, name
        self.its = ClassicMembership(settings, ClientSettings(retry_backoff_ms=50))
        self.owned: set[TopicPartition] = set()
        self.step: Step | None = None
        self.transition_count = -1
        self.is_beating = False
        self.is_dead = False
        self.cut_until = 0.0
        self.its.subscribe(Subscription.to("t"), model.now)
        self.pump()

    def take(self, tps: Any) -> None:
        for tp in tps:
            owner = self.model.owners.get(tp)
            assert owner is None, f"{tp} is {owner.name if owner else ''}'s and {self.name}'s"
            self.model.owners[tp] = self
            self.owned.add(tp)

    def drop(self, tps: Any) -> None:
        for tp in list(tps):
            assert self.model.owners.pop(tp) is self
            self.owned.discard(tp)

    def pump(self) -> None:
        """Carries out the membership's next steps, as the driver does after every event."""
        if self.is_dead:
            return
        its, now = self.its, self.model.now
        its.tick(now)
        if self.step is not None and self.transition_count != its.transition_count:
            self.step = None  # cancelled
        if self.step is None:
            step = its.step(now, self.owned)
            if step is not None:
                self.step, self.transition_count = step, its.transition_count
                self.begin(step)
        if not self.is_beating:
            request = its.heartbeat(now)
            if request is not None:
                self.beat(request)
        next_at = its.next_at(now)
        if next_at != float("inf"):
            self.model.at(next_at, self.pump)

    def done(self, transition_count: int, tell: Callable[[], object]) -> None:
        """Ends the current step and calls `tell`; does nothing if the step was cancelled before."""
        if (
            self.is_dead
            or self.step is None
            or (transition_count, transition_count)
            != (self.transition_count, self.its.transition_count)
        ):
            return
        self.step = None
        tell()
        self.pump()

    def begin(self, step: Step) -> None:
        its, transition_count, model = self.its, self.transition_count, self.model

        def later(seconds: float, tell: Callable[[], object]) -> None:
            model.at(model.now + seconds, lambda: self.done(transition_count, tell))

        match step:
            case Revoke(partitions=tps, lost=lost, until=until):

                def revoke() -> None:
                    self.drop(tps)
                    its.on_revoked(model.now)

                if lost or not tps:
                    self.done(transition_count, revoke)
                else:
                    later(self.processing_s(until), revoke)
            case ApplyAssignment(revoked=revoked, added=added, until=until):

                def apply() -> None:
                    self.drop(revoked)
                    self.take(added)
                    its.on_assignment_applied(step, model.now)

                later(self.processing_s(until) if revoked else 0.0, apply)
            case SendJoinGroup(subscription=subscription):
                request = its.join_request(sorted(subscription.topics), self.owned)
                self.send(
                    transition_count,
                    lambda reply: model.coordinator.join(request, reply),
                    its.on_join_response,
                )
            case SendSyncGroup(request=sync):
                self.send(
                    transition_count,
                    lambda reply: model.coordinator.sync(sync, reply),
                    its.on_sync_response,
                )
            case ComputeAssignment(members=members, assignor=assignor):
                member_data = subscriptions_in(members)
                topics = {"t": [frozenset[str]()] * model.partitions}
                found = compute_assignment(assignor, topics, member_data.members)
                later(model.chance.choice((0.0, 0.3)), lambda: its.on_assignment_computed(found))
            case SendLeaveGroup(member_id=member_id, until=until):
                if model.gets_through(self):
                    model.coordinator.leave(member_id)
                    later(0.05, lambda: its.on_left(model.now))
                else:
                    later(until - model.now, lambda: its.on_left(model.now))

    def processing_s(self, until: float) -> float:
        """Draws how many seconds the handler still processes records, at most until `until`."""
        most = max(0.0, until - self.model.now)
        return min(most, self.model.chance.choice((0.0, 0.0, 0.5, 5.0, 60.0)))

    def send(
        self,
        transition_count: int,
        request: Callable[[Reply], None],
        answered: Callable[[Any, float, float], object],
    ) -> None:
        """Sends a request; the request or its response may be lost."""
        model, sent_at = self.model, self.model.now

        def fail() -> None:
            error = BrokerConnectionError("gone")
            self.done(transition_count, lambda: self.its.failed(error, model.now))

        def reply(answer: Any) -> None:
            if isinstance(answer, str):
                kind = (
                    JoinGroupResponse
                    if answered == self.its.on_join_response
                    else SyncGroupResponse
                )
                answer = kind(error_code=code_of(answer))
            lost = not model.gets_through(self)
            delay = model.delay() + (0.2 if lost else 0.0)

            def tell() -> None:
                self.done(transition_count, lambda: answered(answer, sent_at, model.now))

            model.at(model.now + delay, fail if lost else tell)

        if model.gets_through(self):
            model.at(model.now + model.delay(), lambda: request(reply))
        else:
            model.at(model.now + 0.3, fail)

    def beat(self, request: Any) -> None:
        model, sent_at = self.model, self.model.now
        self.is_beating = True

        def answered(error: Any) -> None:
            self.is_beating = False
            if not self.is_dead:
                self.its.on_heartbeat_response(request, error, sent_at, model.now)
                self.pump()

        def arrive() -> None:
            name = model.coordinator.heartbeat(request.member_id, request.generation_id)
            error: Any = None if name == "NONE" else error_of_code(code_of(name), "a model")
            if not model.gets_through(self):
                error = BrokerConnectionError("gone")
            model.at(model.now + model.delay(), lambda: answered(error))

        if model.gets_through(self):
            model.at(model.now + model.delay(), arrive)
        else:
            model.at(model.now + 0.3, lambda: answered(BrokerConnectionError("gone")))


class Model:
    """One schedule; `play` runs it with failures and then until the group is stable."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.now = 0.0
        self.partitions = self.chance.choice((1, 3, 7))
        self.owners: dict[TopicPartition, Simulated] = {}
        self.seen: dict[str, int] = {}
        self.loss = self.chance.choice((0.0, 0.02, 0.2))
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self.coordinator = Coordinator(self)
        name = self.chance.choice(("range", "roundrobin", "sticky", "cooperative-sticky"))
        self.settings = GroupSettings(
            "g",
            session_timeout_ms=int(SESSION_S * 1000),
            heartbeat_interval_ms=int(INTERVAL_S * 1000),
            max_poll_interval_ms=int(POLL_S * 1000),
            assignors=(name,),
        )
        self.members: list[Simulated] = []

    def at(self, moment: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(moment, self.now), next(self._numbers), what))

    def gets_through(self, member: Simulated) -> bool:
        return self.now >= member.cut_until and self.chance.random() >= self.loss

    def delay(self) -> float:
        return self.chance.choice((0.001, 0.01, 0.1))

    @property
    def alive(self) -> list[Simulated]:
        return [each for each in self.members if not each.is_dead]

    def play(self) -> None:
        """Runs 120 s with failures, `REST_S` s without failures, and `check_rest` at the end."""
        before = random.getstate()
        random.seed(self.seed)  # jitter of backoffs
        try:
            self._play()
        finally:
            random.setstate(before)

    def _play(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.join()
        self.at(self.chance.uniform(0.0, 10.0), self.happen)
        self.until(120.0)
        self.loss = 0.0
        for each in self.alive:
            each.cut_until = 0.0
            each.its.on_poll(self.now)
            each.pump()
        if not self.alive:
            self.join()
        self.until(self.now + REST_S)
        self.check_rest()

    def until(self, end: float) -> None:
        while self._events and self._events[0][0] <= end:
            self.now, _, what = heapq.heappop(self._events)
            what()
        self.now = end

    def happen(self) -> None:
        """Starts one random event and schedules the next; does nothing after 110 s."""
        if self.now > 110.0:
            return
        kinds: Mapping[str, Callable[[], None]] = {
            "join": self.join,
            "leave": lambda: self.one(self.leave),
            "die": lambda: self.one(self.die),
            "late": lambda: self.one(self.on_poll_timeout),
            "unsubscribe": lambda: self.one(self.unsubscribe),
            "cut": lambda: self.one(self.cut),
            "request_rejoin": lambda: self.one(self.request_rejoin),
            "move": lambda: self.coordinator.move(self.chance.choice((0.1, 2.0, 8.0, 20.0))),
            "grow": self.grow,
        }
        kind = self.chance.choice(list(kinds))
        self.seen[kind] = self.seen.get(kind, 0) + 1
        kinds[kind]()
        self.at(self.now + self.chance.choice((0.0, 0.2, 1.0, 5.0, 15.0)), self.happen)

    def one(self, what: Callable[[Simulated], None]) -> None:
        if self.alive:
            resolved_assignors = self.chance.choice(self.alive)
            what(resolved_assignors)
            resolved_assignors.pump()

    def join(self) -> None:
        if len(self.alive) < 5:
            self.members.append(Simulated(self, f"s{len(self.members)}", self.settings))

    def leave(self, member: Simulated) -> None:
        member.its.begin_leave("a model", self.now, leaves=True, ends=True, until=self.now)

    def die(self, member: Simulated) -> None:
        member.drop(member.owned)
        member.is_dead = True

    def on_poll_timeout(self, member: Simulated) -> None:
        member.its.on_poll_timeout(self.now)
        self.at(self.now + self.chance.uniform(0.0, 20.0), lambda: self.poll_again(member))

    def poll_again(self, member: Simulated) -> None:
        if not member.is_dead:
            member.its.on_poll(self.now)
            member.pump()

    def unsubscribe(self, member: Simulated) -> None:
        member.its.subscribe(None, self.now)
        self.at(self.now + self.chance.uniform(0.0, 20.0), lambda: self.subscribe(member))

    def subscribe(self, member: Simulated) -> None:
        if not member.is_dead:
            member.its.subscribe(Subscription.to("t"), self.now)
            member.pump()

    def cut(self, member: Simulated) -> None:
        member.cut_until = self.now + self.chance.choice((0.5, 4.0, 9.0, 15.0, 40.0))

    def request_rejoin(self, member: Simulated) -> None:
        member.its.request_rejoin("a model", self.now)

    def grow(self) -> None:
        if self.partitions < 12:
            self.partitions += 1
            for member in self.alive:
                member.its.request_rejoin("topic t has grown", self.now)
                member.pump()

    def check_rest(self) -> None:
        """Checks that all members are stable in one generation and share all partitions evenly.

        Ignores members that failed; does nothing if no other member is left.
        """
        members = [each for each in self.alive if each.its.phase is not Phase.FATAL]
        if not members:
            return
        phases = {each.its.phase for each in members}
        assert phases == {Phase.STABLE}, phases
        generations = {each.its.generation for each in members}
        assert generations == {self.coordinator.generation}
        wanted = {("t", at) for at in range(self.partitions)}
        assert self.owners.keys() == wanted
        sizes = [len(each.owned) for each in members]
        assert max(sizes) - min(sizes) <= 1
