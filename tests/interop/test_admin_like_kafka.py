"""Tests that the embedded broker answers administrators as Kafka 4.4.0 does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kproto.broker import BrokerSettings
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.embedded import threaded_broker
from tools.kafka import KafkaNode

from .config_conversations import STATIC, altering_configs, describing_all_configs
from .conversations import Said
from .talk import Talk, ranges

pytestmark = pytest.mark.kafka

VERSION = "4.4.0"

#: Settings with which the embedded broker has the configs of Kafka's nodes.
SETTINGS = BrokerSettings(group_consumer_assignment_interval_ms=1_000, default_replication_factor=1)


@pytest.fixture(scope="module")
def node() -> Iterator[KafkaNode]:
    """Yields a new broker, because the tests change its configs."""
    kafka = KafkaNode(VERSION)
    try:
        kafka.start()
    except CANNOT_START as error:
        not_available(f"Kafka {VERSION}", error)
    yield kafka
    kafka.close()


@pytest.mark.parametrize(
    "conversation", [describing_all_configs, altering_configs], ids=lambda it: it.__name__
)
def test_embedded_broker_answers_administrators_as_kafka_does(
    conversation: Callable[[Talk], Said], node: KafkaNode
) -> None:
    theirs = [(str(request), answer) for request, answer in conversation(_talk(node.bootstrap))]
    with threaded_broker(SETTINGS) as broker:
        ours = [(str(request), answer) for request, answer in conversation(_talk(broker.bootstrap))]
    differing = {
        request: (answer, dict(theirs).get(request))
        for request, answer in ours
        if answer != dict(theirs).get(request) and STATIC not in (answer, dict(theirs).get(request))
    }
    assert {it for it, _ in ours} ^ {it for it, _ in theirs} == set()
    assert not differing, "\n".join(f"{request}: {both}" for request, both in differing.items())


def _talk(bootstrap: str) -> Talk:
    return Talk(bootstrap, ranges(bootstrap), "same")
