"""Fetch requests and responses as plain data."""

from __future__ import annotations

import pytest

from kproto.client.cluster import TopicInfo
from kproto.client.fetching import (
    AbortedTransactions,
    FetchAction,
    fetch_action,
    fetch_request,
    fetched_partitions,
    highest_fetch_version,
    response_bytes,
)
from kproto.messages import FetchResponse
from kproto.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    PartitionData,
)
from kproto.protocol.error_codes import ERRORS, code_of
from kproto.records import RecordBatch
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.unit.client.scripted_log import ABORT, COMMIT, batch, marker

ID = Uuid(bytes(15) + b"\x01")

ACTIONS = {
    "OFFSET_OUT_OF_RANGE": FetchAction.RESET,
    "OFFSET_NOT_AVAILABLE": FetchAction.RETRY,
    "UNKNOWN_LEADER_EPOCH": FetchAction.RETRY,
    "FENCED_LEADER_EPOCH": FetchAction.REFRESH,
    "NOT_LEADER_OR_FOLLOWER": FetchAction.REFRESH,
    "LEADER_NOT_AVAILABLE": FetchAction.REFRESH,
    "REPLICA_NOT_AVAILABLE": FetchAction.REFRESH,
    "KAFKA_STORAGE_ERROR": FetchAction.REFRESH,
    "UNKNOWN_TOPIC_OR_PARTITION": FetchAction.REFRESH,
    "UNKNOWN_TOPIC_ID": FetchAction.REFRESH,
    "INCONSISTENT_TOPIC_ID": FetchAction.REFRESH,
    "TOPIC_AUTHORIZATION_FAILED": FetchAction.FAIL,
    "CORRUPT_MESSAGE": FetchAction.FAIL,
    "UNKNOWN_SERVER_ERROR": FetchAction.FAIL,
    "UNSUPPORTED_COMPRESSION_TYPE": FetchAction.FAIL,
}


@pytest.mark.parametrize("name", ACTIONS)
def test_actions(name: str) -> None:
    assert fetch_action(code_of(name)) is ACTIONS[name]


def test_only_errors_that_kafka_calls_retriable_are_tried_again() -> None:
    for code, known in ERRORS.items():
        if fetch_action(code) in {FetchAction.RETRY, FetchAction.REFRESH}:
            assert known.retriable, known.name
    assert fetch_action(12345) is FetchAction.FAIL


def test_a_request_without_a_session() -> None:
    request = fetch_request(
        {("t", 0): 5, ("u", 1): 6, ("t", 2): 7},
        {"t": TopicInfo("t", ID, {}), "u": TopicInfo("u", ZERO_UUID, {})},
        max_bytes=1000,
        partition_bytes=400,
        min_bytes=1,
        max_wait_ms=50,
        read_committed=True,
    )
    assert (request.session_id, request.session_epoch) == (0, -1)
    assert (request.max_bytes, request.min_bytes, request.max_wait_ms) == (1000, 1, 50)
    assert request.isolation_level == 1
    asked = [
        (topic.topic, topic.topic_id, part.partition, part.fetch_offset, part.partition_max_bytes)
        for topic in request.topics
        for part in topic.partitions
    ]
    assert asked == [("t", ID, 0, 5, 400), ("t", ID, 2, 7, 400), ("u", ZERO_UUID, 1, 6, 400)]
    for version in range(4, 19):
        assert request.size(version) > 0


def test_without_an_id_a_topic_can_be_named_only() -> None:
    assert highest_fetch_version([TopicInfo("t", ID, {})]) is None
    assert highest_fetch_version([TopicInfo("t", ID, {}), TopicInfo("u", ZERO_UUID, {})]) == 12


def test_partitions_of_a_response_by_name_or_id() -> None:
    def of(topic: str, topic_id: Uuid, partition: int) -> FetchableTopicResponse:
        part = PartitionData(partition_index=partition)
        return FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=[part])

    stranger = Uuid(bytes(15) + b"\x02")
    response = FetchResponse(
        responses=[of("", ID, 1), of("u", ZERO_UUID, 2), of("", stranger, 3), of("", ZERO_UUID, 4)]
    )
    topics = {"t": TopicInfo("t", ID, {}), "u": TopicInfo("u", ZERO_UUID, {})}
    assert [place for place, _ in fetched_partitions(response, topics)] == [("t", 1), ("u", 2)]


@pytest.mark.parametrize(
    ("partition", "count", "frame", "room"),
    [(1000, 1, 10_000, 1000), (1000, 3, 10_000, 3000), (1000, 9, 10_000, 5000), (10, 1, 1, 1)],
)
def test_room_for_a_response(partition: int, count: int, frame: int, room: int) -> None:
    assert response_bytes(partition, count, frame) == room


# --- Aborted transactions (KIP-98) ---


def of(base_offset: int, producer_id: int, transactional: bool = True) -> RecordBatch:
    data = batch(
        base_offset,
        [b"x"],
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=transactional,
    )
    return RecordBatch(data)


def aborted(*entries: tuple[int, int]) -> AbortedTransactions:
    listed = [AbortedTransaction(producer_id=who, first_offset=at) for who, at in entries]
    return AbortedTransactions(PartitionData(aborted_transactions=listed))


def test_a_transaction_is_hidden_from_its_beginning_to_its_marker() -> None:
    seen = aborted((4, 2))
    assert not seen.hides(of(1, 4)), "an earlier transaction, which was committed"
    assert seen.hides(of(2, 4))
    assert not seen.hides(of(3, 5))
    assert seen.hides(of(4, 4))
    assert not seen.hides(of(4, 4, transactional=False))
    seen.see_marker(RecordBatch(marker(5, ABORT, 4)))
    assert not seen.hides(of(6, 4))


def test_a_commit_marker_ends_nothing() -> None:
    seen = aborted((4, 0))
    seen.see_marker(RecordBatch(marker(1, COMMIT, 5)))
    assert seen.hides(of(2, 4))


def test_two_aborted_transactions_of_one_producer() -> None:
    seen = aborted((4, 6), (4, 0))
    assert seen.hides(of(0, 4))
    seen.see_marker(RecordBatch(marker(3, ABORT, 4)))
    assert not seen.hides(of(4, 4))
    assert seen.hides(of(6, 4))
    seen.see_marker(RecordBatch(marker(7, ABORT, 4)))
    assert not seen.hides(of(8, 4))


def test_a_marker_whose_records_are_gone() -> None:
    """Compaction may have removed the records of the transaction, and only its marker is left."""
    seen = aborted((4, 0))
    seen.see_marker(RecordBatch(marker(5, ABORT, 4)))
    assert not seen.hides(of(6, 4))


def test_no_list_hides_nothing() -> None:
    assert not AbortedTransactions(PartitionData(aborted_transactions=None)).hides(of(0, 4))
