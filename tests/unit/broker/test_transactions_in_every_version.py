"""Tests the APIs of transactions in each version over a socket: requests and responses."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
)
from kproto.messages.describe_transactions_request import DescribeTransactionsRequest
from kproto.messages.end_txn_request import EndTxnRequest
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.embedded import UNKNOWN_TOPIC_ID, ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection
from tests.unit.broker.raw_transactions import add, end, error, init, produce, state


@pytest.fixture(autouse=True)
def _topics(broker: ThreadedBroker, connection: RawConnection) -> None:
    """Creates topics t and u of two partitions, and the coordinators of tx and group g."""
    broker.call(lambda it: (it.create_topic("t", partitions=2), it.create_topic("u", partitions=2)))
    connection.exchange(FindCoordinatorRequest(key="g"), 0)
    connection.exchange(FindCoordinatorRequest(key="tx", key_type=1), 1)


# Producer ids


@pytest.mark.parametrize("version", range(7))
def test_init_producer_id(version: int) -> None:
    with (
        threaded_broker(BrokerSettings(unstable_versions=True)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        assert init(connection, version)[0] == "NOT_COORDINATOR", "the topic does not exist yet"
        connection.exchange(FindCoordinatorRequest(key="tx", key_type=1), 1)
        assert init(connection, version) == ("NONE", 0, 0)
        assert init(connection, version) == ("NONE", 0, 1), "the first producer is fenced"
        assert init(connection, version, None) == ("NONE", 1, 0), "without a transactional id"
        assert init(connection, version, "") == ("INVALID_REQUEST", -1, -1)
        for timeout_ms in (0, 900_001):
            found = init(connection, version, transaction_timeout_ms=timeout_ms)
            assert found == ("INVALID_TRANSACTION_TIMEOUT", -1, -1)
        fenced = "PRODUCER_FENCED" if version >= 4 else "INVALID_PRODUCER_EPOCH"
        if version >= 3:
            assert init(connection, version, producer_id=0, producer_epoch=1) == ("NONE", 0, 2)
            assert init(connection, version, producer_id=0, producer_epoch=1) == ("NONE", 0, 2), (
                "the response may have been lost"
            )
            assert init(connection, version, producer_id=0, producer_epoch=0) == (fenced, -1, -1)
            assert init(connection, version, producer_id=9, producer_epoch=2) == (fenced, -1, -1)
            assert init(connection, version, producer_id=0)[0] == "INVALID_REQUEST"
            assert init(connection, version, producer_epoch=2)[0] == "INVALID_REQUEST"
        if version >= 6:
            denied = ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", -1, -1)
            assert init(connection, version, enable_2pc=True) == denied
            unsupported = ("UNSUPPORTED_VERSION", -1, -1)
            assert init(connection, version, keep_prepared_txn=True) == unsupported


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id_aborts_an_ongoing_transaction(
    connection: RawConnection, version: int
) -> None:
    init(connection)
    add(connection, 3, ("t", 0))
    assert init(connection, version) == ("CONCURRENT_TRANSACTIONS", -1, -1)
    assert state(connection) == "CompleteAbort"
    assert init(connection, version) == ("NONE", 0, 2)


@pytest.mark.parametrize("version", range(1, 7))
def test_find_coordinator(connection: RawConnection, version: int) -> None:
    keys: dict[str, Any] = {"coordinator_keys": ["tx"]} if version >= 4 else {"key": "tx"}
    answer: Any = connection.exchange(FindCoordinatorRequest(key_type=1, **keys), version)
    found = answer.coordinators[0] if version >= 4 else answer
    assert (error(found), found.node_id) == ("NONE", 1)


# Partitions


@pytest.mark.parametrize("version", AddPartitionsToTxnRequest.VALID_VERSIONS)
def test_add_partitions_to_txn(connection: RawConnection, version: int) -> None:
    init(connection)
    assert add(connection, version, ("t", 0), ("u", 1)) == {"t-0": "NONE", "u-1": "NONE"}
    assert add(connection, version, ("t", 0)) == {"t-0": "NONE"}
    assert add(connection, version, ("t", 2), ("t", 1), ("v", 0)) == {
        "t-2": "UNKNOWN_TOPIC_OR_PARTITION",
        "t-1": "OPERATION_NOT_ATTEMPTED",
        "v-0": "UNKNOWN_TOPIC_OR_PARTITION",
    }
    fenced = "PRODUCER_FENCED" if version >= 2 else "INVALID_PRODUCER_EPOCH"
    assert add(connection, version, ("t", 0), epoch=1) == {"t-0": fenced}
    assert add(connection, version, ("t", 0), producer_id=5) == {
        "t-0": "INVALID_PRODUCER_ID_MAPPING"
    }
    unknown = add(connection, version, ("t", 0), transactional_id="other")
    assert unknown == {"t-0": "INVALID_PRODUCER_ID_MAPPING"}
    empty = add(connection, version, ("t", 0), transactional_id="")
    assert empty == {"t-0": "INVALID_REQUEST"}
    (found,) = connection.exchange(
        DescribeTransactionsRequest(transactional_ids=["tx"]), 0
    ).transaction_states
    assert [(it.topic, it.partitions) for it in found.topics] == [("t", [0]), ("u", [1])]


@pytest.mark.parametrize("version", [4, 5])
def test_add_partitions_to_txn_verifies_for_brokers(
    connection: RawConnection, version: int
) -> None:
    init(connection)
    add(connection, 3, ("t", 0))
    verified = add(connection, version, ("t", 0), ("t", 1), verify_only=True)
    assert verified == {"t-0": "NONE", "t-1": "TRANSACTION_ABORTABLE"}
    fenced = add(connection, version, ("t", 0), epoch=7, verify_only=True)
    assert fenced == {"t-0": "PRODUCER_FENCED"}
    mapping = add(connection, version, ("t", 0), transactional_id="other", verify_only=True)
    assert mapping == {"t-0": "INVALID_PRODUCER_ID_MAPPING"}


@pytest.mark.parametrize("version", range(3, 12))
def test_produce_verifies_the_partition(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    init(connection)
    assert produce(broker, connection, version) == (
        "TRANSACTION_ABORTABLE" if version >= 11 else "INVALID_TXN_STATE"
    )
    add(connection, 3, ("t", 0))
    assert produce(broker, connection, version) == "NONE"
    assert produce(broker, connection, version, sequence=1) == "NONE"
    denied = produce(broker, connection, version, sequence=2, transactional_id=None)
    assert denied == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    assert produce(broker, connection, version, sequence=2, is_transactional=False) == (
        "INVALID_TXN_STATE"
    )
    assert produce(broker, connection, version, epoch=1) == "INVALID_PRODUCER_EPOCH"


@pytest.mark.parametrize("version", [12, 13])
def test_produce_adds_the_partition(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    init(connection)
    assert produce(broker, connection, version, epoch=1) == "INVALID_PRODUCER_EPOCH"
    assert produce(broker, connection, version) == "NONE"
    assert produce(broker, connection, version, sequence=1) == "NONE"
    assert state(connection) == "Ongoing"


# Ends


@pytest.mark.parametrize("version", EndTxnRequest.VALID_VERSIONS)
@pytest.mark.parametrize("commit", [True, False])
def test_end_txn(connection: RawConnection, version: int, *, commit: bool) -> None:
    fenced = "PRODUCER_FENCED" if version >= 2 else "INVALID_PRODUCER_EPOCH"
    assert error(end(connection, version)) == "INVALID_PRODUCER_ID_MAPPING"
    init(connection)
    assert error(end(connection, version, committed=True)) == "INVALID_TXN_STATE"
    add(connection, 3, ("t", 0))
    assert error(end(connection, version, 1)) == fenced
    assert error(end(connection, version, producer_id=4)) == "INVALID_PRODUCER_ID_MAPPING"
    assert error(end(connection, version, transactional_id="")) == "INVALID_REQUEST"
    answer = end(connection, version, committed=commit)
    bumped = (0, 1) if version >= 5 else (-1, -1)
    assert (error(answer), answer.producer_id, answer.producer_epoch) == ("NONE", *bumped)
    again = end(connection, version, committed=commit)
    assert (error(again), again.producer_id, again.producer_epoch) == ("NONE", *bumped)
    assert error(end(connection, version, committed=not commit)) == "INVALID_TXN_STATE"
    assert state(connection) == ("CompleteCommit" if commit else "CompleteAbort")


@pytest.mark.parametrize("version", WriteTxnMarkersRequest.VALID_VERSIONS)
def test_write_txn_markers(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    init(connection)
    produce(broker, connection)

    def write(epoch: int, *, coordinator_epoch: int = 0, level: int = 0) -> dict[str, str]:
        marker = WritableTxnMarker(
            producer_id=0,
            producer_epoch=epoch,
            transaction_result=False,
            coordinator_epoch=coordinator_epoch,
            transaction_version=level if version >= 2 else 0,
            topics=[
                WritableTxnMarkerTopic(name="t", partition_indexes=[0, 2]),
                WritableTxnMarkerTopic(name="v", partition_indexes=[0]),
            ],
        )
        (found,) = connection.exchange(WriteTxnMarkersRequest(markers=[marker]), version).markers
        assert found.producer_id == 0
        return {
            f"{topic.name}-{it.partition_index}": error(it)
            for topic in found.topics
            for it in topic.partitions
        }

    missing = {"t-2": "UNKNOWN_TOPIC_OR_PARTITION", "v-0": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert write(-1) == {"t-0": "INVALID_PRODUCER_EPOCH", **missing}
    if version >= 2:
        assert write(0, level=2) == {"t-0": "INVALID_PRODUCER_EPOCH", **missing}
    assert write(0, coordinator_epoch=1) == {"t-0": "NONE", **missing}
    assert write(0) == {"t-0": "TRANSACTION_COORDINATOR_FENCED", **missing}
    assert broker.call(lambda it: it.topics["t"].partitions[0].last_stable_offset) == 2


# Offsets


@pytest.mark.parametrize("version", AddOffsetsToTxnRequest.VALID_VERSIONS)
def test_add_offsets_to_txn(connection: RawConnection, version: int) -> None:
    def ask(**fields: Any) -> str:
        given = {
            "transactional_id": "tx",
            "producer_id": 0,
            "producer_epoch": 0,
            "group_id": "g",
            **fields,
        }
        return error(connection.exchange(AddOffsetsToTxnRequest(**given), version))

    assert ask() == "INVALID_PRODUCER_ID_MAPPING"
    init(connection)
    fenced = "PRODUCER_FENCED" if version >= 2 else "INVALID_PRODUCER_EPOCH"
    assert ask(producer_epoch=1) == fenced
    assert ask(producer_id=3) == "INVALID_PRODUCER_ID_MAPPING"
    assert ask(transactional_id="") == "INVALID_REQUEST"
    assert ask() == "NONE"
    (found,) = connection.exchange(
        DescribeTransactionsRequest(transactional_ids=["tx"]), 0
    ).transaction_states
    assert [it.topic for it in found.topics] == ["__consumer_offsets"]


@pytest.mark.parametrize("version", TxnOffsetCommitRequest.VALID_VERSIONS)
def test_txn_offset_commit(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    ids = {"t": broker.topic_id("t"), "unknown": UNKNOWN_TOPIC_ID}

    def commit(*partitions: tuple[str, int, int], metadata: str = "m", **fields: Any) -> Any:
        topics = []
        for topic, index, offset in partitions:
            committed = TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=metadata
            )
            named: dict[str, Any] = {"name": topic}
            if version >= 6:
                named = {"topic_id": ids[topic]}
            topics.append(TxnOffsetCommitRequestTopic(partitions=[committed], **named))
        given = {
            "transactional_id": "tx",
            "group_id": "g",
            "producer_id": 0,
            "producer_epoch": 0,
            **fields,
        }
        answer = connection.exchange(TxnOffsetCommitRequest(topics=topics, **given), version)
        return [error(it) for topic in answer.topics for it in topic.partitions]

    assert commit(("t", 0, 5)) == ["INVALID_PRODUCER_ID_MAPPING"]
    init(connection)
    if version < 5:
        expected = "TRANSACTION_ABORTABLE" if version >= 4 else "INVALID_TXN_STATE"
        assert commit(("t", 0, 5)) == [expected]
        request = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=0, producer_epoch=0, group_id="g"
        )
        assert error(connection.exchange(request, 3)) == "NONE"
    assert commit(("t", 0, 5), producer_epoch=1) == ["INVALID_PRODUCER_EPOCH"]
    assert commit(("t", 0, 5), group_id="") == ["INVALID_GROUP_ID"]
    missing = "UNKNOWN_TOPIC_ID" if version >= 6 else "UNKNOWN_TOPIC_OR_PARTITION"
    assert commit(("t", 0, 5), ("t", 2, 5), ("unknown", 0, 5)) == [
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        missing,
    ]
    assert commit(("t", 1, 7), metadata="x" * 4097) == ["OFFSET_METADATA_TOO_LARGE"]
    if version >= 3:
        assert commit(("t", 1, 7), generation_id_or_member_epoch=3, member_id="m") == [
            "UNKNOWN_MEMBER_ID"
        ]
    assert offsets(connection, 7) == {}
    assert error(end(connection, 5)) == "NONE"
    assert offsets(connection, 7) == {"t-0": 5}


def offsets(connection: RawConnection, version: int, *, stable: bool = False) -> dict[str, Any]:
    """Returns, for each partition of t, the error or the committed offset.

    Omits partitions that have neither an error nor a committed offset.
    """
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])
    request = OffsetFetchRequest(group_id="g", topics=[topic], require_stable=stable)
    answer = connection.exchange(request, version)
    return {
        f"{topic.name}-{it.partition_index}": error(it) if it.error_code else it.committed_offset
        for topic in answer.topics
        for it in topic.partitions
        if it.error_code or it.committed_offset >= 0
    }


@pytest.mark.parametrize("version", range(7, 11))
def test_offset_fetch_of_stable_offsets(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    init(connection)
    committed = TxnOffsetCommitRequestPartition(committed_offset=5, committed_metadata="m")
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=0,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[committed])],
    )
    connection.exchange(request, 5)

    def fetch(*, stable: bool) -> list[tuple[str, int, str | None]]:
        if version < 8:
            topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
            request = OffsetFetchRequest(group_id="g", topics=[topic], require_stable=stable)
            topics: Any = connection.exchange(request, version).topics
        else:
            named: dict[str, Any] = {"name": "t"}
            if version >= 10:
                named = {"topic_id": broker.topic_id("t")}
            wanted = OffsetFetchRequestTopics(partition_indexes=[0], **named)
            group = OffsetFetchRequestGroup(group_id="g", topics=[wanted])
            request = OffsetFetchRequest(groups=[group], require_stable=stable)
            topics = connection.exchange(request, version).groups[0].topics
        return [
            (error(it), it.committed_offset, it.metadata)
            for topic in topics
            for it in topic.partitions
        ]

    assert fetch(stable=False) == [("NONE", -1, "")]
    assert fetch(stable=True) == [("UNSTABLE_OFFSET_COMMIT", -1, "")]
    end(connection, 5)
    assert fetch(stable=True) == fetch(stable=False) == [("NONE", 5, "m")]


# Consumers


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch_of_committed_records(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    init(connection)
    produce(broker, connection)

    def fetch(isolation_level: int) -> Any:
        named: dict[str, Any] = {"topic": "t"}
        if version >= 13:
            named = {"topic_id": broker.topic_id("t")}
        wanted = FetchPartition(partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            isolation_level=isolation_level,
            topics=[FetchTopic(partitions=[wanted], **named)],
        )
        ((found,),) = (it.partitions for it in connection.exchange(request, version).responses)
        assert error(found) == "NONE"
        return found

    found = fetch(1)
    assert (found.high_watermark, found.last_stable_offset, found.records) == (1, 0, b"")
    assert found.aborted_transactions == []
    found = fetch(0)
    assert (found.high_watermark, found.last_stable_offset) == (1, 0)
    assert found.records
    assert found.aborted_transactions is None
    end(connection, 5, committed=False)
    found = fetch(1)
    assert (found.high_watermark, found.last_stable_offset) == (2, 2)
    assert [(it.producer_id, it.first_offset) for it in found.aborted_transactions] == [(0, 0)]
    assert fetch(0).aborted_transactions is None


@pytest.mark.parametrize("version", range(2, 12))
def test_list_offsets_of_committed_records(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    init(connection)
    produce(broker, connection)

    def latest(isolation_level: int) -> int:
        wanted = ListOffsetsPartition(timestamp=-1)
        request = ListOffsetsRequest(
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name="t", partitions=[wanted])],
        )
        ((found,),) = (it.partitions for it in connection.exchange(request, version).topics)
        assert error(found) == "NONE"
        return int(found.offset)

    assert (latest(0), latest(1)) == (1, 0)
    end(connection, 5)
    assert (latest(0), latest(1)) == (2, 2)
