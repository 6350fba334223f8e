"""Tests that a topic deleted or recreated during a read is data loss.

A read must not return records of both the old and the new topic.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kproto_pipeline.columns.chunks import column_chunks
from kproto_pipeline.spark.options.option_table import ReadOptions, parse_read_options
from kproto_pipeline.spark.planning.offset_ranges import DataLossError, OffsetRange
from kproto_pipeline.spark.planning.offset_reader import plan_batch
from kproto_pipeline.spark.reading.range_fetcher import fetch_ranges

from kproto.messages import ApiVersionsRequest, FetchRequest, MetadataRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.error_codes import code_of
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.unit.client.scripted_broker import ScriptedBroker, api_versions, quick
from tests.unit.client.scripted_log import ScriptedLog, batch
from tests.unit.pipeline.spark.conftest import SettingsForAll

OLD, NEW = Uuid.random(), Uuid.random()
#: Fetch by topic id; fetch by name, with ids in Metadata only; and no topic ids at all.
BY_ID, BY_NAME, NO_IDS = "by id", "by name", "no ids"


@pytest.fixture(autouse=True)
def _retry_at_once(settings_for_all: SettingsForAll) -> None:
    settings_for_all(quick(metadata_wait_ms=50, delivery_timeout_ms=10_000))


class Cluster:
    """A broker whose topic `t` can be deleted, or recreated with another id and other values."""

    def __init__(self, broker: ScriptedBroker, kind: str) -> None:
        self.broker = broker
        self.kind = kind
        self.log = ScriptedLog(broker)
        self.id = OLD
        #: Called with the number of each fetch before it is answered.
        self.before_fetch: Callable[[int], None] = lambda number: None
        self._fill(b"old")
        broker.answers[MetadataRequest] = self._metadata
        broker.answers[FetchRequest] = self._fetch
        broker.answers[ApiVersionsRequest] = self._versions

    def _fill(self, value: bytes) -> None:
        self.log.batches.clear()
        self.log.following.clear()
        for number in range(6):
            self.log.append(batch(number, [value]))

    def delete(self) -> None:
        self.broker.topics.clear()

    def recreate(self) -> None:
        self.id = NEW
        self._fill(b"new")

    def _versions(self, request: ReceivedRequest) -> Any:
        answer = api_versions()
        for api in answer.api_keys:
            if api.api_key == FetchRequest.API_KEY and self.kind != BY_ID:
                api.max_version = 12
        return answer

    def _metadata(self, request: ReceivedRequest) -> Any:
        answer = self.broker.metadata(request)
        for topic in answer.topics:
            topic.topic_id = ZERO_UUID if self.kind == NO_IDS else self.id
        return answer

    async def _fetch(self, request: ReceivedRequest) -> Any:
        self.before_fetch(len(self.log.fetches))
        assert isinstance(request.message, FetchRequest)
        assert (request.version >= 13) == (self.kind == BY_ID)
        (topic,) = request.message.topics
        known = bool(self.broker.topics) and topic.topic_id in (ZERO_UUID, self.id)
        name = "UNKNOWN_TOPIC_ID" if topic.topic_id != ZERO_UUID else "UNKNOWN_TOPIC_OR_PARTITION"
        self.log.errors = [] if known else [code_of(name)]
        topic.topic = "t"
        response = await self.log.fetch(request)
        if topic.topic_id != ZERO_UUID:
            response.responses[0].topic = ""
            response.responses[0].topic_id = topic.topic_id
        return response

    def options(self, fail: bool) -> ReadOptions:
        return parse_read_options(
            {
                "kafka.bootstrap.servers": self.broker.bootstrap,
                "subscribe": "t",
                "kafka.max.partition.fetch.bytes": str(len(batch(0, [b"old"]))),
                "kafka.fetch.max.wait.ms": "10",
                "failOnDataLoss": str(fail),
            }
        )

    async def planned(self) -> OffsetRange:
        options = self.options(fail=True)
        async with options.client.client() as client:
            (wanted,) = await plan_batch(client, options)
        return wanted

    async def values(self, wanted: OffsetRange, fail: bool) -> tuple[list[bytes], Exception | None]:
        """Returns the values that a task reads from the range, and the DataLossError or None."""
        found: list[bytes] = []

        def read() -> None:
            for _, fetched in fetch_ranges(self.options(fail), [wanted]):
                chunks = column_chunks(fetched.records, start=fetched.offset, end=wanted.end)
                for chunk in chunks:
                    data = bytes(chunk.buffer)
                    found.extend(data[a:b] for a, b in chunk.values.bounds.reshape(-1, 2).tolist())

        try:
            await asyncio.to_thread(read)
        except DataLossError as error:
            return found, error
        return found, None


@asynccontextmanager
async def cluster(kind: str) -> AsyncIterator[Cluster]:
    async with ScriptedBroker({"t": 1}) as broker:
        yield Cluster(broker, kind)


@pytest.mark.parametrize("kind", [BY_ID, BY_NAME])
@pytest.mark.parametrize("fetches", [0, 1, 3])
async def test_topic_recreated_during_the_read_is_data_loss(kind: str, fetches: int) -> None:
    async with cluster(kind) as made:
        wanted = await made.planned()
        made.before_fetch = lambda number: made.recreate() if number == fetches else None
        values, error = await made.values(wanted, fail=True)
        assert values == [b"old"] * fetches
        assert f"its id is {NEW}, and was {OLD} when the read was planned" in str(error)
        assert "failOnDataLoss" in str(error)


@pytest.mark.parametrize("kind", [BY_ID, BY_NAME])
async def test_topic_recreated_before_the_task_is_data_loss(kind: str) -> None:
    async with cluster(kind) as made:
        wanted = await made.planned()
        made.recreate()
        values, error = await made.values(wanted, fail=True)
        assert (values, made.log.fetches) == ([], [])
        assert "deleted and recreated" in str(error)


@pytest.mark.parametrize("kind", [BY_ID, BY_NAME])
async def test_shorter_log_of_a_recreated_topic_is_data_loss(kind: str) -> None:
    """If the new topic's log is shorter, a fetch by topic name may fail with OFFSET_OUT_OF_RANGE.

    The read must then not continue at the log start offset of the new topic.
    """
    async with cluster(kind) as made:
        wanted = await made.planned()

        def shorter(number: int) -> None:
            if number == 2:
                made.recreate()
                made.log.batches["t", 0] = made.log.batches["t", 0][:1]
                made.log.following["t", 0] = [1]

        made.before_fetch = shorter
        values, error = await made.values(wanted, fail=True)
        assert values == [b"old"] * 2
        assert "deleted and recreated" in str(error)


@pytest.mark.parametrize("kind", [BY_ID, BY_NAME, NO_IDS])
async def test_deleted_topic_is_data_loss(kind: str) -> None:
    """The read fails when no broker has had the topic in its metadata for `metadata_wait_ms`."""
    async with cluster(kind) as made:
        wanted = await made.planned()
        made.before_fetch = lambda number: made.delete() if number == 2 else None
        values, error = await made.values(wanted, fail=True)
        assert values == [b"old"] * 2
        assert "the topic is deleted" in str(error)


@pytest.mark.parametrize("kind", [BY_ID, BY_NAME])
@pytest.mark.parametrize("loss", ["delete", "recreate"])
async def test_lost_records_are_skipped_without_fail_on_data_loss(
    kind: str, loss: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The read must end without an error, and return no record of the recreated topic."""
    async with cluster(kind) as made:
        wanted = await made.planned()
        made.before_fetch = lambda number: getattr(made, loss)() if number == 2 else None
        with caplog.at_level(logging.WARNING, "kproto.pipeline"):
            assert await made.values(wanted, fail=False) == ([b"old"] * 2, None)
        assert "the rest of the range is skipped" in caplog.text


async def test_brokers_without_topic_ids_are_read_by_name() -> None:
    async with cluster(NO_IDS) as made:
        wanted = await made.planned()
        assert wanted.topic_id == ZERO_UUID
        assert await made.values(wanted, fail=True) == ([b"old"] * 6, None)


async def test_briefly_unknown_topic_is_no_data_loss(settings_for_all: SettingsForAll) -> None:
    settings_for_all(quick(metadata_wait_ms=10_000, delivery_timeout_ms=10_000))
    async with cluster(BY_ID) as made:
        wanted = await made.planned()
        metadata, unknown = made.broker.answers[MetadataRequest], 2

        def answer(request: ReceivedRequest) -> Any:
            nonlocal unknown
            response = metadata(request)
            if response.topics and unknown:
                unknown -= 1
                response.topics[0].error_code = code_of("UNKNOWN_TOPIC_OR_PARTITION")
            return response

        made.broker.answers[MetadataRequest] = answer
        assert await made.values(wanted, fail=True) == ([b"old"] * 6, None)
        assert not unknown
