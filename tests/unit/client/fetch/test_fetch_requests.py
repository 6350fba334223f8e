"""Tests Fetch requests and responses as plain data."""

from __future__ import annotations

import pytest

from kproto.client.core.retry import Remedy
from kproto.client.fetch.fetch_requests import (
    closing_request,
    fetch_remedy,
    fetch_request,
    is_out_of_range,
    response_bytes,
)
from kproto.client.fetch.fetch_session import (
    FetchSession,
    ForgottenPartition,
    RequestedPartition,
    SessionFetch,
    without_session,
)
from kproto.client.fetch.fetcher import fetched_partitions
from kproto.messages import FetchResponse
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.protocol.error_codes import ERRORS, code_of, error_of_code
from kproto.wire.errors import BrokerConnectionError
from kproto.wire.uuid import ZERO_UUID, Uuid

ID = Uuid(bytes(15) + b"\x01")
OTHER = Uuid(bytes(15) + b"\x02")

REMEDIES = {
    "OFFSET_NOT_AVAILABLE": Remedy.RETRY,
    "UNKNOWN_LEADER_EPOCH": Remedy.RETRY,
    "FENCED_LEADER_EPOCH": Remedy.REFRESH,
    "NOT_LEADER_OR_FOLLOWER": Remedy.REFRESH,
    "LEADER_NOT_AVAILABLE": Remedy.REFRESH,
    "REPLICA_NOT_AVAILABLE": Remedy.REFRESH,
    "KAFKA_STORAGE_ERROR": Remedy.REFRESH,
    "UNKNOWN_TOPIC_OR_PARTITION": Remedy.REFRESH,
    "UNKNOWN_TOPIC_ID": Remedy.REFRESH,
    "INCONSISTENT_TOPIC_ID": Remedy.REFRESH,
    "TOPIC_AUTHORIZATION_FAILED": Remedy.FAIL,
    "CORRUPT_MESSAGE": Remedy.FAIL,
    "UNKNOWN_SERVER_ERROR": Remedy.FAIL,
    "UNSUPPORTED_COMPRESSION_TYPE": Remedy.FAIL,
}


@pytest.mark.parametrize("name", REMEDIES)
def test_remedies(name: str) -> None:
    assert fetch_remedy(error_of_code(code_of(name), "")) is REMEDIES[name]


def test_only_errors_that_kafka_calls_retriable_are_tried_again() -> None:
    for code, known in ERRORS.items():
        if fetch_remedy(error_of_code(code, "")) is not Remedy.FAIL:
            assert known.retriable, known.name
    assert fetch_remedy(error_of_code(12345, "")) is Remedy.FAIL


def test_another_position_mends_an_offset_that_the_log_lacks() -> None:
    for code, known in ERRORS.items():
        error = error_of_code(code, "")
        assert is_out_of_range(error) == (known.name == "OFFSET_OUT_OF_RANGE")
    assert not is_out_of_range(BrokerConnectionError("lost"))
    assert fetch_remedy(BrokerConnectionError("lost")) is Remedy.REFRESH


def test_a_request_without_a_session() -> None:
    request = fetch_request(
        without_session(
            {
                ("t", 0): RequestedPartition(ID, 5, 400),
                ("u", 1): RequestedPartition(ZERO_UUID, 6, 400),
                ("t", 2): RequestedPartition(ID, 7, 400, leader_epoch=3),
            }
        ),
        max_bytes=1000,
        min_bytes=1,
        max_wait_ms=50,
        read_committed=True,
    )
    assert (request.session_id, request.session_epoch) == (0, -1)
    assert (request.max_bytes, request.min_bytes, request.max_wait_ms) == (1000, 1, 50)
    assert request.isolation_level == 1
    fetch = [
        (topic.topic, topic.topic_id, part.partition, part.fetch_offset, part.partition_max_bytes)
        for topic in request.topics
        for part in topic.partitions
    ]
    assert fetch == [("t", ID, 0, 5, 400), ("t", ID, 2, 7, 400), ("u", ZERO_UUID, 1, 6, 400)]
    assert [part.current_leader_epoch for part in request.topics[0].partitions] == [-1, 3]
    for version in range(4, 19):
        assert request.size(version) > 0


def test_a_request_of_a_session_names_what_it_shall_forget() -> None:
    to_forget = [ForgottenPartition("t", ID, 1), ForgottenPartition("u", OTHER, 0)]
    to_forget.append(ForgottenPartition("t", ID, 4))
    request = fetch_request(
        SessionFetch(7, 3, {}, to_forget),
        max_bytes=1000,
        min_bytes=1,
        max_wait_ms=50,
        read_committed=False,
    )
    assert (request.session_id, request.session_epoch, request.topics) == (7, 3, [])
    told = [(each.topic, each.topic_id, each.partitions) for each in request.forgotten_topics_data]
    assert told == [("t", ID, [1, 4]), ("u", OTHER, [0])]


def test_a_request_that_closes_a_session() -> None:
    request = closing_request(7)
    assert (request.session_id, request.session_epoch, request.max_wait_ms) == (7, -1, 0)


def test_without_an_id_a_topic_can_be_named_only() -> None:
    session = FetchSession()
    highest = []
    session.update(("t", 0), RequestedPartition(ID, 0, 100))
    highest.append(session.highest_version)
    session.update(("u", 0), RequestedPartition(ZERO_UUID, 0, 100))
    session.update(("v", 0), RequestedPartition(ZERO_UUID, 0, 100))
    session.update(("u", 0), None)
    assert session.topic_names == {ID: "t"}
    highest.append(session.highest_version)
    session.update(("v", 0), RequestedPartition(OTHER, 0, 100))
    assert session.topic_names == {ID: "t", OTHER: "v"}
    assert [*highest, session.highest_version] == [None, 12, None]


def test_partitions_of_a_response_by_name_or_id() -> None:
    def of(topic: str, topic_id: Uuid, partition: int) -> FetchableTopicResponse:
        part = PartitionData(partition_index=partition)
        return FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=[part])

    stranger = Uuid(bytes(15) + b"\x02")
    response = FetchResponse(
        responses=[of("", ID, 1), of("u", ZERO_UUID, 2), of("", stranger, 3), of("", ZERO_UUID, 4)]
    )
    places = [place for place, _ in fetched_partitions(response, {ID: "t"})]
    assert places == [("t", 1), ("u", 2)]


@pytest.mark.parametrize(
    ("partition", "count", "frame", "room"),
    [(1000, 1, 10_000, 1000), (1000, 3, 10_000, 3000), (1000, 9, 10_000, 5000), (10, 1, 1, 1)],
)
def test_room_for_a_response(partition: int, count: int, frame: int, room: int) -> None:
    assert response_bytes(partition, count, frame) == room
