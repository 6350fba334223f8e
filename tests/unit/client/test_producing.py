"""What acknowledgements say, and what an error code of a Produce leads to."""

from __future__ import annotations

import asyncio

import pytest

from kproto.client.cluster import TopicInfo
from kproto.client.producing import (
    Ack,
    Acks,
    Batch,
    DeliveryError,
    ProduceAction,
    ProducerRecord,
    highest_produce_version,
    produce_action,
    produce_request,
    produced_partition,
)
from kproto.messages import ProduceResponse
from kproto.protocol.error_codes import ERRORS, code_of
from kproto.wire.errors import KprotoError, ProtocolError
from kproto.wire.uuid import ZERO_UUID, Uuid

ID = Uuid(bytes(15) + b"\x01")


def topic(topic_id: Uuid = ID) -> TopicInfo:
    return TopicInfo("t", topic_id, {})


@pytest.fixture
async def batches() -> list[Batch]:
    """Three batches of two partitions, with two, three and one records."""
    loop = asyncio.get_running_loop()
    made = [Batch("t", partition, loop.create_future()) for partition in (0, 1, 0)]
    for batch, count in zip(made, (2, 3, 1), strict=True):
        for at in range(count):
            batch.records.append((b"k%d" % at, b"v%d" % at, (), 1000 + at))
    return made


async def test_acknowledgements_in_the_order_of_the_records(batches: list[Batch]) -> None:
    first, second, third = batches
    acks = Acks()
    order = [(first, 0), (second, 0), (second, 1), (first, 1), (second, 2), (third, 0)]
    for batch, position in order:
        acks.add(batch, position)
    first.base_offset, second.base_offset, third.base_offset = 10, 20, 30
    second.log_append_time = 99
    wanted = [
        Ack("t", 0, 10, 1000),
        Ack("t", 1, 20, 99),
        Ack("t", 1, 21, 99),
        Ack("t", 0, 11, 1001),
        Ack("t", 1, 22, 99),
        Ack("t", 0, 30, 1000),
    ]
    assert len(acks) == 6
    assert list(acks) == wanted
    assert [acks[at] for at in range(-6, 6)] == wanted + wanted
    assert acks[1:5:2] == wanted[1:5:2]
    assert acks[::-1] == wanted[::-1]
    assert list(reversed(acks)) == wanted[::-1]
    assert wanted[3] in acks
    assert acks.index(wanted[4]) == 4
    assert acks.batches() == [first, second, third]
    assert repr(acks) == "<6 acknowledgements>"
    for outside in (6, -7):
        with pytest.raises(IndexError, match=f"6 acknowledgements, and none at {outside}"):
            acks[outside]


async def test_records_of_others_may_stand_between(batches: list[Batch]) -> None:
    (_, second, _) = batches
    second.base_offset = 5
    acks = Acks()
    acks.add(second, 0)
    acks.add(second, 2)
    assert [ack.offset for ack in acks] == [5, 7]


async def test_an_offset_that_the_broker_did_not_say(batches: list[Batch]) -> None:
    acks = Acks()
    acks.add(batches[0], 1)
    assert acks[0] == Ack("t", 0, -1, 1001)


async def test_what_was_not_delivered(batches: list[Batch]) -> None:
    first, second, third = batches
    acks = Acks()
    for batch, position in [(first, 0), (second, 0), (second, 2), (third, 0)]:
        acks.add(batch, position)
    first.future.set_result(KprotoError("failed"))
    second.future.set_result(None)
    third.future.set_result(KprotoError("failed"))
    assert acks.undelivered() == [
        ProducerRecord(b"v0", b"k0", (), 1000, 0),
        ProducerRecord(b"v0", b"k0", (), 1000, 0),
    ]


def test_a_delivery_error_says_how_many_and_why() -> None:
    cause = KprotoError("the reason")
    error = DeliveryError("t", 3, [ProducerRecord(b"v")], cause)
    assert str(error) == "1 records for t[3] were not acknowledged: the reason"
    assert (error.topic, error.partition, error.cause) == ("t", 3, cause)
    assert isinstance(error, KprotoError)


ACTIONS = {
    "NONE": ProduceAction.DONE,
    "DUPLICATE_SEQUENCE_NUMBER": ProduceAction.DONE,
    "CORRUPT_MESSAGE": ProduceAction.RETRY,
    "NOT_ENOUGH_REPLICAS": ProduceAction.RETRY,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": ProduceAction.RETRY,
    "REQUEST_TIMED_OUT": ProduceAction.RETRY,
    "THROTTLING_QUOTA_EXCEEDED": ProduceAction.RETRY,
    "NOT_LEADER_OR_FOLLOWER": ProduceAction.REFRESH,
    "LEADER_NOT_AVAILABLE": ProduceAction.REFRESH,
    "UNKNOWN_TOPIC_OR_PARTITION": ProduceAction.REFRESH,
    "UNKNOWN_TOPIC_ID": ProduceAction.REFRESH,
    "KAFKA_STORAGE_ERROR": ProduceAction.REFRESH,
    "NETWORK_EXCEPTION": ProduceAction.REFRESH,
    "MESSAGE_TOO_LARGE": ProduceAction.FAIL,
    "RECORD_LIST_TOO_LARGE": ProduceAction.FAIL,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": ProduceAction.FAIL,
    "INVALID_PRODUCER_EPOCH": ProduceAction.FAIL,
    "UNKNOWN_PRODUCER_ID": ProduceAction.FAIL,
    "TOPIC_AUTHORIZATION_FAILED": ProduceAction.FAIL,
    "INVALID_RECORD": ProduceAction.FAIL,
    "UNKNOWN_SERVER_ERROR": ProduceAction.FAIL,
}


@pytest.mark.parametrize("name", ACTIONS)
def test_actions(name: str) -> None:
    assert produce_action(code_of(name)) is ACTIONS[name]


def test_only_errors_that_kafka_calls_retriable_are_tried_again() -> None:
    for code, known in ERRORS.items():
        if produce_action(code) in {ProduceAction.RETRY, ProduceAction.REFRESH}:
            assert known.retriable, known.name
    assert produce_action(12345) is ProduceAction.FAIL


def test_a_request_names_its_topic_by_name_and_by_id() -> None:
    request = produce_request(topic(), 4, b"batch", 1234)
    assert (request.acks, request.timeout_ms, request.transactional_id) == (-1, 1234, None)
    (asked,) = request.topic_data
    assert (asked.name, asked.topic_id) == ("t", ID)
    (part,) = asked.partition_data
    assert (part.index, part.records) == (4, b"batch")
    for version in (3, 12, 13):
        assert request.size(version) > 0


def test_without_an_id_a_topic_can_be_named_only() -> None:
    assert highest_produce_version(topic()) == 13
    assert highest_produce_version(topic(ZERO_UUID)) == 12


def test_an_answer_that_names_no_partition() -> None:
    with pytest.raises(ProtocolError, match="names no partition"):
        produced_partition(ProduceResponse())
