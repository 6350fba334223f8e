"""Tests log truncation (KIP-320): the consumer's errors and its positions afterwards."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import Client, Consumer, LogTruncatedError
from kproto.client.fetch.partition_state import FetchState, TopicPartitionState
from kproto.client.fetch.position_validation import (
    EpochEnd,
    RequestedEpoch,
    epoch_ends,
    epochs_request,
)
from kproto.client.settings import ClientSettings
from kproto.messages import (
    ApiVersionsRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kproto.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderTopicResult,
)
from kproto.protocol.connection import ReceivedRequest
from kproto.wire.errors import BrokerResponseError
from tests.unit.client.scripted_broker import ScriptedBroker, api_versions, quick
from tests.unit.client.scripted_log import ScriptedLog, batch

QUICK = quick(metadata_wait_ms=100, delivery_timeout_ms=1000)


class Cluster:
    """A cluster of one broker, whose leader epoch a test raises."""

    def __init__(self, broker: ScriptedBroker, log: ScriptedLog, client: Client) -> None:
        self.broker = broker
        self.log = log
        self.client = client
        self.epoch = 3
        broker.answers[MetadataRequest] = self.metadata

    def metadata(self, asked: ReceivedRequest) -> Any:
        answer = self.broker.metadata(asked)
        for topic in answer.topics:
            for part in topic.partitions:
                part.leader_epoch = self.epoch
        return answer

    async def elect(self) -> None:
        """Elects a leader with a new epoch, and refreshes the client's metadata."""
        self.epoch += 1
        await self.client.refresh(["t"])

    def truncate(self, epoch: int, offset: int) -> None:
        """Ends the epoch at `offset`, and deletes all records from this offset on."""
        self.log.epochs["t", 0] = (epoch, offset)
        following = self.log.following["t", 0]
        retain = sum(end <= offset for end in following)
        del self.log.batches["t", 0][retain:], following[retain:]

    def fetched(self) -> list[tuple[int, int, int]]:
        """Returns (offset, leader epoch, last fetched epoch) of each partition in each fetch."""
        return [
            (part.fetch_offset, part.current_leader_epoch, part.last_fetched_epoch)
            for fetch in self.log.fetches
            for topic in fetch.topics
            for part in topic.partitions
        ]


@asynccontextmanager
async def cluster(*values: bytes, partitions: int = 1) -> AsyncIterator[Cluster]:
    """Yields a cluster whose log has one batch of epoch 3 for each value."""
    async with (
        ScriptedBroker({"t": partitions}) as broker,
        Client(broker.bootstrap, QUICK) as client,
    ):
        log = ScriptedLog(broker)
        for at, value in enumerate(values):
            log.append(batch(at, [value], partition_leader_epoch=3))
        made = Cluster(broker, log, client)
        await client.refresh(["t"])
        yield made


async def take(consumer: Consumer, count: int) -> list[bytes | None]:
    records = aiter(consumer)
    return [(await anext(records)).value for _ in range(count)]


async def test_fetch_has_the_leader_epoch_and_the_last_fetched_epoch() -> None:
    async with cluster(b"a", b"b") as it:
        async with it.client.consumer("t", max_wait_ms=5) as consumer:
            await take(consumer, 2)
            assert it.fetched()[0] == (0, 3, -1)
            waiting = asyncio.create_task(take(consumer, 1))
            await it.broker.until(lambda: it.fetched()[-1] == (2, 3, 3))
            it.log.append(batch(2, [b"c"], partition_leader_epoch=3))
            assert await waiting == [b"c"]
        (listed,) = [
            asked.message
            for asked in it.broker.asked
            if isinstance(asked.message, ListOffsetsRequest)
        ]
        assert listed.topics[0].partitions[0].current_leader_epoch == 3


async def test_position_is_validated_at_a_new_leader() -> None:
    async with (
        cluster(b"a", b"b") as it,
        it.client.consumer("t", max_wait_ms=5) as consumer,
    ):
        await take(consumer, 2)
        await it.elect()
        it.log.append(batch(2, [b"c"], partition_leader_epoch=4))
        assert await take(consumer, 1) == [b"c"]
        (asked,) = it.log.asked_for_epochs
        part = asked.topics[0].partitions[0]
        assert (part.leader_epoch, part.current_leader_epoch, asked.replica_id) == (3, 4, -1)
        assert (2, 4, 3) in it.fetched()


