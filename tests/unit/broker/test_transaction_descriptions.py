"""Tests the APIs that describe transactions in each version, over a socket (KIP-664, KIP-994)."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kproto.messages.describe_transactions_request import DescribeTransactionsRequest
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.list_transactions_request import ListTransactionsRequest
from kproto.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection
from tests.unit.broker.raw_transactions import add, end, error, init, produce


@pytest.fixture(autouse=True)
def _topics(broker: ThreadedBroker, connection: RawConnection) -> None:
    """Creates topics t and u of two partitions, and the coordinator of tx."""
    broker.call(lambda it: (it.create_topic("t", partitions=2), it.create_topic("u", partitions=2)))
    connection.exchange(FindCoordinatorRequest(key="tx", key_type=1), 1)


def test_describe_producers(broker: ThreadedBroker, connection: RawConnection) -> None:
    init(connection)
    produce(broker, connection)
    wanted = [
        TopicRequest(name="t", partition_indexes=[0, 1, 2]),
        TopicRequest(name="v", partition_indexes=[0]),
    ]
    answer = connection.exchange(DescribeProducersRequest(topics=wanted), 0)
    found: dict[str, Any] = {
        f"{topic.name}-{it.partition_index}": error(it) if it.error_code else it.active_producers
        for topic in answer.topics
        for it in topic.partitions
    }
    missing = "UNKNOWN_TOPIC_OR_PARTITION"
    assert (found["t-1"], found["t-2"], found["v-0"]) == ([], missing, missing)
    (producer,) = found["t-0"]
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (0, 0, 0)
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, 0)
    end(connection, 5)
    answer = connection.exchange(DescribeProducersRequest(topics=wanted[:1]), 0)
    (producer,) = answer.topics[0].partitions[0].active_producers
    assert (producer.producer_epoch, producer.last_sequence) == (1, -1)
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (0, -1)


def test_describe_transactions(connection: RawConnection) -> None:
    request = DescribeTransactionsRequest(transactional_ids=["tx", "", "other"])
    found: Any = connection.exchange(request, 0).transaction_states
    assert [(it.transactional_id, error(it)) for it in found] == [
        ("tx", "TRANSACTIONAL_ID_NOT_FOUND"),
        ("", "INVALID_REQUEST"),
        ("other", "TRANSACTIONAL_ID_NOT_FOUND"),
    ]
    init(connection)
    add(connection, 3, ("u", 1), ("t", 1), ("t", 0))
    found = connection.exchange(request, 0).transaction_states[0]
    assert (error(found), found.transaction_state) == ("NONE", "Ongoing")
    assert (found.producer_id, found.producer_epoch, found.transaction_timeout_ms) == (0, 0, 60_000)
    assert found.transaction_start_time_ms > 0
    assert [(it.topic, it.partitions) for it in found.topics] == [("t", [0, 1]), ("u", [1])]


@pytest.mark.parametrize("version", ListTransactionsRequest.VALID_VERSIONS)
def test_list_transactions(connection: RawConnection, version: int) -> None:
    for transactional_id in ("tx", "other"):
        init(connection, 5, transactional_id)
    add(connection, 3, ("t", 0))

    def listed(**filters: Any) -> list[tuple[str, int, str]]:
        answer = connection.exchange(ListTransactionsRequest(**filters), version)
        assert error(answer) == "NONE"
        return sorted(
            (it.transactional_id, it.producer_id, it.transaction_state)
            for it in answer.transaction_states
        )

    other, ours = ("other", 1, "Empty"), ("tx", 0, "Ongoing")
    assert listed() == [other, ours]
    assert listed(state_filters=["Ongoing"]) == [ours]
    assert listed(state_filters=["Ongoing", "Empty"]) == [other, ours]
    assert listed(producer_id_filters=[1, 5]) == [other]
    assert listed(producer_id_filters=[1], state_filters=["Ongoing"]) == []
    answer = connection.exchange(ListTransactionsRequest(state_filters=["x", "Dead"]), version)
    assert (answer.unknown_state_filters, answer.transaction_states) == (["x"], [])
    if version >= 1:
        assert listed(duration_filter=0, state_filters=["Ongoing"]) in ([], [ours])
        assert listed(duration_filter=3_600_000, state_filters=["Ongoing"]) == []
    if version >= 2:
        assert listed(transactional_id_pattern="t.") == [ours]
        assert listed(transactional_id_pattern="t") == [], "the pattern matches the whole id"
        assert listed(transactional_id_pattern="") == [other, ours]
        assert listed(transactional_id_pattern=r"\pL+") == [other, ours], "RE2 has \\pL"
        for pattern in ("(", "(?=t)tx", r"(t)\1", "t++x"):
            broken = ListTransactionsRequest(transactional_id_pattern=pattern)
            assert error(connection.exchange(broken, version)) == "INVALID_REGULAR_EXPRESSION"


@pytest.mark.parametrize("version", ApiVersionsRequest.VALID_VERSIONS)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_api_versions_has_the_transaction_version(version: int, level: int) -> None:
    with (
        threaded_broker(BrokerSettings(transaction_version=level)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
        answer = connection.exchange(request, version)
    supported = [(it.name, it.min_version, it.max_version) for it in answer.supported_features]
    finalized = [
        (it.name, it.min_version_level, it.max_version_level) for it in answer.finalized_features
    ]
    has_features = version >= 3
    assert (("transaction.version", level, level) in finalized) == (level > 0 and has_features)
    assert (answer.finalized_features_epoch >= 0) is has_features
    assert (("transaction.version", 0, 2) in supported) == (version >= 4)
    assert (("metadata.version", 7, 33) in supported) == has_features


@pytest.mark.parametrize(("release", "count"), [("3.9.2", 0), ("4.0", 1), ("4.4", 5)])
def test_features_are_those_of_the_release(release: str, count: int) -> None:
    with (
        threaded_broker(BrokerSettings(release=release)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
        assert len(connection.exchange(request, 3).finalized_features) == count


def test_streams_groups_are_neither_served_nor_a_feature() -> None:
    with threaded_broker() as broker, RawConnection(broker.bootstrap) as connection:
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
        answer = connection.exchange(request, 4)
        names = {it.name for it in [*answer.supported_features, *answer.finalized_features]}
        keys = {it.api_key for it in answer.api_keys}
        assert "share.version" in names
        assert ("streams.version" in names, StreamsGroupHeartbeatRequest.API_KEY in keys) == (
            False,
            False,
        )
