"""Provides real brokers of old releases, and topics on them, for the tests of client and Spark."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator

import pytest

import kproto
from tools.kafka import OLD_VERSIONS, KafkaNode
from tools.kafka.old_releases import answers_api_versions, has_topic_requests

from .availability import not_available
from .brokers import CANNOT_START

__all__ = ["FIRST_KEY", "broker_version_of", "new_topic", "old_broker"]

#: Maximum time in s in which a broker that has started can create a topic.
STARTS_WITHIN_S = 60.0

#: The key of the record with which a topic on a broker before 0.10.1 begins.
FIRST_KEY = b"the topic exists now"


@pytest.fixture(scope="module", params=OLD_VERSIONS)
def old_broker(request: pytest.FixtureRequest) -> Iterator[KafkaNode]:
    """Yields a broker of each old release in turn."""
    try:
        node = KafkaNode(request.param)
        node.start()
    except CANNOT_START as error:
        not_available(f"Kafka {request.param}", error)
    yield node
    node.close()


def broker_version_of(node: KafkaNode) -> str | None:
    """Returns the `broker_version` that a client of the node needs; None if it needs none."""
    return None if answers_api_versions(node.version) else node.version


async def new_topic(node: KafkaNode, client: kproto.Client, *, partitions: int = 2) -> str:
    """Creates a topic, by CreateTopics or by a request for its metadata; returns its name.

    A topic of a broker before 0.10.1 has one partition, and a first record with `FIRST_KEY`.
    """
    name = f"old-{uuid.uuid4().hex}"
    if has_topic_requests(node.version):
        await client.create_topics(kproto.NewTopic(name, partitions, replication_factor=1))
    else:
        end = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                async with client.producer(allow_auto_create_topics=True) as producer:
                    await producer.send(name, None, key=FIRST_KEY)
                break
            except kproto.DeliveryError as error:
                # A broker that is still starting has no controller that could create the topic.
                if "UNKNOWN_SERVER_ERROR" not in str(error) or time.monotonic() > end:
                    raise
                await asyncio.sleep(0.5)
    return name
