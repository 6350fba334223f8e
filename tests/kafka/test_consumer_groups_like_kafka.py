"""Tests that the embedded broker answers KIP-848 members as a real broker does.

Members follow a script or act at random. Timeouts of sessions and rebalances happen only in the
scripts that wait for them. The tests compare the responses to the members. If the real broker is of
a new release, the tests also compare the coordinator's records at the end of a script.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from unittest import mock

import pytest

from kproto.broker import Broker, BrokerSettings
from kproto.broker.context import Context
from kproto.broker.group_configs import AlterOp
from kproto.broker.handlers import api_11_join_group
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.join_group_request import JoinGroupRequest
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.wire.uuid import Uuid
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START, StartKafka
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection
from tests.support.selection import seeds
from tools.kafka import KafkaNode

from .consumer_scripts import (
    NEW_SCRIPTS,
    SCRIPTS,
    SESSION_CONFIG,
    ConsumerScript,
    a_first_rebalance_is_not_over,
    settled,
)
from .consumer_sides import ConsumerSide, is_uuid
from .group_sides import ONE_THREAD

NEW: Final = "4.4.0"
TOPICS: Final = {"t": 6, "u": 3, "v": 2}
#: Longer than every script except the script about expiring sessions. Old brokers have the same
#: session timeout for all groups, so their timeout is shorter.
SESSION_MS: Final = 15_000
SESSION_OF_OLD_MS: Final = 4_000
MAX_SIZE: Final = 4

#: Rounds of random members in `make test`, `make exhaustive` and `make thorough`.
ROUNDS: Final = (5, 30, 100)
STEPS: Final = 80

#: Settings of both brokers; with them the real broker assigns at once, as the embedded one does.
CONFIG: Final = ONE_THREAD | {
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": "1",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "1",
    "group.consumer.max.size": str(MAX_SIZE),
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}
CONFIG_OF_NEW: Final = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}
SETTINGS: Final = BrokerSettings(
    group_consumer_session_timeout_ms=SESSION_MS,
    group_consumer_min_session_timeout_ms=1,
    group_consumer_heartbeat_interval_ms=100,
    group_consumer_min_heartbeat_interval_ms=1,
    group_consumer_max_size=MAX_SIZE,
    group_min_session_timeout_ms=100,
)


@dataclass
class Brokers:
    """A real and the embedded broker, with equal settings and the same topics."""

    release: str
    theirs: str
    ours: str
    topics: dict[str, Uuid]

    @property
    def behind(self) -> int:
        return 0 if self.release == NEW else 1

    def sides(self, group_id: str) -> tuple[ConsumerSide, ConsumerSide]:
        sides = (
            ConsumerSide(self.theirs, group_id, self.topics, self.behind),
            ConsumerSide(self.ours, group_id, self.topics),
        )
        for side in sides:
            side.version = 0 if self.behind else 1
            side.wait_for_coordinator()
        return sides


@pytest.fixture(scope="module", params=[NEW, pytest.param("3.9.2", marks=pytest.mark.exhaustive)])
def brokers(request: pytest.FixtureRequest) -> Iterator[Brokers]:
    release: str = request.param
    if release == NEW:
        config, settings = CONFIG | CONFIG_OF_NEW, SETTINGS
    else:
        session = {"group.consumer.session.timeout.ms": str(SESSION_OF_OLD_MS)}
        config = CONFIG | session
        settings = replace(SETTINGS, group_consumer_session_timeout_ms=SESSION_OF_OLD_MS)
    try:
        node = KafkaNode(release, config=config)
        node.start()
    except CANNOT_START as error:
        not_available(f"Kafka {release}", error)
    try:
        with beside_ours(node.bootstrap, settings, release) as both:
            yield both
    finally:
        node.close()


@contextmanager
def beside_ours(bootstrap: str, settings: BrokerSettings, release: str = NEW) -> Iterator[Brokers]:
    """Yields a real broker, and an embedded broker with the same new topics."""
    with threaded_broker(settings) as embedded:
        topics = new_topics(bootstrap, embedded)
        yield Brokers(release, bootstrap, embedded.bootstrap, topics)


def new_topics(bootstrap: str, embedded: ThreadedBroker) -> dict[str, Uuid]:
    """Creates the same topics on both brokers, with the topic ids of the real broker."""
    topics = {}
    with RawConnection(bootstrap, "topics", timeout=20) as connection:
        wanted = [
            CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in TOPICS.items()
        ]
        created = connection.exchange(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7)
        assert not any(it.error_code for it in created.topics)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in TOPICS])
        found = connection.exchange(asked, 12)
        while any(it.error_code for it in found.topics):
            found = connection.exchange(asked, 12)
    for topic in found.topics:
        name, topic_id = topic.name or "", topic.topic_id
        topics[name] = topic_id
        with mock.patch.object(Uuid, "random", return_value=topic_id):
            embedded.call(partial(create, name))
    return topics


def create(name: str, broker: Broker) -> None:
    broker.create_topic(name, TOPICS[name])


def run_on_both(brokers: Brokers, script: ConsumerScript) -> tuple[list[object], list[object]]:
    """Runs a script on both brokers; returns the responses of the real and of the embedded broker.

    If the real broker is of a new release, each list ends with the coordinator's records. The
    embedded broker uses the member ids that the real broker has generated, because assignments and
    the order of records depend on the hashes of these ids.
    """
    theirs, ours = brokers.sides(f"{script.__name__}-{uuid.uuid4().hex[:8]}")

    def unused(start: str) -> Iterator[str]:
        return (
            it for it in theirs.issued_ids if it.startswith(start) and it not in ours.issued_ids
        )

    def same_id(context: Context, request: JoinGroupRequest) -> str:
        start = f"{request.group_instance_id or context.client_id}-"
        return next(unused(start), f"{start}{uuid.uuid4()}")

    def same_id_of_new_protocol() -> str:
        return next((it for it in unused("") if is_uuid(it)), str(Uuid.random()))

    responses = []
    with (
        mock.patch.object(api_11_join_group, "_new_id", same_id),
        mock.patch.object(api_11_join_group, "_new_id_of_consumer_group", same_id_of_new_protocol),
    ):
        for side in (theirs, ours):
            try:
                responses.append(list(script(side)))
                if not brokers.behind:
                    responses[-1] += side.records()
            finally:
                side.close()
    return responses[0], responses[1]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda it: it.__name__)
def test_scripted_members_receive_equal_responses(brokers: Brokers, script: ConsumerScript) -> None:
    theirs, ours = run_on_both(brokers, script)
    assert ours == theirs


@pytest.mark.parametrize("brokers", [NEW], indirect=True)
@pytest.mark.parametrize("script", NEW_SCRIPTS, ids=lambda it: it.__name__)
def test_members_of_new_brokers_receive_equal_responses(
    brokers: Brokers, script: ConsumerScript
) -> None:
    theirs, ours = run_on_both(brokers, script)
    assert ours == theirs


@pytest.mark.exhaustive
def test_members_join_within_the_rebalance_delay_of_classic_members(
    start_kafka: StartKafka,
) -> None:
    delay_ms = 2_000
    config = CONFIG | CONFIG_OF_NEW | {"group.initial.rebalance.delay.ms": str(delay_ms)}
    node = start_kafka(NEW, config)
    settings = replace(SETTINGS, group_initial_rebalance_delay_ms=delay_ms)
    with beside_ours(node.bootstrap, settings) as brokers:
        theirs, ours = run_on_both(brokers, a_first_rebalance_is_not_over)
    assert ours == theirs


NAMES: Final = ("a", "b", "c", "d", "e")
INSTANCES: Final = {"d": "i", "e": "j"}


class Player:
    """Lets random members send requests; both brokers must respond equally."""

    def __init__(self, sides: tuple[ConsumerSide, ConsumerSide], chance: random.Random) -> None:
        self.sides = sides
        self.chance = chance
        self.steps: list[object] = []

    def same(self, what: object, ask: Any) -> None:
        self.steps.append(what)
        theirs, ours = (ask(side) for side in self.sides)
        assert ours == theirs, f"after {self.steps[-30:]}"

    def step(self) -> None:
        who = self.chance.choice(NAMES)
        do = self.chance.choice((self.join, self.beat, self.beat, self.beat, self.leave, self.look))
        do(who)

    def _topics(self) -> list[str]:
        return self.chance.sample(list(TOPICS), self.chance.randint(0, 3))

    def _instance(self, who: str) -> str | None:
        return INSTANCES.get(who) if self.chance.random() < 0.9 else None

    def join(self, who: str) -> None:
        # No client turns a dynamic member into a static one, so the test does not either.
        topics, instance_id = self._topics(), INSTANCES.get(who)
        assignor = self.chance.choice((None, None, "uniform", "range"))
        rack = self.chance.choice((None, "r"))
        fields = {"instance_id": instance_id, "server_assignor": assignor, "rack_id": rack}
        self.same(("join", who, topics, fields), lambda it: it.enter(who, *topics, **fields))

    def beat(self, who: str) -> None:
        fields: dict[str, Any] = {"instance_id": self._instance(who)}
        if self.chance.random() < 0.2:
            fields["topics"] = self._topics()
        off = 0 if self.chance.random() < 0.9 else self.chance.choice((-1, 1))
        holds = self.chance.random() < 0.7

        def ask(side: ConsumerSide) -> Any:
            owned = side.assigned.get(who, {}) if holds else None
            return side.heartbeat(who, side.epochs.get(who, 1) + off, owned=owned, **fields)

        self.same(("beat", who, off, holds, fields), ask)

    def leave(self, who: str) -> None:
        instance_id = self._instance(who)
        epoch = -2 if instance_id and self.chance.random() < 0.5 else -1
        if self.chance.random() < 0.5:
            self.same(("leave", who, epoch), lambda it: it.go(who, epoch, instance_id=instance_id))

    def look(self, who: str) -> None:
        topic = self.chance.choice(list(TOPICS))
        off = self.chance.choice((0, 0, 0, -1, 1))
        self.same("describe", lambda it: it.describe_consumers())
        self.same(
            ("commit", who, topic, off),
            lambda it: it.commit(who, it.epochs.get(who, 1) + off, (topic, 0)),
        )
        self.same(("fetch", who, off), lambda it: it.fetch(who, it.epochs.get(who, 1) + off, topic))
        self.same("list", lambda it: it.list(5))


@pytest.mark.parametrize("brokers", [NEW], indirect=True)
@pytest.mark.parametrize("seed", seeds(*ROUNDS))
def test_random_members_receive_equal_responses(brokers: Brokers, seed: int) -> None:
    sides = brokers.sides(f"random-{seed}-{uuid.uuid4().hex[:8]}")
    try:
        for side in sides:  # sessions that are longer than any pause of a busy machine
            ((altered, _),) = side.alter((SESSION_CONFIG, AlterOp.SET, "60000"))
            assert altered == "NONE"
            settled(side, SESSION_CONFIG, "60000")
        player = Player(sides, random.Random(seed))
        for _ in range(STEPS):
            player.step()
        # Kafka may write a record again unchanged, so only the last record of each key is compared.
        theirs, ours = ({it[:2]: it[2:] for it in side.records()} for side in sides)
        assert ours == theirs
    finally:
        for side in sides:
            side.close()
