"""Tests consumers that start at a time, or a duration back from now (KIP-1106)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kproto import Client, ConfigurationError, NewTopic, ProducerRecord
from kproto.broker import Broker
from kproto.testing.clock import ManualClock

HOUR_MS = 3_600_000


class Written:
    """A topic with records that are 3, 2 and 1 hours old, and a client with a manual clock."""

    def __init__(self, broker: Broker, client: Client, clock: ManualClock) -> None:
        self.broker = broker
        self.client = client
        self.clock = clock

    async def read(self, **options: Any) -> list[int]:
        consumer = self.client.consumer("t", stop_at_end=True, **options)
        return [record.offset async for record in consumer]


@pytest.fixture
async def written() -> AsyncIterator[Written]:
    clock = ManualClock()
    async with Broker(clock=clock) as broker, Client(broker.bootstrap, clock=clock) as client:
        await client.create_topics(NewTopic("t", partitions=1))
        now_ms = clock.now_ms()
        records = [
            ProducerRecord(b"v", partition=0, timestamp=now_ms - hours * HOUR_MS)
            for hours in (3, 2, 1)
        ]
        async with client.producer() as producer:
            await producer.send_many("t", records)
        yield Written(broker, client, clock)


STARTS: list[tuple[dict[str, Any], list[int]]] = [
    ({"start": "by_duration:PT2H"}, [1, 2]),
    ({"auto_offset_reset": "by_duration:PT2H"}, [1, 2]),
    ({"start": timedelta(hours=1)}, [2]),
    ({"start": "by_duration:P1D"}, [0, 1, 2]),
    ({"start": "by_duration:PT1M"}, []),
    ({"start": datetime(1970, 1, 1, tzinfo=UTC)}, [0, 1, 2]),
]


@pytest.mark.parametrize(("options", "offsets"), STARTS)
async def test_consumer_starts_at_a_time(
    written: Written, options: dict[str, Any], offsets: list[int]
) -> None:
    assert await written.read(**options) == offsets


async def test_property_sets_the_duration_of_both_kinds_of_consumers(written: Written) -> None:
    properties = {
        "bootstrap.servers": written.broker.bootstrap,
        "auto.offset.reset": "by_duration:PT2H",
    }
    async with Client.from_properties(properties, clock=written.clock) as client:
        consumer = client.consumer("t", stop_at_end=True)
        assert [record.offset async for record in consumer] == [1, 2]
        async with client.consumer([("t", 0)], group="g") as member:
            assert (await anext(aiter(member))).offset == 1


async def test_group_without_a_commit_starts_at_the_duration(written: Written) -> None:
    async with written.client.consumer([("t", 0)], group="g", start="by_duration:PT1H") as member:  # type: ignore[call-overload]
        assert (await anext(aiter(member))).offset == 2


async def test_committed_offset_after_the_log_end_is_reset_to_the_duration(
    written: Written, caplog: pytest.LogCaptureFixture
) -> None:
    await written.client.commit_offsets("g", {("t", 0): 50})
    start = timedelta(hours=2)
    async with written.client.consumer([("t", 0)], group="g", start=start) as member:
        assert (await anext(aiter(member))).offset == 1
    assert "offset 50, which the group has committed, is not in the log" in caplog.text


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize(
    ("start", "match"),
    [
        ("by_duration:1h", "no ISO-8601 duration; write an ISO-8601 duration"),
        ("by_duration:", "no ISO-8601 duration"),
        ("by_duration:-PT1H", "is not negative"),
        ("by_duration", "'by_duration:PT1H'"),
        (datetime(2020, 1, 1), "no time zone"),  # noqa: DTZ001 - the fault to find
    ],
)
def test_invalid_start_time_is_refused(group: Any, start: Any, match: str) -> None:
    with pytest.raises(ConfigurationError, match=match):
        Client("localhost:1").consumer("t", group=group, start=start)


@pytest.mark.parametrize("value", ["by_duration:1h", "by_duration:-PT1H", "by_duration"])
def test_invalid_property_is_refused(value: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"auto\.offset\.reset is '.*such as by_duration:PT1H"
    ):
        Client.from_properties({"bootstrap.servers": "h:1", "auto.offset.reset": value})
