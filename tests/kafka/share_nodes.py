"""Starts a real broker with share groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.share_groups import SHARE_VERSION
from tools.kafka import KafkaNode

__all__ = ["started_share_node"]


@contextmanager
def started_share_node(config: Mapping[str, str]) -> Iterator[KafkaNode]:
    """Runs a broker during the block; the test is skipped if it cannot start."""
    try:
        kafka = KafkaNode(SHARE_VERSION, config=config)
        kafka.start()
    except CANNOT_START as error:
        not_available(f"Kafka {SHARE_VERSION}", error)
    yield kafka
    kafka.close()
