"""Provides an embedded broker and a share group for the share consumers of other clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kproto.broker import BrokerSettings
from tests.kafka.share_sides import ShareSide
from tests.support.embedded import ThreadedBroker, threaded_broker

__all__ = ["PARTITIONS", "lag", "share_broker", "share_side"]

#: The number of partitions of the topic `t`.
PARTITIONS: Final = 3


@contextmanager
def share_broker() -> Iterator[ThreadedBroker]:
    """Yields a broker in a thread, with the topic `t`, and with frequent heartbeats."""
    settings = BrokerSettings(
        group_share_heartbeat_interval_ms=200,
        group_share_min_heartbeat_interval_ms=100,
        group_share_min_record_lock_duration_ms=1_000,
        group_share_record_lock_duration_ms=15_000,
    )
    with threaded_broker(settings) as running:
        running.call(lambda it: it.create_topic("t", PARTITIONS))
        yield running


@contextmanager
def share_side(broker: ThreadedBroker, batches: int, batch: int) -> Iterator[ShareSide]:
    """Yields the share group `g`; each partition has `batches` batches of `batch` records."""
    topic_id = broker.call(lambda it: it._cluster.topics.named("t").topic_id)
    side = ShareSide(broker.bootstrap, "g", {"t": topic_id})
    side.wait_for_coordinator()
    for index in range(PARTITIONS):
        for _ in range(batches):
            side.produce("t", index, batch)
    yield side
    side.close()


def lag(side: ShareSide, records: int) -> int:
    """Returns how many records are not acknowledged yet, by DescribeShareGroupOffsets.

    Each partition has `records` records.
    """
    error, partitions = side.describe_offsets("t")
    assert error == "NONE"
    return sum(records if it[4] < 0 else it[4] for it in partitions)
