"""Tests what consumers, admin clients and groups see of transactions, through the handlers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.broker import Acl, BrokerSettings
from kproto.broker.authorizer import Operation, ResourceType
from kproto.broker.cluster_state import ClusterState
from kproto.broker.context import Context, Principal
from kproto.broker.coordinators import CoordinatorType
from kproto.broker.groups.group_coordinator import OFFSETS_TOPIC
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.listeners import Endpoint
from kproto.broker.registry import DelayedResponse, by_key
from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.list_transactions_request import ListTransactionsRequest
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kproto.records.memory_records import read_batches
from kproto.testing.clock import ManualClock
from tests.support.batches import TIMESTAMP

from .transaction_driver import Play, Producer, name_of

APIS = by_key(KAFKA_APIS)


def started(play: Play, transactional_id: str = "tx") -> Producer:
    producer = Producer(play, transactional_id)
    assert producer.init() == "NONE"
    return producer


def aborted(found: Any) -> list[tuple[int, int]]:
    return [(it.producer_id, it.first_offset) for it in found.aborted_transactions]


# Fetch


def test_read_committed_fetch_ends_at_the_last_stable_offset() -> None:
    play = Play()
    first, second = started(play, "a"), started(play, "b")
    first.produce("t", 0, "a0", "a1")
    second.produce("t", 0, "b0")
    first.produce("t", 0, "a2")
    first.end()
    found = play.fetch("t", 0, committed=True)
    assert (found.last_stable_offset, found.high_watermark) == (2, 5)
    assert [batch.base_offset for batch in read_batches(found.records)] == [0]
    assert play.fetch("t", 0, committed=True, offset=2).records == b""
    second.end()
    found = play.fetch("t", 0, committed=True, offset=2)
    assert (found.last_stable_offset, found.high_watermark) == (6, 6)
    assert [batch.base_offset for batch in read_batches(found.records)] == [2, 3, 4, 5]


def test_read_committed_fetch_lists_the_aborted_transactions_of_its_records() -> None:
    play = Play()
    producer = started(play)
    for number in range(3):
        producer.produce("t", 0, f"aborted {number}")
        producer.end(commit=False)
        producer.produce("t", 0, f"committed {number}")
        producer.end()
    assert aborted(play.fetch("t", 0, committed=True)) == [(0, 0), (0, 4), (0, 8)]
    assert aborted(play.fetch("t", 0, committed=True, offset=1)) == [(0, 0), (0, 4), (0, 8)]
    assert aborted(play.fetch("t", 0, committed=True, offset=2)) == [(0, 4), (0, 8)]
    assert aborted(play.fetch("t", 0, committed=True, offset=10)) == []
    assert aborted(play.fetch("t", 0, committed=True, offset=12)) == [], "there are no records"
    assert play.fetch("t", 0, committed=False).aborted_transactions is None
    assert play.read("t") == [f"committed {number}" for number in range(3)]


def test_aborted_transactions_before_the_log_start_offset_are_forgotten() -> None:
    play = Play()
    producer = started(play)
    for number in range(2):
        producer.produce("t", 0, f"{number}")
        producer.end(commit=False)
    play.partition("t").log.delete_before(2)
    assert aborted(play.fetch("t", 0, committed=True, offset=2)) == [(0, 2)]
    states = play.partition("t").producer_states
    assert [each.first_offset for each in states.aborted_transactions(0, 4)] == [2]


def delayed_fetch(play: Play, *, offset: int = 0, min_bytes: int = 1) -> tuple[Any, Context]:
    wanted = FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=min_bytes,
        isolation_level=1,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )
    leader = play.partition("t").leader_and_isr.leader
    endpoint = Endpoint(leader, "localhost", 9090 + leader)
    context = Context(play.state, play.settings, endpoint, {}, play.clock)
    return APIS[FetchRequest.API_KEY].handle(context, request, 12), context


@pytest.mark.parametrize("commit", [True, False])
def test_delayed_fetch_is_answered_when_the_marker_is_written(*, commit: bool) -> None:
    play = Play()
    producer = started(play)
    producer.produce("t", 0, "a")
    wait, _ = delayed_fetch(play)
    assert isinstance(wait, DelayedResponse)
    assert wait.watched == [play.partition("t").log]
    notified: list[bool] = []
    play.partition("t").log.watchers.add(lambda: notified.append(True))
    producer.produce("t", 0, "b")
    assert notified
    assert wait.try_complete(False) is wait, "the transaction is still open"
    notified.clear()
    producer.end(commit=commit)
    assert notified
    answer: Any = wait.try_complete(False)
    ((found,),) = (it.partitions for it in answer.responses)
    assert [batch.base_offset for batch in read_batches(found.records)] == [0, 1, 2]
    assert aborted(found) == ([] if commit else [(0, 0)])


def test_bytes_of_an_open_transaction_do_not_count_for_min_bytes() -> None:
    play = Play()
    producer = started(play)
    producer.produce("t", 0, "a")
    producer.end()
    producer.produce("t", 0, "x" * 1000)
    wait, _ = delayed_fetch(play, min_bytes=1000)
    assert isinstance(wait, DelayedResponse)
    answer: Any = wait.try_complete(True)
    ((found,),) = (it.partitions for it in answer.responses)
    assert [batch.base_offset for batch in read_batches(found.records)] == [0, 1]


# ListOffsets


def test_read_committed_list_offsets_ends_at_the_last_stable_offset() -> None:
    play = Play()
    producer = started(play)
    producer.produce("t", 0, "a")
    assert (play.latest("t"), play.latest("t", committed=False)) == (0, 1)
    producer.end(commit=False)
    assert (play.latest("t"), play.latest("t", committed=False)) == (2, 2)


# Offsets of groups


def test_group_of_an_open_transaction_is_unstable() -> None:
    play = Play()
    producer = started(play)
    assert play.offsets() == {}
    assert producer.commit_offset(5) == "NONE"
    partition = play.state.group_coordinator.partition("g")
    assert partition is not None
    assert play.described()[1] == {(OFFSETS_TOPIC, partition.index)}
    assert play.offsets() == play.offsets(require_stable=True) == {}, "nothing is committed yet"
    producer.end()
    assert play.offsets(require_stable=True) == {"t-0": 5}
    producer.commit_offset(6)
    producer.commit_offset(9, "t", 1)
    assert play.offsets() == {"t-0": 5}
    assert play.offsets(require_stable=True) == {"t-0": "UNSTABLE_OFFSET_COMMIT"}
    producer.end(commit=False)
    assert play.offsets(require_stable=True) == {"t-0": 5}


@pytest.mark.parametrize("end", [None, True, False])
@pytest.mark.parametrize("ends_after_reload", [True, False])
def test_offsets_survive_a_reload_of_the_group_coordinator(
    end: bool | None, *, ends_after_reload: bool
) -> None:
    play = Play()
    producer = started(play)
    producer.commit_offset(3)
    producer.end()
    producer.commit_offset(5)
    if end is not None and not ends_after_reload:
        producer.end(commit=end)
    partition = play.state.group_coordinator.partition("g")
    assert partition is not None
    node = partition.leader_and_isr.leader % 3 + 1
    play.state.move_leader(OFFSETS_TOPIC, partition.index, node)
    if end is None or ends_after_reload:
        assert play.offsets() == {"t-0": 3}
        assert play.offsets(require_stable=True) == {"t-0": "UNSTABLE_OFFSET_COMMIT"}
    if end is not None and ends_after_reload:
        producer.end(commit=end)
    if end is not None:
        assert play.offsets(require_stable=True) == {"t-0": 5 if end else 3}


def test_marker_is_read_by_a_group_coordinator_that_loads_later() -> None:
    play = Play()
    producer = started(play)
    producer.commit_offset(5)
    partition = play.state.group_coordinator.partition("g")
    assert partition is not None
    play.state.move_leader(OFFSETS_TOPIC, partition.index, partition.leader_and_isr.leader % 3 + 1)
    producer.end()
    assert play.offsets(require_stable=True) == {"t-0": 5}


def delete_offset(play: Play) -> None:
    topic = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition()])
    request = OffsetDeleteRequest(group_id="g", topics=[topic])
    answer = play.send(request, 0, play.state.coordinator(CoordinatorType.GROUP, "g"))
    assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, 0)


def delete_group(play: Play) -> None:
    request = DeleteGroupsRequest(groups_names=["g"])
    answer = play.send(request, 2, play.state.coordinator(CoordinatorType.GROUP, "g"))
    assert answer.results[0].error_code == 0


def delete_topic(play: Play) -> None:
    play.state.delete_topic(play.state.topics.named("t"), play.now)
    play.state.topics.add(play.state.plan_topic("t", 2))


@pytest.mark.parametrize("delete", [delete_offset, delete_group, delete_topic])
@pytest.mark.parametrize("reloads", [True, False])
@pytest.mark.parametrize("is_committed_before", [True, False])
def test_deletion_drops_pending_offsets(
    delete: Any, *, reloads: bool, is_committed_before: bool
) -> None:
    play = Play()
    producer = started(play)
    if is_committed_before:
        producer.commit_offset(3)
        producer.end()
    producer.commit_offset(5)
    delete(play)
    partition = play.state.group_coordinator.partition("g")
    assert partition is not None
    producer.end()
    if reloads:
        node = partition.leader_and_isr.leader % 3 + 1
        play.state.move_leader(OFFSETS_TOPIC, partition.index, node)
    assert play.offsets() == {}


async def test_group_with_pending_offsets_does_not_expire() -> None:
    play = Play(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000)
    producer = started(play)
    producer.init(timeout_ms=900_000)
    producer.commit_offset(5)
    await play.wait(600_000)
    assert play.offsets() == {}
    producer.end()
    assert play.offsets() == {}, "the offset expired a minute after its commit"
    producer.commit_offset(6)
    producer.end()
    assert play.offsets() == {"t-0": 6}


@pytest.mark.parametrize("commit", [True, False])
def test_transaction_with_offsets_of_two_groups(*, commit: bool) -> None:
    play = Play()
    producer = started(play)
    for group in ("g", "h", "i"):
        assert producer.commit_offset(5, group=group) == "NONE"
    producer.end(commit=commit)
    expected = {"t-0": 5} if commit else {}
    assert [play.offsets(group, require_stable=True) for group in "ghi"] == [expected] * 3


# Administration


def producers(play: Play, topic: str, node: int, *indexes: int) -> list[Any]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=indexes)])
    (found,) = play.send(request, 0, node).topics
    return list(found.partitions)


def test_describe_producers_needs_the_leader() -> None:
    play = Play()
    producer = started(play)
    producer.produce("s", 1, "a")
    leader, other = producers(play, "s", 2, 1)[0], producers(play, "s", 1, 1)[0]
    assert [it.producer_id for it in leader.active_producers] == [0]
    assert (name_of(other.error_code), other.active_producers) == ("NOT_LEADER_OR_FOLLOWER", [])
    assert "is led by broker 2" in other.error_message


async def test_describe_producers_omits_expired_producers() -> None:
    play = Play(producer_id_expiration_ms=1000)
    first, second = started(play, "a"), started(play, "b")
    first.produce("s", 0, "a")
    first.end()
    second.produce("s", 0, "b")
    await play.wait(1000)
    (found,) = producers(play, "s", 1, 0)
    assert [(it.producer_id, it.current_txn_start_offset) for it in found.active_producers] == [
        (1, 2)
    ], "an ongoing transaction keeps its producer"


def listed(play: Play, **filters: Any) -> set[str]:
    """Returns the union of the transactional ids that each node lists."""
    found: list[str] = []
    for node in (1, 2, 3):
        answer = play.send(ListTransactionsRequest(**filters), 2, node)
        found += [it.transactional_id for it in answer.transaction_states]
    assert len(found) == len(set(found)), "an id has one coordinator"
    return set(found)


async def test_list_transactions_filters_by_all_criteria() -> None:
    play = Play()
    names = [f"tx-{number}" for number in range(8)]
    by_name = {name: started(play, name) for name in names}
    by_name["tx-1"].produce("t", 0, "a")
    await play.wait(1000)
    by_name["tx-2"].produce("t", 0, "b")
    by_name["tx-3"].produce("t", 0, "c")
    by_name["tx-3"].end()
    assert listed(play) == set(names)
    assert listed(play, state_filters=["Ongoing"]) == {"tx-1", "tx-2"}
    assert listed(play, state_filters=["Ongoing"], duration_filter=999) == {"tx-1"}
    assert listed(play, state_filters=["Ongoing"], duration_filter=1000) == set()
    assert listed(play, producer_id_filters=[2, 3, 99]) == {"tx-2", "tx-3"}
    assert listed(play, producer_id_filters=[2, 3], state_filters=["Ongoing"]) == {"tx-2"}
    assert listed(play, transactional_id_pattern="tx-[12]") == {"tx-1", "tx-2"}
    assert listed(play, transactional_id_pattern="tx") == set()
    assert listed(play, state_filters=["CompleteCommit", "nonsense"]) == {"tx-3"}


async def test_list_transactions_handles_timeouts() -> None:
    play = Play()
    producer = started(play)
    producer.init(timeout_ms=1000)
    producer.produce("t", 0, "a")
    await play.wait(1001)
    assert listed(play, state_filters=["Ongoing"]) == set()
    assert listed(play, state_filters=["CompleteAbort"]) == {"tx"}


def test_admin_client_aborts_a_hanging_transaction() -> None:
    """A partition has an open transaction that no coordinator knows (KIP-664)."""
    play = Play()
    producer = started(play)
    producer.produce("s", 0, "a")
    play.state.delete_topic(play.state.topics.named("__transaction_state"), play.now)
    assert play.latest("s") == 0
    (found,) = producers(play, "s", 1, 0)
    (hanging,) = found.active_producers
    marker = WritableTxnMarker(
        producer_id=hanging.producer_id,
        producer_epoch=hanging.producer_epoch,
        transaction_result=False,
        coordinator_epoch=hanging.coordinator_epoch,
        topics=[WritableTxnMarkerTopic(name="s", partition_indexes=[0])],
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    other = play.send(request, 1, 2).markers[0].topics[0].partitions[0]
    assert name_of(other.error_code) == "NOT_LEADER_OR_FOLLOWER"
    answer = play.send(request, 1, 1).markers[0].topics[0].partitions[0]
    assert name_of(answer.error_code) == "NONE"
    assert (play.latest("s"), play.read("s")) == (2, [])


def test_marker_of_an_admin_client_ends_pending_offsets() -> None:
    play = Play()
    producer = started(play)
    producer.commit_offset(5)
    partition = play.state.group_coordinator.partition("g")
    assert partition is not None
    marker = WritableTxnMarker(
        producer_id=0,
        producer_epoch=0,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name=OFFSETS_TOPIC, partition_indexes=[partition.index])],
    )
    play.send(WriteTxnMarkersRequest(markers=[marker]), 1, partition.leader_and_isr.leader)
    assert play.offsets(require_stable=True) == {"t-0": 5}


# AddPartitionsToTxn from brokers


def test_add_partitions_for_several_transactions() -> None:
    play = Play()
    ours, other = started(play, "a"), started(play, "b")
    node = play.find("a")
    transactions = [
        AddPartitionsToTxnTransaction(
            transactional_id=it.transactional_id,
            producer_id=it.producer_id,
            producer_epoch=it.epoch,
            topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
        )
        for it in (ours, other)
    ]
    answer = play.send(AddPartitionsToTxnRequest(transactions=transactions), 5, node)
    found = {
        it.transactional_id: name_of(
            it.topic_results[0].results_by_partition[0].partition_error_code
        )
        for it in answer.results_by_transaction
    }
    expected = "NONE" if play.find("b") == node else "NOT_COORDINATOR"
    assert found == {"a": "NONE", "b": expected}


def test_request_without_transactions_has_no_response() -> None:
    assert Play().send(AddPartitionsToTxnRequest(), 5, 1) is None


# ACLs


def rows() -> Iterator[Any]:
    write = (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx")
    yield pytest.param([write], {"TX"}, id="id")
    yield pytest.param(
        [(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "tx")], {"TX"}, id="see"
    )
    yield pytest.param([(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "ty")], {"TY"}, id="other")
    yield pytest.param([(Operation.WRITE, ResourceType.TOPIC, "t")], set(), id="topic")


@pytest.mark.parametrize(("granted", "expected"), list(rows()))
def test_list_transactions_hides_ids(granted: list[Any], expected: set[str]) -> None:
    """An ACL that allows WRITE on a transactional id also allows DESCRIBE."""
    acls = tuple(Acl("User:alice", *each) for each in granted)
    settings = BrokerSettings(authorizer=True, acls=acls, super_users=("User:admin",))
    cluster = ClusterState(settings)
    endpoint = Endpoint(1, "localhost", 9091)
    cluster.register_endpoint(endpoint)
    clock = ManualClock(TIMESTAMP)
    context = Context(
        cluster, settings, endpoint, {}, clock, host="h", principal=Principal("User", "alice")
    )
    for transactional_id in ("tx", "ty"):
        cluster.coordinator(CoordinatorType.TRANSACTION, transactional_id)
        cluster.transaction_coordinator.init_producer_id(transactional_id, 1, None, context.now)
    answer: Any = APIS[66].handle(context, ListTransactionsRequest(), 2)
    assert {it.transactional_id.upper() for it in answer.transaction_states} == expected


def test_add_partitions_refuses_internal_topics() -> None:
    play = Play()
    producer = started(play)
    producer.add_offsets()
    assert producer.add((OFFSETS_TOPIC, 0), ("t", 0)) == (
        "TOPIC_AUTHORIZATION_FAILED OPERATION_NOT_ATTEMPTED"
    )
