"""Tests that the embedded broker answers members of share groups as a real broker does (KIP-932).

Members follow a script or act at random. The tests compare assignments, acquired records with their
delivery counts, error codes and offsets at each step.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from unittest import mock

import pytest

from kproto.broker import Broker, BrokerSettings
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.wire.uuid import Uuid
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection
from tests.support.selection import seeds
from tools.kafka import KafkaNode

from .group_sides import ONE_THREAD, PATIENCE_S
from .share_scripts import SCRIPTS, ShareScript, joined
from .share_sides import ShareSide

pytestmark = pytest.mark.exhaustive

TOPICS: Final = {"t": 3, "u": 2}
MAX_SIZE: Final = 4

#: Rounds of random members in `make test`, `make exhaustive` and `make thorough`.
ROUNDS: Final = (3, 20, 60)
STEPS: Final = 50

#: Settings of both brokers; with them the real broker assigns at once, as the embedded one does.
CONFIG: Final = ONE_THREAD | {
    "group.share.assignment.interval.ms": "0",
    "group.share.assignor.offload.enable": "false",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.max.size": str(MAX_SIZE),
    "group.share.min.heartbeat.interval.ms": "1",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.session.timeout.ms": "60000",
}
SETTINGS: Final = BrokerSettings(
    group_share_heartbeat_interval_ms=100,
    group_share_max_size=MAX_SIZE,
    group_share_min_heartbeat_interval_ms=1,
    group_share_min_record_lock_duration_ms=1_000,
    group_share_session_timeout_ms=60_000,
    share_coordinator_state_topic_num_partitions=4,
)

#: How long a real broker's coordinators may take to write the records of the last request.
WRITING_S: Final = 0.5

#: How long the brokers' coordinators may take to learn of a new topic.
PROPAGATION_S: Final = 0.5


@dataclass
class Brokers:
    """A real and the embedded broker, with equal settings."""

    theirs: str
    embedded: ThreadedBroker

    def sides(self) -> tuple[ShareSide, ShareSide]:
        """Returns both brokers with new topics of the same names and ids, and one new group."""
        suffix = f"-{uuid.uuid4().hex[:8]}"
        ids = self._new_topics(suffix)
        sides = []
        for bootstrap in (self.theirs, self.embedded.bootstrap):
            side = ShareSide(bootstrap, f"group{suffix}", ids)
            side.real = {name: name + suffix for name in TOPICS}
            side.wait_for_coordinator()
            sides.append(side)
        time.sleep(PROPAGATION_S)
        return sides[0], sides[1]

    def _new_topics(self, suffix: str) -> dict[str, Uuid]:
        with RawConnection(self.theirs, "topics", timeout=20) as connection:
            wanted = [
                CreatableTopic(name=name + suffix, num_partitions=count, replication_factor=1)
                for name, count in TOPICS.items()
            ]
            created = connection.exchange(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7)
            assert not any(it.error_code for it in created.topics)
            asked = MetadataRequest(
                topics=[MetadataRequestTopic(name=name + suffix) for name in TOPICS]
            )
            found = connection.exchange(asked, 12)
            while any(it.error_code for it in found.topics):
                found = connection.exchange(asked, 12)
        ids = {}
        for topic in found.topics:
            name = str(topic.name).removesuffix(suffix)
            ids[name] = topic.topic_id
            with mock.patch.object(Uuid, "random", return_value=topic.topic_id):
                self.embedded.call(partial(create, name, suffix))
        return ids


def create(name: str, suffix: str, broker: Broker) -> None:
    broker.create_topic(name + suffix, TOPICS[name])


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    try:
        node = KafkaNode("4.4.0", config=CONFIG)
        node.start()
    except CANNOT_START as error:
        not_available("Kafka 4.4.0", error)
    try:
        with threaded_broker(SETTINGS) as embedded:
            yield Brokers(node.bootstrap, embedded)
    finally:
        node.close()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda it: it.__name__)
def test_scripted_members_receive_equal_responses_and_leave_equal_records(
    brokers: Brokers, script: ShareScript
) -> None:
    responses = []
    for side in brokers.sides():
        suffix = side.real["t"].removeprefix("t")
        try:
            found = [_shown(it, suffix) for it in script(side)]
            time.sleep(WRITING_S)
            responses.append([*found, *(_shown(it, suffix) for it in side.records())])
        finally:
            side.close()
    theirs, ours = responses
    assert ours == theirs


def _shown(response: object, suffix: str) -> str:
    """Returns a response as text, without the suffix of the topics."""
    return repr(response).replace(suffix, "")


MEMBERS: Final = ("a", "b", "c", "d")
PARTITIONS: Final = tuple((name, index) for name, count in TOPICS.items() for index in range(count))


class Player:
    """Lets random members send requests; both brokers must respond equally.

    A Fetch that gets nothing waits for `WAIT_MS`, which is less than the duration of a lock. So no
    lock expires while the members play.
    """

    WAIT_MS: Final = 150

    def __init__(self, sides: tuple[ShareSide, ShareSide], chance: random.Random) -> None:
        self.sides = sides
        self.chance = chance
        self.steps: list[object] = []
        #: The partitions in the share session of each member.
        self.sessions: dict[str, set[tuple[str, int]]] = {}
        #: The end offset of each partition.
        self.ends = dict.fromkeys(PARTITIONS, 1)

    def same(self, step: object, ask: Any) -> Any:
        self.steps.append(step)
        theirs, ours = (ask(side) for side in self.sides)
        suffix = self.sides[0].real["t"].removeprefix("t")
        assert _shown(ours, suffix) == _shown(theirs, suffix), f"after {self.steps[-20:]}"
        return theirs

    def step(self) -> None:
        actions = (self.produce, self.fetch, self.fetch, self.acknowledge, self.acknowledge)
        self.chance.choice((*actions, self.beat, self.close, self.look))(
            self.chance.choice(MEMBERS)
        )

    def produce(self, member: str) -> None:
        tp, count = self.chance.choice(PARTITIONS), self.chance.randint(1, 6)
        self.same(("produce", tp, count), lambda it: it.produce(*tp, count))
        self.ends[tp] += count

    def fetch(self, member: str) -> None:
        session = self.sessions.get(member)
        # A real broker waits for data of any partition, in an order that varies; so each session
        # has one partition.
        added: list[tuple[str, int]] = []
        if session is None:
            added = [self.chance.choice(PARTITIONS)]
            self.sessions[member] = set(added)
        fields: dict[str, Any] = {
            "max_wait_ms": self.WAIT_MS,
            "max_records": self.chance.choice((1, 3, 500)),
            "batch_size": self.chance.choice((2, 500)),
            "share_acquire_mode": self.chance.choice((0, 0, 1)),
        }
        self.same(("fetch", member, added, fields), lambda it: it.fetch(member, added, **fields))

    def acknowledge(self, member: str) -> None:
        session = self.sessions.get(member)
        if session is None:
            return
        (tp,) = session
        first = self.chance.randint(0, max(0, self.ends[tp]))
        last = first + self.chance.choice((0, 0, 1, 3))
        types: list[int] = [self.chance.choice((0, 1, 1, 2, 2, 3))]
        if self.chance.random() < 0.3:
            types = [self.chance.choice((0, 1, 2, 3)) for _ in range(last - first + 1)]
        acks = {tp: [(first, last, types)]}
        self.same(("acknowledge", member, acks), lambda it: it.acknowledge(member, acks))

    def beat(self, member: str) -> None:
        topics = self.chance.choice((None, None, ["t"], ["u"], ["t", "u"]))
        epoch = self.chance.choice((None, None, None, 0, -1))
        self.same(
            ("heartbeat", member, epoch, topics),
            lambda it: it.heartbeat(member, epoch, topics),
        )
        time.sleep(0.05)  # the real broker creates the states of share partitions after it responds

    def close(self, member: str) -> None:
        if self.chance.random() < 0.5:
            self.sessions.pop(member, None)
            self.same(("close", member), lambda it: it.acknowledge(member, {}, epoch=-1))
            for side in self.sides:
                side.sessions[member] = 0

    def look(self, member: str) -> None:
        self.same("describe", lambda it: it.describe_share())
        self.same("offsets", lambda it: it.describe_offsets())


@pytest.mark.parametrize("seed", seeds(*ROUNDS))
def test_random_members_receive_equal_responses(brokers: Brokers, seed: int) -> None:
    sides = brokers.sides()
    try:
        for side in sides:
            side.set_config(share_auto_offset_reset="earliest")
            _read_first_records(side)
        player = Player(sides, random.Random(seed))
        for _ in range(STEPS):
            player.step()
    finally:
        for side in sides:
            side.close()


def _read_first_records(side: ShareSide) -> None:
    """Lets member z accept a record of each partition.

    A real leader reads the state of a share partition at the first ShareFetch, and may respond
    before it has the state.
    """
    joined(side, "z", *TOPICS)
    for tp in PARTITIONS:
        side.produce(*tp, 1)
    added: tuple[tuple[str, int], ...] = PARTITIONS
    missing = set(PARTITIONS)
    deadline = time.monotonic() + PATIENCE_S
    while missing:
        assert time.monotonic() < deadline, missing
        for topic, index, _, _, acquired, _ in side.fetch("z", added)[2]:
            if acquired:
                missing.discard((topic, index))
        added = ()
    side.acknowledge("z", {tp: [(0, 0, [1])] for tp in PARTITIONS})
    side.acknowledge("z", {}, epoch=-1)
