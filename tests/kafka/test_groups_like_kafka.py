"""Tests that the embedded broker answers members of classic groups as a real broker does.

Random members have long timeouts, so only their requests change the group. Scripted members also
let sessions and rebalances time out. Kafka 3.9.2 runs the new group coordinator, because Kafka 4.0
and later have only this coordinator.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Self

import pytest

from kproto.broker import Broker, BrokerSettings
from kproto.broker.coordinators import java_hash
from kproto.broker.groups import ClockReading
from kproto.broker.groups.classic_group import ClassicGroup
from kproto.messages.base import Request
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.join_group_request import JoinGroupRequest
from kproto.messages.leave_group_request import LeaveGroupRequest
from kproto.messages.list_groups_request import ListGroupsRequest
from kproto.messages.sync_group_request import SyncGroupRequest
from tests.interop.talk import ranges
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START, StartKafka
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.selection import seeds
from tools.kafka import KafkaNode

from .group_scripts import (
    SCRIPTS,
    Script,
    group_metadata_is_too_large,
    joined,
    static_member_metadata_is_too_large,
    the_first_rebalance_is_delayed,
)
from .group_sides import ONE_THREAD, PATIENCE_S, WAITS, Side

#: Settings of both brokers.
MAX_SIZE: Final = 4
DELAY_MS: Final = 0
LEAST_SESSION_MS: Final = 100

#: Rounds of random members in `make test`, `make exhaustive` and `make thorough`.
ROUNDS: Final = (4, 30, 150)
STEPS: Final = 100

NAMES: Final = ("a", "b", "c", "d", "e")
#: The instance ids of the static members.
INSTANCES: Final = {"d": "d", "e": "e"}


@dataclass
class Brokers:
    """A real and the embedded broker, with equal settings."""

    release: str
    theirs: str
    ours: str
    embedded: ThreadedBroker
    versions: dict[int, range]

    def versions_of(self, request: type[Request[Any]], first: int = 0, end: int = 99) -> range:
        both = self.versions[request.API_KEY]
        return range(max(first, both.start), min(both.stop, request.LATEST_STABLE + 1, end))


@pytest.fixture(
    scope="module", params=["4.4.0", pytest.param("3.9.2", marks=pytest.mark.exhaustive)]
)
def brokers(request: pytest.FixtureRequest) -> Iterator[Brokers]:
    config = ONE_THREAD | {
        "group.min.session.timeout.ms": str(LEAST_SESSION_MS),
        "group.initial.rebalance.delay.ms": str(DELAY_MS),
        "group.max.size": str(MAX_SIZE),
    }
    settings = BrokerSettings(
        group_min_session_timeout_ms=LEAST_SESSION_MS,
        group_initial_rebalance_delay_ms=DELAY_MS,
        group_max_size=MAX_SIZE,
    )
    try:
        node = KafkaNode(request.param, config=config)
        node.start()
    except CANNOT_START as error:
        not_available(f"Kafka {request.param}", error)
    try:
        with threaded_broker(settings) as embedded:
            theirs = node.bootstrap
            yield Brokers(request.param, theirs, embedded.bootstrap, embedded, ranges(theirs))
    finally:
        node.close()


class Pair:
    """The members of a group, on both brokers at once; checks that the responses are equal."""

    def __init__(self, brokers: Brokers, group_id: str) -> None:
        self.brokers = brokers
        self.theirs = Side(brokers.theirs, group_id)
        self.ours = Side(brokers.ours, group_id)
        self.said: list[object] = []
        #: The last error that each member received.
        self.errors: dict[str, str] = {}
        for side in (self.theirs, self.ours):
            side.wait_for_coordinator()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.theirs.close()
        self.ours.close()

    @property
    def waiting(self) -> set[str]:
        return self.theirs.waiting | self.ours.waiting

    def same(self, what: object, ask: Callable[[Side], object]) -> Any:
        """Sends a request that both brokers must answer at once and equally; returns the answer."""
        theirs, ours = ask(self.theirs), ask(self.ours)
        self._check(what, theirs, ours)
        return ours

    def post(self, who: str, what: object, send: Callable[[Side], None]) -> None:
        """Sends a request that both brokers may answer later; `collect` compares the responses."""
        self.said.append((who, what))
        for side in (self.ours, self.theirs):
            send(side)
            side.wait_until_handled()
        self.collect()

    def _has_response(self, who: str) -> bool:
        return self.theirs.has_response(who) or self.ours.has_response(who)

    def collect(self) -> None:
        """Compares the responses received so far, and the state of the group on both brokers."""
        while True:
            received = [who for who in sorted(self.waiting) if self._has_response(who)]
            for who in received:
                theirs = self.theirs.receives(who, PATIENCE_S)
                ours: Any = self.ours.receives(who, PATIENCE_S)
                self._check(who, theirs, ours)
                self.errors[who] = ours[0]
            if not received and self._agree():
                return

    def _agree(self) -> bool:
        """Waits until both brokers describe the group equally; returns True.

        Returns False if a member's delayed response has arrived, because `collect` must read it
        first.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            theirs, ours = self.theirs.describe(), self.ours.describe()
            if theirs == ours:
                self.said.append(ours)
                return not any(self._has_response(who) for who in self.waiting)
            if any(self._has_response(who) for who in self.waiting):
                return False
            if time.monotonic() > deadline:
                self._check("described", theirs, ours)

    def _check(self, what: object, theirs: object, ours: object) -> None:
        self.said.append((what, ours))
        assert ours == theirs, self.said

    def known(self) -> tuple[str | None, int, str | None]:
        """Returns leader, member count and protocol of the group at the embedded broker.

        Returns None, 0 and None if there is no classic group.
        """

        def look(broker: Broker) -> tuple[str | None, int, str | None]:
            group = broker._cluster.groups.find(self.ours.group_id, ClockReading(0, 0))
            if not isinstance(group, ClassicGroup):
                return None, 0, None
            return group.leader, len(group.members), group.protocol

        return self.brokers.embedded.call(look)


