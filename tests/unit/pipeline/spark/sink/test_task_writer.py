"""Tests that the rows written by a task are in the log once and in order, despite failures."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kproto_pipeline.spark.options.option_table import parse_write_options
from kproto_pipeline.spark.sink import task_writer
from kproto_pipeline.spark.sink.errors import RowError
from kproto_pipeline.spark.sink.task_writer import write_rows

from kproto.broker import Broker, Close, Cluster, CutFrame, ErrorCode, SilentConnection
from kproto.client import ClientSettings
from kproto.messages import InitProducerIdRequest, ProduceRequest
from kproto.records import Record
from tests.support.examples import examples
from tests.support.selection import rest_slow
from tests.unit.pipeline.spark.conftest import SettingsForAll

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
        ("topic", pa.string()),
        ("partition", pa.int32()),
    ]
)


def row(number: int, partition: int | None, topic: str | None = "t") -> dict[str, Any]:
    return {
        "key": b"key",
        "value": b"%d" % number,
        "headers": [{"key": "n", "value": b"%d" % number}],
        "topic": topic,
        "partition": partition,
    }


def batches_of(rows: list[dict[str, Any]], size: int = 10) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(rows), size):
        yield pa.RecordBatch.from_pylist(rows[first : first + size], schema=SCHEMA)


async def written(bootstrap: str, batches: Iterator[pa.RecordBatch], **others: str) -> int:
    """Writes batches in a thread without an event loop, as a task does; returns the row count."""
    options = parse_write_options({"kafka.bootstrap.servers": bootstrap, **others})
    return await asyncio.to_thread(write_rows, options, batches)


def numbers_of(records: list[Record]) -> list[int]:
    return [int(record.value or b"") for record in records]


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowers the writer's size limits, so that it encodes the rows in many small steps."""
    monkeypatch.setattr(task_writer, "_TARGET_BYTES", 1_000)
    monkeypatch.setattr(task_writer, "_LARGE_BYTES", 2_000)
    monkeypatch.setattr(task_writer, "_PART_BYTES", 500)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert not [each.name for each in threading.enumerate() if each.name == "kproto-encoding"]


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize(
    "size", rest_slow([10, 1, 1_000], 0, 1), ids=lambda size: f"batches of {size}"
)
@pytest.mark.slow
async def test_rows_of_a_partition_keep_their_order(size: int) -> None:
    rows = [row(number, number % 3) for number in range(1_000)]
    async with Broker() as broker:
        broker.create_topic("t", partitions=3)
        assert await written(broker.bootstrap, batches_of(rows, size)) == 1_000
        for partition in range(3):
            found = broker.records("t", partition)
            assert numbers_of(found) == list(range(partition, 1_000, 3))
            assert [dict(each.headers) for each in found] == [{"n": each.value} for each in found]


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize(
    ("sizes", "least"), [([1], 1_000), ([7], 1_000), ([500], 400), ([7, 100, 1, 100, 2], 1)]
)
def test_small_batches_are_merged_and_large_ones_split(sizes: list[int], least: int) -> None:
    rows = [row(number, 0) for number in range(500)]
    given: list[pa.RecordBatch] = []
    first = 0
    for size in itertools.cycle(sizes):
        given += batches_of(rows[first : first + size], size)
        first += size
        if first >= len(rows):
            break
    steps = list(task_writer._resized_batches(given))
    assert [each for step in steps for each in step.to_pylist()] == rows
    assert all(least <= step.nbytes < 3_000 for step in steps[:-1])
    assert not any(task_writer._resized_batches(batches_of([], 1)))


def keyless(number: int) -> dict[str, Any]:
    return {**row(number, None), "key": None}


async def test_rows_without_key_and_partition_use_all_partitions() -> None:
    rows = [{**keyless(number), "value": bytes(1_000)} for number in range(4_000)]
    async with Broker() as broker:
        broker.create_topic("t", partitions=4)
        assert await written(broker.bootstrap, batches_of(rows, 500)) == 4_000
        counts = [len(broker.records("t", partition)) for partition in range(4)]
    assert sum(counts) == 4_000
    assert min(counts) > 800, counts


@pytest.mark.slow
async def test_tasks_of_a_row_each_use_all_partitions() -> None:
    async with Broker() as broker:
        broker.create_topic("t", partitions=2)
        for number in range(40):
            await written(broker.bootstrap, batches_of([keyless(number)]))
        counts = [len(broker.records("t", partition)) for partition in range(2)]
    assert sum(counts) == 40
    assert min(counts) > 0, counts


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
BYTES = st.none() | st.binary(max_size=300)


@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "key": BYTES,
                "value": BYTES,
                "headers": st.none()
                | st.lists(st.fixed_dictionaries({"key": TEXTS, "value": BYTES}), max_size=4),
                "topic": st.sampled_from(["t", "u"]),
                "partition": st.integers(0, 1),
            }
        ),
        max_size=60,
    ),
    batch_bytes=st.integers(1, 3_000),
    codec=st.sampled_from(["none", "gzip"]),
)
@settings(deadline=None, max_examples=examples(25))
def test_written_rows_are_in_the_log(
    rows: list[dict[str, Any]], batch_bytes: int, codec: str
) -> None:
    async def run() -> None:
        others = {"kafka.batch.size": str(batch_bytes), "kafka.compression.type": codec}
        async with Broker() as broker:
            for topic in ("t", "u"):
                broker.create_topic(topic, partitions=2)
            await written(broker.bootstrap, batches_of(rows, 7), **others)
            for topic in ("t", "u"):
                for partition in range(2):
                    expected = [
                        (
                            each["key"],
                            each["value"],
                            [(one["key"], one["value"]) for one in each["headers"] or ()],
                        )
                        for each in rows
                        if (each["topic"], each["partition"]) == (topic, partition)
                    ]
                    assert [
                        (each.key, each.value, list(each.headers))
                        for each in broker.records(topic, partition)
                    ] == expected

    asyncio.run(run())


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("late", [0, 555, 999])
async def test_unwritable_row_is_named(late: int) -> None:
    """Rows before the unwritable row may be in the log, once and in order; no later row may."""
    rows = [row(number, 0) for number in range(1_000)]
    rows[late] = row(late, 0, topic=None)
    async with Broker() as broker:
        broker.create_topic("t")
        with pytest.raises(RowError, match=rf"row {late} of this task .*its topic is null"):
            await written(broker.bootstrap, batches_of(rows))
        found = numbers_of(broker.records("t"))
        assert found == list(range(len(found)))
        assert len(found) <= late


