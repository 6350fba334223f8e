"""Tests that `run` of a share consumer loses no record to the delivery limit of its group."""

from __future__ import annotations

import logging

import pytest

import kproto
from kproto import Retries, ShareRecord, ShareRunSummary, Stop
from kproto.broker import Broker, BrokerSettings
from kproto.client.processing.delivery_limit import within_limit
from kproto.client.processing.settings import RunSettings
from tests.support.share_groups import ShareQueue
from tests.support.virtual_time import LoopClock, run_in_virtual_time
from tests.unit.client.consumer.scripted_share import ShareBroker
from tests.unit.client.consumer.test_share_consumer import sharing

SETTINGS = BrokerSettings(
    group_share_min_heartbeat_interval_ms=50, group_share_heartbeat_interval_ms=100
)


@pytest.mark.parametrize(
    ("attempts", "limit", "limited"), [(0, 2, 0), (1, 2, 1), (2, 2, 1), (4, 5, 4), (100, 5, 4)]
)
def test_retries_are_fewer_than_the_deliveries_of_the_group(
    attempts: int, limit: int, limited: int
) -> None:
    settings = RunSettings.of(order="none", retries=Retries(attempts, backoff_ms=7))
    expected = RunSettings.of(order="none", retries=Retries(limited, backoff_ms=7))
    assert within_limit(settings, limit) == expected


async def fail_always(attempts: int, limit: int) -> tuple[list[int], list[kproto.Record]]:
    """Runs a handler that fails for the first record; returns its deliveries and dead letters."""
    clock = LoopClock()
    async with (
        Broker(SETTINGS, clock=clock) as broker,
        kproto.Client(broker.bootstrap, clock=clock) as client,
    ):
        queue = await ShareQueue(client).create(share_delivery_count_limit=str(limit))
        dead = f"{queue.topic}.dead"
        await client.create_topics(kproto.NewTopic(dead, 1))
        await queue.send(b"bad")
        deliveries = []

        async def handle(record: ShareRecord) -> None:
            if record.value == b"end":
                raise Stop(done=True)
            deliveries.append(record.delivery_count)
            if record.delivery_count == min(limit, attempts + 1):
                await queue.send(b"end")
            raise ValueError

        async with queue.consumer() as consumer:
            retries = Retries(attempts, backoff_ms=1)
            summary = await consumer.run(handle, retries=retries, dead_letter_topic=dead)
        released = len(deliveries) - 1
        assert summary == ShareRunSummary(handled=1, released=released, dead_letters=1)
        return deliveries, [each async for each in client.consumer(dead, stop_at_end=True)]


@pytest.mark.parametrize("attempts", [4, 5, 10])
def test_last_delivery_of_a_failed_record_makes_it_a_dead_letter(
    attempts: int, caplog: pytest.LogCaptureFixture
) -> None:
    deliveries, letters = run_in_virtual_time(fail_always(attempts, limit=5))
    assert deliveries == [1, 2, 3, 4, 5]
    assert [each.value for each in letters] == [b"bad"]
    warned = f"retried 4 times, and not {attempts} times" in caplog.text
    assert warned == (attempts > 4)


def test_limit_of_the_group_applies_before_the_default(caplog: pytest.LogCaptureFixture) -> None:
    deliveries, letters = run_in_virtual_time(fail_always(3, limit=2))
    assert deliveries == [1, 2]
    assert len(letters) == 1
    assert "a record at most 2 times (share.delivery.count.limit of the group)" in caplog.text


@pytest.mark.parametrize(("attempts", "level"), [(4, "INFO"), (5, "WARNING")])
async def test_run_continues_without_the_limit_of_the_group(
    attempts: int, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kproto.client")

    async def handle(record: ShareRecord) -> None:
        raise Stop(done=True)

    async with ShareBroker() as broker, sharing(broker, "explicit") as consumer:
        broker.delivery_limit = None
        broker.produce(1)
        summary = await consumer.run(handle, retries=Retries(attempts))
    assert summary == ShareRunSummary(handled=1)
    lines = [each for each in caplog.records if "limit cannot be read" in each.getMessage()]
    assert [each.levelname for each in lines] == [level]