# Random members

SUPPORTED_OPERATIONS: Final[Sequence[tuple[tuple[str, bytes], ...]]] = (
    (("range", b"1"),),
    (("range", b"2"),),
    (("range", b"1"), ("sticky", b"1")),
    (("sticky", b"1"), ("range", b"1")),
    (("sticky", b"1"), ("roundrobin", b"1"), ("range", b"1")),
)


class Player:
    """Lets random members send random requests."""

    def __init__(self, pair: Pair, chance: random.Random) -> None:
        self.pair = pair
        self.chance = chance
        self.protocols = {who: chance.choice(SUPPORTED_OPERATIONS) for who in NAMES}
        #: Members that join again next, and members that send SyncGroup next.
        self.to_join: set[str] = set()
        self.to_sync: set[str] = set()

    def step(self) -> None:
        """Sends the next request of a random member, or sometimes a random request."""
        idle = [who for who in NAMES if who not in self.pair.waiting]
        who = self.chance.choice(idle or NAMES)
        if self.pair.ours.former.get(who) and who not in INSTANCES and self.chance.random() < 0.5:
            self.leave(who, former=True)  # the group waits for this id, which the client has lost
        elif self.chance.random() < 0.7:
            self.next_of(who)
        else:
            self.chance.choice((self.join, self.sync, self.beat, self.leave, self.look))(who)

    def next_of(self, who: str) -> None:
        """Sends the next request of member `who`: JoinGroup, then SyncGroup, then heartbeats."""
        if self.pair.ours.generations.get(who, -1) < 0 or who in self.to_join:
            self.to_join.discard(who)
            self.to_sync.add(who)
            self.join(who)
        elif who in self.to_sync and self.pair.errors.get(who) == "NONE":
            self.to_sync.discard(who)
            self.sync(who)
        elif self.beat(who) != "NONE" or self.pair.errors.get(who) != "NONE":
            self.to_join.add(who)

    def _id(self, side: Side, who: str, *, former: bool) -> str:
        """Returns the member id of `who` at one broker; if `former`, its previous member id."""
        known = side.former.get(who)
        return known[-1] if former and known else side.ids.get(who, "nobody")

    def _version(self, request: type[Request[Any]], first: int = 0, end: int = 99) -> int:
        return self.chance.choice(self.pair.brokers.versions_of(request, first, end))

    def _usually(self) -> bool:
        return self.chance.random() < 0.95

    def _is_leader(self, who: str) -> bool:
        """Returns whether `who` leads a group of more than two members.

        If such a leader leaves, the order of a Java hash map determines the next leader.
        """
        leader, size, _ = self.pair.known()
        return size > 2 and leader in (
            self.pair.ours.ids.get(who),
            *self.pair.ours.former.get(who, ()),
        )

    def join(self, who: str) -> None:
        if who in self.pair.waiting or (self._is_leader(who) and self.pair.known()[1] >= MAX_SIZE):
            return
        instance_id = INSTANCES.get(who) if self._usually() else None
        version = self._version(JoinGroupRequest, 5 if instance_id else 0)
        if not self._usually():
            self.protocols[who] = self.chance.choice(SUPPORTED_OPERATIONS)
        protocols = self.protocols[who] if self._usually() else (("other", b""),)
        protocol_type = self.chance.choice(("consumer",) * 40 + ("connect", ""))
        former = not self._usually()
        by_id = self._usually() and (instance_id is None or self.chance.random() < 0.5)
        if self.pair.errors.get(who) == "UNKNOWN_MEMBER_ID":
            by_id = not self._usually()

        def send(side: Side) -> None:
            side.join(
                who,
                version,
                self._id(side, who, former=former) if by_id and who in side.ids else "",
                protocols,
                instance_id=instance_id,
                protocol_type=protocol_type,
            )

        self.pair.post(who, ("join", version, by_id, protocols, instance_id), send)

    def sync(self, who: str) -> None:
        if who in self.pair.waiting:
            return
        version = self._version(SyncGroupRequest)
        instance_id = INSTANCES.get(who) if version >= 3 and self._usually() else None
        off = 0 if self._usually() else self.chance.choice((-1, 1))
        former = not self._usually()
        protocol_type = "consumer" if self._usually() else self.chance.choice((None, "connect"))
        protocol = self.chance.choice((None, "range")) if version >= 5 else None
        if version >= 5 and self._usually():
            protocol = self.pair.known()[2] or "range"

        def send(side: Side) -> None:
            side.sync(
                who,
                version,
                self._id(side, who, former=former),
                side.generations.get(who, 0) + off,
                side.joined_ids.get(who, ()),
                instance_id=instance_id,
                protocol_type=protocol_type,
                protocol=protocol,
            )

        self.pair.post(who, ("sync", version, off, instance_id, protocol_type, protocol), send)

    def beat(self, who: str) -> object:
        version = self._version(HeartbeatRequest)
        instance_id = INSTANCES.get(who) if version >= 3 and self._usually() else None
        off = 0 if self._usually() else 1
        former = not self._usually()
        return self.pair.same(
            ("beat", who, version),
            lambda side: side.beat(
                who,
                version,
                self._id(side, who, former=former),
                side.generations.get(who, 0) + off,
                instance_id,
            ),
        )

    def leave(self, who: str, *, former: bool = False) -> None:
        if self._is_leader(who):
            return
        version = self._version(LeaveGroupRequest)
        instance_id = INSTANCES.get(who) if version >= 3 and self.chance.random() < 0.7 else None
        by_instance = instance_id is not None and self.chance.random() < 0.5

        def leave(side: Side) -> object:
            member_id = side.ids.get(who, "nobody")
            if former and side.former.get(who):
                member_id = side.former[who].pop()
            return side.leave(version, ("" if by_instance else member_id, instance_id))

        self.pair.same(("leave", who, version, former, instance_id, by_instance), leave)
        self.pair.collect()

    def look(self, who: str) -> None:
        describe = self._version(DescribeGroupsRequest)
        self.pair.same(("describe", describe), lambda side: side.describe(describe))
        version = self._version(ListGroupsRequest)
        states = ("Stable", "empty") if version >= 4 and self.chance.random() < 0.5 else ()
        types = ("Classic",) if version >= 5 and self.chance.random() < 0.5 else ()
        self.pair.same(("list", version), lambda side: side.list(version, states, types))
        delete = self._version(DeleteGroupsRequest)
        self.pair.same(("delete", delete), lambda side: side.delete(delete))