@pytest.mark.usefixtures("small_steps")
async def test_unacknowledged_rows_fail_the_task() -> None:
    class UpstreamError(Exception):
        pass

    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches_of([row(number, 0) for number in range(500)])
        raise UpstreamError

    async with Broker() as broker:
        broker.create_topic("t")
        with pytest.raises(UpstreamError):
            await written(broker.bootstrap, failing())
        found = numbers_of(broker.records("t"))
        assert found == list(range(len(found)))


async def test_added_partition_is_written_to() -> None:
    """A partition is added after the tasks of the worker have cached the topic's metadata."""
    async with Broker() as broker:
        broker.create_topic("t", partitions=1)
        assert await written(broker.bootstrap, batches_of([row(0, 0)])) == 1
        broker.delete_topic("t")
        broker.create_topic("t", partitions=2)
        assert await written(broker.bootstrap, batches_of([row(1, 1)])) == 1
        assert numbers_of(broker.records("t", 1)) == [1]
        with pytest.raises(RowError, match=r"no partition 2; it has 2\. .* drop the column"):
            await written(broker.bootstrap, batches_of([row(2, 2)]))


async def test_batches_do_not_linger() -> None:
    """The sink ignores kafka.linger.ms, even if this value exceeds the delivery timeout."""
    async with Broker() as broker:
        broker.create_topic("t")
        waits = {"kafka.linger.ms": "500000"}
        assert await written(broker.bootstrap, batches_of([row(0, 0)]), **waits) == 1


FAULTS: dict[str, Callable[[random.Random], tuple[Any, Any]]] = {
    "the answer is lost": lambda draw: (lambda _: Close(after_handling=True), ProduceRequest),
    "the request is lost": lambda draw: (lambda _: Close(), ProduceRequest),
    "the answer is cut": lambda draw: (CutFrame(after_bytes=draw.randint(0, 20)), ProduceRequest),
    "nothing comes back": lambda draw: (SilentConnection(), ProduceRequest),
    "it leads no more": lambda draw: (ErrorCode("NOT_LEADER_OR_FOLLOWER"), ProduceRequest),
    "no replica is in sync": lambda draw: (ErrorCode("NOT_ENOUGH_REPLICAS"), ProduceRequest),
    "written, too few copies": lambda draw: (
        ErrorCode("NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        ProduceRequest,
    ),
    "its coordinator loads": lambda draw: (
        ErrorCode("COORDINATOR_LOAD_IN_PROGRESS"),
        InitProducerIdRequest,
    ),
}


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("name", rest_slow(FAULTS, 2))
@pytest.mark.parametrize("seed", rest_slow(range(3), 1, 1))
async def test_retried_request_is_written_once(
    name: str, seed: int, settings_for_all: SettingsForAll
) -> None:
    settings_for_all(
        ClientSettings(request_timeout_ms=500, retry_backoff_ms=1, retry_backoff_max_ms=5)
    )
    draw = random.Random(seed)
    rows = [row(number, number % 2) for number in range(400)]
    set_up = []

    async with Broker() as broker:
        broker.create_topic("t", partitions=2)

        def arriving() -> Iterator[pa.RecordBatch]:
            """Yields the batches of rows; before one of them, chosen at random, sets up the fault.

            If the fault is one of the coordinator, sets it up before the first batch.
            """
            at = 0 if "coordinator" in name else draw.randrange(len(rows) // 10)
            for number, batch in enumerate(batches_of(rows)):
                if number == at:
                    control, request = FAULTS[name](draw)
                    set_up.append(broker.control(control, request=request, times=1))
                yield batch

        assert await written(broker.bootstrap, arriving()) == len(rows)
        assert [each.times for each in set_up] == [0], "the fault has come"
        for partition in range(2):
            assert numbers_of(broker.records("t", partition)) == list(range(partition, 400, 2))


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
async def test_leaders_move_while_rows_are_written(
    seed: int, settings_for_all: SettingsForAll
) -> None:
    settings_for_all(ClientSettings(retry_backoff_ms=1, retry_backoff_max_ms=5))
    draw = random.Random(seed)
    rows = [row(number, number % 3) for number in range(900)]
    async with Cluster(3) as cluster:
        cluster.create_topic("t", partitions=3, replication_factor=3)
        loop = asyncio.get_running_loop()

        def arriving() -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(batches_of(rows)):
                if number % 15 == 7:
                    moved = draw.randrange(3), draw.randint(1, 3)
                    loop.call_soon_threadsafe(cluster.move_leader, "t", *moved)
                yield batch

        assert await written(cluster.bootstrap, arriving()) == len(rows)
        for partition in range(3):
            assert numbers_of(cluster.records("t", partition)) == list(range(partition, 900, 3))
