"""Tests Produce requests and responses as plain data, and the handling of error codes."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.core.retry import Remedy, remedy_of_code
from kproto.client.producer.batch import ProducerBatch
from kproto.client.producer.requests import (
    ProduceRequestTemplate,
    highest_produce_version,
    partition_responses,
    produce_error,
    produce_request,
)
from kproto.messages import ProduceRequest, ProduceResponse
from kproto.messages.produce_response import PartitionProduceResponse, TopicProduceResponse
from kproto.protocol.error_codes import ERRORS, code_of
from kproto.records import GrowingBatch
from kproto.wire import writing
from kproto.wire.compiled import __compiled__
from kproto.wire.errors import EncodeError
from kproto.wire.uuid import ZERO_UUID, Uuid

ID = Uuid(bytes(15) + b"\x01")

REMEDIES = {
    "CORRUPT_MESSAGE": Remedy.RETRY,
    "NOT_ENOUGH_REPLICAS": Remedy.RETRY,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": Remedy.RETRY,
    "REQUEST_TIMED_OUT": Remedy.RETRY,
    "THROTTLING_QUOTA_EXCEEDED": Remedy.RETRY,
    "NOT_LEADER_OR_FOLLOWER": Remedy.REFRESH,
    "LEADER_NOT_AVAILABLE": Remedy.REFRESH,
    "UNKNOWN_TOPIC_OR_PARTITION": Remedy.REFRESH,
    "UNKNOWN_TOPIC_ID": Remedy.REFRESH,
    "KAFKA_STORAGE_ERROR": Remedy.REFRESH,
    "NETWORK_EXCEPTION": Remedy.REFRESH,
    "MESSAGE_TOO_LARGE": Remedy.FAIL,
    "RECORD_LIST_TOO_LARGE": Remedy.FAIL,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Remedy.FAIL,
    "INVALID_PRODUCER_EPOCH": Remedy.FAIL,
    "UNKNOWN_PRODUCER_ID": Remedy.FAIL,
    "TOPIC_AUTHORIZATION_FAILED": Remedy.FAIL,
    "INVALID_RECORD": Remedy.FAIL,
    "UNKNOWN_SERVER_ERROR": Remedy.FAIL,
}


@pytest.mark.parametrize("name", REMEDIES)
def test_error_code_has_its_remedy(name: str) -> None:
    assert remedy_of_code(code_of(name)) is REMEDIES[name]


def test_exactly_the_retriable_error_codes_are_retried() -> None:
    for code, known in ERRORS.items():
        assert (remedy_of_code(code) is not Remedy.FAIL) == known.retriable, known.name
    assert remedy_of_code(12345) is Remedy.FAIL


@pytest.mark.parametrize("name", ["NONE", "DUPLICATE_SEQUENCE_NUMBER"])
async def test_stored_or_duplicate_batch_is_no_error(name: str) -> None:
    answer = PartitionProduceResponse(index=4, error_code=code_of(name))
    assert produce_error(answer, batch("t", 4)) is None


async def test_refused_batch_is_an_error() -> None:
    answer = PartitionProduceResponse(index=4, error_code=19, error_message="too few")
    error = produce_error(answer, batch("t", 4))
    assert error is not None
    assert error.retriable
    assert str(error) == "NOT_ENOUGH_REPLICAS (19): producing to t[4]: too few"


def batch(topic: str, partition: int, data: bytes = b"batch") -> ProducerBatch:
    made = ProducerBatch(
        topic, partition, asyncio.get_running_loop().create_future(), GrowingBatch()
    )
    made.data = data
    return made


async def test_request_has_topic_names_and_ids() -> None:
    batches = [batch("t", 4, b"t4"), batch("u", 0, b"u0"), batch("t", 2, b"t2")]
    request = produce_request(batches, {"t": ID, "u": ZERO_UUID}, 1234)
    assert (request.acks, request.timeout_ms, request.transactional_id) == (-1, 1234, None)
    sent = [
        (topic.name, topic.topic_id, part.index, part.records)
        for topic in request.topic_data
        for part in topic.partition_data
    ]
    assert sent == [("t", ID, 4, b"t4"), ("t", ID, 2, b"t2"), ("u", ZERO_UUID, 0, b"u0")]
    for version in (3, 12, 13):
        assert request.size(version) > 0


def test_topic_without_an_id_limits_the_version() -> None:
    assert highest_produce_version([ID]) == 13
    assert highest_produce_version([ID, ZERO_UUID]) == 12


def test_response_partitions_are_found_by_name_or_id() -> None:
    def of(name: str, topic_id: Uuid, index: int) -> TopicProduceResponse:
        part = PartitionProduceResponse(index=index)
        return TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[part])

    answer = ProduceResponse(responses=[of("", ID, 1), of("u", ZERO_UUID, 2)])
    found = partition_responses(answer, {"t": ID, "u": ZERO_UUID})
    assert list(found) == [("t", 1), ("u", 2)]
    assert partition_responses(ProduceResponse(), {"t": ID}) == {}


@pytest.mark.parametrize("version", ProduceRequest.VALID_VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 100_000])
async def test_single_produce_has_the_bytes_of_the_message(version: int, size: int) -> None:
    batch = ProducerBatch("topic é", 7, asyncio.get_running_loop().create_future(), GrowingBatch())
    batch.data = bytes(size)
    request = produce_request([batch], {"topic é": ID}, 1234)
    single = ProduceRequestTemplate("topic é", 7, ID, 1234, version)
    for _ in range(2):
        assert b"".join(single.encode(batch.data)) == request.encode(version)


@pytest.mark.skipif(__compiled__, reason="a bound that was compiled in cannot be another")
@pytest.mark.parametrize("version", [8, 9])
def test_batch_beyond_the_largest_length_is_refused(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The length is an int32 in version 8, and a varint in version 9."""
    monkeypatch.setattr(writing, "MAX_LENGTH", 20_000)
    single = ProduceRequestTemplate("t", 0, ID, 5, version)
    assert single.encode(bytes(20_000))
    with pytest.raises(EncodeError, match="a batch of 20001 bytes is too large for a Produce"):
        single.encode(bytes(20_001))


@given(
    topic=st.text(min_size=1, max_size=249),
    partition=st.integers(0, 0x7FFFFFFF),
    topic_id=st.binary(min_size=16, max_size=16),
    records=st.binary(max_size=300),
    version=st.sampled_from(list(ProduceRequest.VALID_VERSIONS)),
)
def test_single_produce_encodes_any_topic(
    topic: str, partition: int, topic_id: bytes, records: bytes, version: int
) -> None:
    single = ProduceRequestTemplate(topic, partition, Uuid(topic_id), 5, version)
    message = ProduceRequest.decode(b"".join(single.encode(records)), version)
    ((part,),) = (each.partition_data for each in message.topic_data)
    assert (part.index, part.records, message.timeout_ms) == (partition, records, 5)
    (named,) = message.topic_data
    assert (named.name, named.topic_id) in ((topic, ZERO_UUID), ("", topic_id))