@pytest.mark.parametrize(
    "seed",
    seeds(*ROUNDS),
)
def test_random_members_receive_equal_responses(brokers: Brokers, seed: int) -> None:
    chance = random.Random(seed)
    with Pair(brokers, f"random-{seed}-{uuid.uuid4().hex[:8]}") as pair:
        player = Player(pair, chance)
        for _ in range(STEPS):
            player.step()
        assert WAITS not in pair.said


# Scripted members


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda it: it.__name__)
def test_scripted_members_receive_equal_responses(brokers: Brokers, script: Script) -> None:
    group_id = f"{script.__name__}-{uuid.uuid4().hex[:8]}"
    # Runs each script on both brokers at the same time, because most scripts wait.
    with Pair(brokers, group_id) as pair, ThreadPoolExecutor(2) as both:
        theirs, ours = both.map(lambda it: list(script(it)), (pair.theirs, pair.ours))
    assert ours == theirs


@pytest.mark.exhaustive
def test_members_join_within_the_rebalance_delay(start_kafka: StartKafka) -> None:
    delay_ms = 2_000
    node = start_kafka("4.4.0", ONE_THREAD | {"group.initial.rebalance.delay.ms": str(delay_ms)})
    received = []
    with threaded_broker(BrokerSettings(group_initial_rebalance_delay_ms=delay_ms)) as embedded:
        for bootstrap in (node.bootstrap, embedded.bootstrap):
            side = Side(bootstrap, "delayed")
            side.wait_for_coordinator()
            received.append(list(the_first_rebalance_is_delayed(side)))
            side.close()
    assert received[0] == received[1]