@pytest.mark.parametrize("by_fetch", [False, True])
async def test_consumer_continues_from_the_truncation_offset(
    caplog: pytest.LogCaptureFixture, by_fetch: bool
) -> None:
    async with (
        cluster(b"a", b"b", b"c") as it,
        it.client.consumer("t", max_wait_ms=5) as consumer,
    ):
        await take(consumer, 3)
        with caplog.at_level(logging.WARNING, "kproto.client"):
            if not by_fetch:
                await it.elect()
            it.truncate(3, 1)
            it.log.append(batch(1, [b"B"], partition_leader_epoch=4))
            assert await take(consumer, 1) == [b"B"]
        assert "t[0]: the log was truncated: offsets 1 to 2, which were returned" in caplog.text
        assert bool(it.log.asked_for_epochs) != by_fetch


async def test_truncated_records_not_yet_returned_are_dropped_silently(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        cluster(b"a", b"b", b"c") as it,
        it.client.consumer("t", max_wait_ms=5, start={("t", 0): 0}) as consumer,
    ):
        with caplog.at_level(logging.WARNING, "kproto.client"):
            records = consumer.raw_batches()
            assert (await anext(records)).batch.base_offset == 0
            await it.elect()
            it.truncate(3, 2)
            # Two batches are buffered while the client validates the position at the new leader.
            consumer._fetcher.start_due()
            await it.broker.until(lambda: bool(it.log.asked_for_epochs))
            await asyncio.sleep(0.05)
            it.log.append(batch(2, [b"C"], partition_leader_epoch=4))
            found = [(await anext(records)).batch for _ in range(2)]
        assert [each.records()[0].value for each in found] == [b"b", b"C"]
        assert caplog.text == ""


@pytest.mark.parametrize("by_fetch", [False, True])
async def test_truncation_raises_on_each_poll_with_explicit_start_offsets(by_fetch: bool) -> None:
    async with (
        cluster(b"a", b"b", b"c") as it,
        it.client.consumer("t", max_wait_ms=5, start={("t", 0): 0}) as consumer,
    ):
        await take(consumer, 3)
        if not by_fetch:
            await it.elect()
        it.truncate(3, 1)
        for _ in range(2):
            with pytest.raises(
                LogTruncatedError, match=r"t\[0\]: .* offsets 1 to 2, which"
            ) as raised:
                await take(consumer, 1)
            assert (raised.value.position, raised.value.diverging_offset) == (3, 1)
        assert consumer.positions == {("t", 0): 3}


async def test_leader_without_the_epoch_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        cluster(b"a", b"b", b"c") as it,
        it.client.consumer("t", max_wait_ms=5, start={("t", 0): 0}) as consumer,
        it.client.consumer("t", max_wait_ms=5) as other,
    ):
        await take(consumer, 3)
        await take(other, 3)
        await it.elect()
        it.truncate(-1, -1)
        with pytest.raises(LogTruncatedError, match="cannot tell where") as raised:
            await take(consumer, 1)
        assert raised.value.diverging_offset is None
        del it.log.epochs["t", 0]
        it.epoch += 1
        it.log.append(batch(0, [b"A"], partition_leader_epoch=5))
        it.log.epochs["t", 0] = (-1, -1)
        with caplog.at_level(logging.WARNING, "kproto.client"):
            assert await take(other, 1) == [b"A"]
        assert "may be gone" in caplog.text


async def test_stop_at_end_ends_at_the_new_end_of_a_truncated_log() -> None:
    async with (
        cluster(b"a", b"b", b"c") as it,
        it.client.consumer("t", stop_at_end=True, max_partition_fetch_bytes=1) as consumer,
    ):
        assert await take(consumer, 2) == [b"a", b"b"]
        await it.elect()
        it.truncate(3, 1)
        it.log.append(batch(1, [b"B"], partition_leader_epoch=4))
        assert [record.value async for record in consumer] in ([], [b"c"])


async def test_stop_at_end_does_not_wait_for_a_truncated_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        cluster(b"a", b"b", b"c") as it,
        it.client.consumer("t", stop_at_end=True, max_wait_ms=5) as consumer,
    ):
        assert consumer.positions == {("t", 0): 0}
        it.truncate(3, 1)
        with caplog.at_level(logging.WARNING, "kproto.client"):
            assert [record.value async for record in consumer] == [b"a"]
        assert "t[0]: the log ends at offset 1, and no longer at 3" in caplog.text


