"""Tests the client's calls that create and delete topics, list offsets and fetch records."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kproto import (
    ZERO_UUID,
    BrokerConnectionError,
    BrokerResponseError,
    Client,
    ClientSettings,
    ConfigurationError,
    NewTopic,
    ProtocolError,
)
from kproto.client import FetchedPartition
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.messages.create_topics_response import CreatableTopicResult
from kproto.messages.delete_topics_response import DeletableTopicResult
from kproto.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsTopicResponse,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = quick(metadata_wait_ms=50, delivery_timeout_ms=300)


# --- Topics ---


async def test_topics_are_created_and_deleted() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap) as client:
        broker.answers[CreateTopicsRequest] = lambda asked: CreateTopicsResponse()
        broker.answers[DeleteTopicsRequest] = lambda asked: DeleteTopicsResponse()
        topic = NewTopic("b", 3, 2, {"retention.ms": "1000", "cleanup.policy": None})
        await client.create_topics("a", topic, timeout_ms=5000, validate_only=True)
        sent = broker.asked[-1].message
        assert isinstance(sent, CreateTopicsRequest)
        assert (sent.timeout_ms, sent.validate_only) == (5000, True)
        assert [
            (
                topic.name,
                topic.num_partitions,
                topic.replication_factor,
                [(config.name, config.value) for config in topic.configs],
            )
            for topic in sent.topics
        ] == [
            ("a", -1, -1, []),
            ("b", 3, 2, [("retention.ms", "1000"), ("cleanup.policy", None)]),
        ]
        await client.delete_topics("a", "b")
        deletion = broker.asked[-1].message
        assert isinstance(deletion, DeleteTopicsRequest)
        assert [topic.name for topic in deletion.topics] == ["a", "b"]


async def test_refused_creation_or_deletion_raises() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap) as client:
        broker.answers[CreateTopicsRequest] = lambda asked: CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name="a"),
                CreatableTopicResult(name="b", error_code=36, error_message="is there"),
            ]
        )
        with pytest.raises(BrokerResponseError) as raised:
            await client.create_topics("a", "b")
        assert str(raised.value) == "TOPIC_ALREADY_EXISTS (36): creating topic 'b': is there"
        broker.answers[DeleteTopicsRequest] = lambda asked: DeleteTopicsResponse(
            responses=[DeletableTopicResult(name="b", error_code=3)]
        )
        with pytest.raises(BrokerResponseError) as raised:
            await client.delete_topics("b")
        assert str(raised.value) == "UNKNOWN_TOPIC_OR_PARTITION (3): deleting topic 'b'"


async def test_invalid_topic_is_refused() -> None:
    wrong: Any = {"a": 3}
    async with ScriptedBroker({}) as broker, Client(broker.bootstrap) as client:
        with pytest.raises(ConfigurationError, match="neither the name of a topic nor a NewTopic"):
            await client.create_topics("b", wrong)


async def test_old_broker_deletes_topics_by_name() -> None:
    def ranges(asked: ReceivedRequest) -> ApiVersionsResponse:
        keys = [(3, 12), (20, 5), (18, 4)]
        return ApiVersionsResponse(
            api_keys=[ApiVersion(api_key=k, min_version=0, max_version=high) for k, high in keys]
        )

    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = ranges
        broker.answers[DeleteTopicsRequest] = lambda asked: DeleteTopicsResponse()
        async with Client(broker.bootstrap) as client:
            await client.delete_topics("a", "b")
        sent = broker.asked[-1]
        assert isinstance(sent.message, DeleteTopicsRequest)
        assert (sent.version, sent.message.topic_names) == (5, ["a", "b"])


# --- Offsets and fetches ---


async def test_offsets_are_listed() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        timestamps: list[int] = []

        def answer(got: ReceivedRequest) -> ListOffsetsResponse:
            assert isinstance(got.message, ListOffsetsRequest)
            (part,) = got.message.topics[0].partitions
            timestamps.append(part.timestamp)
            found = ListOffsetsPartitionResponse(partition_index=0, offset=5)
            return ListOffsetsResponse(
                topics=[ListOffsetsTopicResponse(name="t", partitions=[found])]
            )

        broker.answers[ListOffsetsRequest] = answer
        for wanted in ("latest", "earliest", 1234):
            assert await client.list_offsets({("t", 0): wanted}) == {("t", 0): 5}
        assert timestamps == [-1, -2, 1234]
        assert await client.list_offsets({}) == {}
        newest: Any = "newest"
        with pytest.raises(ConfigurationError, match=r"offset to list of t\[0\] is 'newest'"):
            await client.list_offsets({("t", 0): newest})


async def test_list_offsets_is_retried_after_retriable_errors() -> None:
    def of(error_code: int) -> ListOffsetsResponse:
        found = ListOffsetsPartitionResponse(partition_index=0, error_code=error_code, offset=5)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])

    answers: list[Any] = [of(0), HANG_UP, of(6)]
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ListOffsetsRequest] = lambda asked: answers.pop()
        assert await client.list_offsets({("t", 0): "latest"}) == {("t", 0): 5}
        assert broker.count(MetadataRequest) == 4, "metadata is refreshed after each failure"
        answers = [of(29)]
        with pytest.raises(BrokerResponseError, match=r"TOPIC_AUTHORIZATION_FAILED .* t\[0\]"):
            await client.list_offsets({("t", 0): "latest"})


async def test_fetch_returns_records_or_raises() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"a"]))
        log.append(batch(1, [b"b"]))
        found = await client.fetch("t", 0, 1, max_bytes=1000, min_bytes=7, max_wait_ms=9)
        assert found._replace(topic_id=ZERO_UUID) == FetchedPartition(batch(1, [b"b"]), 2, 2, 0)
        (request,) = log.fetches
        assert (request.max_bytes, request.min_bytes, request.max_wait_ms) == (1000, 7, 9)
        with pytest.raises(
            BrokerResponseError, match=r"OFFSET_OUT_OF_RANGE .* t\[0\] from offset 9"
        ):
            await client.fetch("t", 0, 9)
        broker.answers[FetchRequest] = lambda asked: FetchResponse()
        with pytest.raises(ProtocolError, match=r"a fetch of t\[0\] lacks it"):
            await client.fetch("t", 0, 0)
        broker.answers[FetchRequest] = lambda asked: FetchResponse(error_code=29)
        with pytest.raises(BrokerResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
            await client.fetch("t", 0, 0)


async def test_long_fetch_blocks_no_other_request_and_does_not_time_out() -> None:
    settings, clock, release = (
        ClientSettings(request_timeout_ms=100),
        ManualClock(),
        asyncio.Event(),
    )
    async with (
        ScriptedBroker({"t": 1}) as broker,
        Client(broker.bootstrap, settings, clock=clock) as client,
    ):
        log = ScriptedLog(broker)

        async def delayed(asked: ReceivedRequest) -> FetchResponse:
            await release.wait()
            return await log.fetch(asked)

        broker.answers[FetchRequest] = delayed
        waiting = asyncio.create_task(client.fetch("t", 0, 0, max_wait_ms=200))
        await broker.until(lambda: broker.count(FetchRequest) == 1)
        await client.refresh([])
        await clock.advance(299)
        assert not waiting.done()
        release.set()
        assert (await waiting).records == b""


async def test_lost_leader_triggers_a_metadata_refresh() -> None:
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        ScriptedLog(broker)
        before = broker.count(MetadataRequest)
        broker.answers[FetchRequest] = lambda asked: HANG_UP
        for _ in range(2):
            with pytest.raises(BrokerConnectionError):
                await client.fetch("t", 0, 0)
        assert broker.count(MetadataRequest) == before + 2