@pytest.mark.exhaustive
def test_members_too_large_for_the_log_receive_errors(start_kafka: StartKafka) -> None:
    least = {"group.initial.rebalance.delay.ms": "0", "message.max.bytes": "2000"}
    node = start_kafka("4.4.0", least)
    scripts = (group_metadata_is_too_large, static_member_metadata_is_too_large)
    received = []
    with threaded_broker(BrokerSettings(message_max_bytes=2000)) as embedded:
        for bootstrap in (node.bootstrap, embedded.bootstrap):
            for script in scripts:
                side = Side(bootstrap, script.__name__)
                side.wait_for_coordinator()
                received.append(list(script(side)))
                side.close()
    assert received[:2] == received[2:]
    assert received[0][1] == ("UNKNOWN_SERVER_ERROR", None, None, b"")


def test_tied_votes_elect_the_same_protocol(brokers: Brokers) -> None:
    chance = random.Random(1)
    elected = []
    for number in range(20):
        wanted = [(name, b"") for name in names_apart(chance)]
        with Pair(brokers, f"votes-{number}-{uuid.uuid4().hex[:8]}") as pair:
            found = [voted(side, wanted) for side in (pair.theirs, pair.ours)]
        assert found[0] == found[1]
        elected.append(wanted.index((found[0], b"")))
    assert len(set(elected)) > 1


def names_apart(chance: random.Random) -> list[str]:
    """Returns six names in different buckets of a Java hash map of size 16.

    Java would order names of the same bucket by their member ids, which are random.
    """
    by_bucket: dict[int, str] = {}
    while len(by_bucket) < 6:
        name = f"{chance.choice('abcdefgh')}{chance.randrange(1000)}"
        value = java_hash(name) & 0xFFFF_FFFF
        by_bucket.setdefault((value ^ value >> 16) & 15, name)
    return list(by_bucket.values())


def voted(side: Side, wanted: list[tuple[str, bytes]]) -> str:
    """Returns the protocol that the broker selects by the votes of three members.

    All members support all protocols of `wanted`, but each member prefers a different protocol.
    """
    joined(side, "a", protocols=wanted)
    for who, start in (("b", 1), ("c", 2)):
        side.join(who, 3, "", [*wanted[start:], *wanted[:start]])
    while len(side.describe()[5]) < 3:
        pass
    received: Any = joined(side, "a", protocols=wanted)
    assert received[1] == 2
    return str(received[3])