@pytest.mark.parametrize("is_known", [True, False])
async def test_position_is_not_validated_at_old_brokers(is_known: bool) -> None:
    async with cluster(b"a", b"b") as it:

        def versions(asked: ReceivedRequest) -> Any:
            answer = api_versions()
            for each in answer.api_keys:
                if each.api_key == OffsetForLeaderEpochRequest.API_KEY:
                    each.max_version = 2
                if each.api_key == FetchRequest.API_KEY:
                    each.max_version = 11
            if not is_known:
                for each in answer.api_keys[:]:
                    if each.api_key == OffsetForLeaderEpochRequest.API_KEY:
                        answer.api_keys.remove(each)
            return answer

        it.broker.answers[ApiVersionsRequest] = versions
        async with (
            Client(it.broker.bootstrap, QUICK) as client,
            client.consumer("t", max_wait_ms=5) as consumer,
        ):
            it.client = client
            assert await take(consumer, 2) == [b"a", b"b"]
            await it.elect()
            it.log.append(batch(2, [b"c"]))
            assert await take(consumer, 1) == [b"c"]
            assert (2, 4, -1) in it.fetched()
            assert it.log.asked_for_epochs == []


@pytest.mark.parametrize("code", [6, 74, 75, 3])
async def test_retriable_error_of_the_validation_is_retried(code: int) -> None:
    async with (
        cluster(b"a", b"b") as it,
        it.client.consumer("t", max_wait_ms=5) as consumer,
    ):
        await take(consumer, 2)
        errors = [code, code]

        def answer(asked: ReceivedRequest) -> Any:
            found = it.log.epoch_ends(asked)
            if errors:
                found.topics[0].partitions[0].error_code = errors.pop()
            return found

        it.broker.answers[OffsetForLeaderEpochRequest] = answer
        await it.elect()
        it.log.append(batch(2, [b"c"], partition_leader_epoch=4))
        assert await take(consumer, 1) == [b"c"]
        assert len(it.log.asked_for_epochs) == 3


async def test_unauthorized_validation_raises() -> None:
    async with (
        cluster(b"a", b"b") as it,
        it.client.consumer("t", max_wait_ms=5) as consumer,
    ):
        await take(consumer, 2)

        def refuse(asked: ReceivedRequest) -> Any:
            found = it.log.epoch_ends(asked)
            found.topics[0].partitions[0].error_code = 29
            return found

        it.broker.answers[OffsetForLeaderEpochRequest] = refuse
        await it.elect()
        with pytest.raises(BrokerResponseError, match=r"TOPIC_AUTHORIZATION_FAILED.* t\[0\]"):
            await take(consumer, 1)


def test_validation_requests_and_responses_are_converted() -> None:
    request = epochs_request(
        {
            ("t", 0): RequestedEpoch(3, 4),
            ("u", 1): RequestedEpoch(5, 5),
            ("t", 2): RequestedEpoch(0, 7),
        }
    )
    asked = [
        (topic.topic, part.partition, part.leader_epoch, part.current_leader_epoch)
        for topic in request.topics
        for part in topic.partitions
    ]
    assert asked == [("t", 0, 3, 4), ("t", 2, 0, 7), ("u", 1, 5, 5)]
    response = OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic="t",
                partitions=[
                    EpochEndOffset(partition=0, leader_epoch=3, end_offset=9),
                    EpochEndOffset(partition=2, error_code=74),
                ],
            )
        ]
    )
    (_, end), (tp, error) = epoch_ends(response)
    assert end == EpochEnd(3, 9)
    assert tp == ("t", 2)
    assert isinstance(error, BrokerResponseError)


def test_truncation_error_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(LogTruncatedError("t", 1, 9, 5)))
    assert (error.topic, error.partition, error.position, error.diverging_offset) == ("t", 1, 9, 5)
    assert str(error) == str(LogTruncatedError("t", 1, 9, 5))


def test_position_is_validated_when_the_leader_epoch_rises() -> None:
    state = TopicPartitionState(("t", 0), ClientSettings(), position=5)
    assert state.may_fetch_from(3), "no record was fetched yet"
    assert state.leader_epoch == 3
    state.last_epoch = 3
    assert state.may_fetch_from(3)
    assert not state.may_fetch_from(4)
    assert state.fetch_state is FetchState.AWAIT_VALIDATION
    assert state.leader_epoch == 3
    assert state.may_fetch_from(2), "the topic was recreated, on brokers without topic ids"
    assert state.leader_epoch == 2
    assert state.may_fetch_from(-1)
    assert state.may_fetch_from(4), "brokers without epochs answered in between"
