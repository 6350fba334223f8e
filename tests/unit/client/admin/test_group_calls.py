"""Tests the requests and results of admin calls for groups and transactions."""

from __future__ import annotations

import pytest

from kproto import CommittedOffset, Uuid
from kproto.client.admin import (
    AbortTransactionSpec,
    AdminError,
    GroupListing,
    MemberToRemove,
    StreamsTasks,
)
from kproto.client.admin.group_offsets import (
    alter_share_offsets_call,
    delete_offsets_call,
    delete_share_offsets_call,
    lag_of,
    list_offsets_call,
    list_share_offsets_call,
)
from kproto.client.admin.groups import (
    ClassicGroupDescription,
    ClassicMemberDescription,
    ConsumerGroupDescription,
    consumer_of_classic,
    describe_consumer_groups_call,
    listed_groups,
    matching_groups,
    remove_members_call,
)
from kproto.client.admin.streams_groups import describe_streams_groups_call
from kproto.client.admin.transactions import abort_request, aborted, listed_transactions
from kproto.messages import (
    AlterShareGroupOffsetsResponse,
    ConsumerGroupDescribeResponse,
    ConsumerProtocolAssignment,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponse,
    LeaveGroupResponse,
    ListGroupsResponse,
    ListTransactionsResponse,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    StreamsGroupDescribeResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kproto.messages import consumer_group_describe_response as consumer_groups
from kproto.messages import streams_group_describe_response as streams
from kproto.messages.consumer_protocol_assignment import TopicPartition as Assigned
from kproto.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponseTopic
from kproto.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kproto.messages.leave_group_response import MemberResponse
from kproto.messages.list_groups_response import ListedGroup
from kproto.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kproto.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
)
from kproto.protocol.consumer_protocol import encode_assignment
from kproto.wire.errors import BrokerResponseError, ConfigurationError, KprotoError

UNSTABLE = 88
TP = ("a", 0)


def name_of(error: object) -> str:
    assert isinstance(error, BrokerResponseError)
    return error.name


def test_types_of_groups_are_written_as_in_kafkas_java_client() -> None:
    listed = ListedGroup(
        group_id="g", protocol_type="consumer", group_state="Stable", group_type="consumer"
    )
    response = ListGroupsResponse(groups=[listed])
    assert listed_groups(response) == [GroupListing("g", "Consumer", "consumer", "Stable")]
    assert name_of(listed_groups(ListGroupsResponse(error_code=15))) == "COORDINATOR_NOT_AVAILABLE"


def test_a_group_that_two_brokers_list_is_returned_once() -> None:
    one = GroupListing("g", "Classic", "consumer", "Empty")
    two = one._replace(state="Stable")
    other = GroupListing("f", "Classic", "connect", "Empty")
    assert matching_groups([[one, other], [two]], ()) == [other, two]
    assert matching_groups([[one, other], [two]], ["consumer"]) == [two]


def test_a_classic_group_of_another_protocol_type_is_no_group_of_consumers() -> None:
    assignment = encode_assignment(
        ConsumerProtocolAssignment(assigned_partitions=[Assigned(topic="a", partitions=[0, 2])])
    )
    member = ClassicMemberDescription("m", None, "c", "h", b"", assignment)
    odd = ClassicMemberDescription("n", None, "c", "h", b"", b"\xff\xff")
    group = ClassicGroupDescription("g", "consumer", "range", "Stable", (member, odd))
    found = consumer_of_classic(group)
    assert isinstance(found, ConsumerGroupDescription)
    assert [each.assignment for each in found.members] == [(("a", 0), ("a", 2)), ()]
    assert (found.type, found.assignor, found.is_simple) == ("Classic", "range", False)
    simple = consumer_of_classic(ClassicGroupDescription("g", "", "", "Empty", ()))
    assert isinstance(simple, ConsumerGroupDescription)
    assert simple.is_simple
    connect = ClassicGroupDescription("g", "connect", "", "Empty", ())
    assert name_of(consumer_of_classic(connect)) == "INCONSISTENT_GROUP_PROTOCOL"


def test_a_group_of_the_consumer_protocol_has_epochs_and_targets() -> None:
    def assignment(*numbers: int) -> consumer_groups.Assignment:
        return consumer_groups.Assignment(
            topic_partitions=[
                consumer_groups.TopicPartitions(topic_name="a", partitions=list(numbers))
            ]
        )

    member = consumer_groups.Member(
        member_id="m",
        member_epoch=4,
        subscribed_topic_regex="a.*",
        assignment=assignment(0),
        target_assignment=assignment(0, 1),
        member_type=0,
    )
    group = consumer_groups.DescribedGroup(
        group_id="g", group_epoch=5, assignment_epoch=4, assignor_name="uniform", members=[member]
    )
    response = ConsumerGroupDescribeResponse(groups=[group])
    call = describe_consumer_groups_call(operations=False)
    decoded = ConsumerGroupDescribeResponse.decode(response.encode(1), 1)
    found = call.read(decoded, ["g"])["g"]
    assert isinstance(found, ConsumerGroupDescription)
    assert (found.group_epoch, found.assignment_epoch) == (5, 4)
    (its,) = found.members
    assert (its.epoch, its.is_classic, its.subscribed_regex) == (4, True, "a.*")
    assert its.assignment == (("a", 0),)
    assert its.target_assignment == (("a", 0), ("a", 1))
    assert call.with_broker is not None
    assert call.with_broker(found, 3).coordinator == 3


def test_each_removed_member_has_its_error() -> None:
    one, two = MemberToRemove("i"), MemberToRemove(member_id="m")
    call = remove_members_call("g", "reason")
    request = call.build([one, two], 1_000)
    assert [
        (each.member_id, each.group_instance_id, each.reason)
        for each in request.members  # type: ignore[attr-defined]
    ] == [("", "i", "reason"), ("m", None, "reason")]
    response = LeaveGroupResponse(
        members=[
            MemberResponse(member_id="", group_instance_id="i"),
            MemberResponse(member_id="m", group_instance_id=None, error_code=25),
        ]
    )
    found = call.read(response, [one, two])
    assert found[one] is None
    assert name_of(found[two]) == "UNKNOWN_MEMBER_ID"
    whole = call.read(LeaveGroupResponse(error_code=16), [one, two])
    assert {name_of(each) for each in whole.values()} == {"NOT_COORDINATOR"}


# Offsets of groups


def test_offsets_of_groups_are_listed_by_name_or_id() -> None:
    call = list_offsets_call({"g": None, "h": [TP]}, require_stable=True)
    request = call.build(["g", "h"], 1_000)
    decoded = OffsetFetchRequest.decode(request.encode(8), 8)
    assert [each.topics is None for each in decoded.groups] == [True, False]
    assert call.parts_of is not None
    assert list(call.parts_of(request)) == ["g", "h"]
    topic_id = Uuid.random()
    offset = OffsetFetchResponsePartitions(
        partition_index=3, committed_offset=5, committed_leader_epoch=2, metadata="note"
    )
    none = OffsetFetchResponsePartitions(partition_index=4, committed_offset=-1)
    topics = [OffsetFetchResponseTopics(topic_id=topic_id, partitions=[offset, none])]
    response = OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(group_id="g", topics=topics),
            OffsetFetchResponseGroup(group_id="h", error_code=30),
        ]
    )
    found = call.read(OffsetFetchResponse.decode(response.encode(10), 10), ["g", "h"])
    assert found["g"] == {(topic_id, 3): CommittedOffset(5, 2, "note"), (topic_id, 4): None}
    assert name_of(found["h"]) == "GROUP_AUTHORIZATION_FAILED"


def test_offsets_are_requested_group_by_group_from_old_brokers() -> None:
    call = list_offsets_call({"g": [TP]}, require_stable=False)
    assert call.build_older is not None
    older = call.build_older(["g"], 1_000)
    assert older.encode(1)
    part = OffsetFetchResponsePartition(partition_index=0, committed_offset=7)
    response = OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="a", partitions=[part])])
    assert call.read(response, ["g"]) == {"g": {TP: CommittedOffset(7, -1, "")}}
    assert call.parts_of is not None
    assert list(call.parts_of(older)) == ["g"]


@pytest.mark.parametrize(("code", "kind"), [(UNSTABLE, BrokerResponseError), (29, AdminError)])
def test_an_unstable_offset_is_retried_and_another_error_hides_no_offset(
    code: int, kind: type[KprotoError]
) -> None:
    parts = [
        OffsetFetchResponsePartitions(partition_index=0, committed_offset=7),
        OffsetFetchResponsePartitions(partition_index=1, error_code=code),
    ]
    topics = [OffsetFetchResponseTopics(name="a", partitions=parts)]
    response = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)])
    call = list_offsets_call({"g": None}, require_stable=True)
    error = call.read(response, ["g"])["g"]
    assert isinstance(error, kind)
    if isinstance(error, AdminError):
        assert list(error.results) == [("a", 0)]
        assert list(error.errors) == [("a", 1)]


def test_an_error_of_the_group_is_that_of_each_partition() -> None:
    call = delete_offsets_call("g")
    found = call.read(OffsetDeleteResponse(error_code=69), [TP, ("a", 1)])
    assert [name_of(each) for each in found.values()] == ["GROUP_ID_NOT_FOUND"] * 2
    share = alter_share_offsets_call("g", {TP: 3})
    whole = share.read(AlterShareGroupOffsetsResponse(error_code=68, error_message="why"), [TP])
    assert str(whole[TP]).endswith(": why")


def test_offsets_of_share_groups_have_a_lag_if_the_broker_sends_it() -> None:
    partitions = [
        DescribeShareGroupOffsetsResponsePartition(partition_index=0, start_offset=4, lag=2),
        DescribeShareGroupOffsetsResponsePartition(partition_index=1, start_offset=5),
        DescribeShareGroupOffsetsResponsePartition(partition_index=2, start_offset=-1),
    ]
    topic = DescribeShareGroupOffsetsResponseTopic(topic_name="a", partitions=partitions)
    group = DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=[topic])
    response = DescribeShareGroupOffsetsResponse(groups=[group])
    found = list_share_offsets_call({"g": None}).read(response, ["g"])
    assert found == {"g": {("a", 0): (4, 0, 2), ("a", 1): (5, 0, None), ("a", 2): None}}


def test_offsets_of_share_groups_are_deleted_by_topic() -> None:
    response = DeleteShareGroupOffsetsResponse(
        responses=[
            DeleteShareGroupOffsetsResponseTopic(topic_name="a"),
            DeleteShareGroupOffsetsResponseTopic(topic_name="b", error_code=3),
        ]
    )
    found = delete_share_offsets_call("g").read(response, ["a", "b"])
    assert found["a"] is None
    assert name_of(found["b"]) == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize(
    ("committed", "log_start", "log_end", "lag"),
    [(None, 0, 5, None), (3, 0, 5, 2), (1, 3, 5, 2), (7, 0, 5, 0), (5, 5, 5, 0)],
)
def test_the_lag_counts_records_of_the_log(
    committed: int | None, log_start: int, log_end: int, lag: int | None
) -> None:
    offset = None if committed is None else CommittedOffset(committed, -1, "")
    assert lag_of(offset, log_start, log_end).lag == lag


def test_streams_groups_have_topology_and_tasks() -> None:
    member = streams.Member(
        member_id="m",
        user_endpoint=streams.Endpoint(host="h", port=1),
        client_tags=[streams.KeyValue(key="k", value="v")],
        task_offsets=[streams.TaskOffset(subtopology_id="0", partition=1, offset=9)],
        assignment=streams.Assignment(
            active_tasks=[streams.TaskIds(subtopology_id="0", partitions=[0, 1])]
        ),
        target_assignment=streams.Assignment(),
    )
    changelog = streams.TopicInfo(
        name="c", partitions=2, topic_configs=[streams.KeyValue(key="k", value="v")]
    )
    topology = streams.Topology(
        epoch=3,
        subtopologies=[
            streams.Subtopology(
                subtopology_id="0", source_topics=["a"], state_changelog_topics=[changelog]
            )
        ],
    )
    group = streams.DescribedGroup(group_id="g", members=[member], topology=topology)
    response = StreamsGroupDescribeResponse(groups=[group])
    call = describe_streams_groups_call(operations=False, topology_description=False)
    found = call.read(StreamsGroupDescribeResponse.decode(response.encode(0), 0), ["g"])["g"]
    assert not isinstance(found, KprotoError)
    assert found.topology_epoch == 3
    assert found.subtopologies[0].state_changelog_topics == (("c", 2, 0, {"k": "v"}),)
    (its,) = found.members
    assert its.endpoint == ("h", 1)
    assert its.client_tags == {"k": "v"}
    assert its.task_offsets == {("0", 1): 9}
    assert its.assignment == StreamsTasks((("0", 0), ("0", 1)), (), ())
    empty = streams.DescribedGroup(group_id="g", topology=None)
    without = call.read(StreamsGroupDescribeResponse(groups=[empty]), ["g"])["g"]
    assert not isinstance(without, KprotoError)
    assert (without.topology_epoch, without.subtopologies) == (None, ())


# Transactions


def test_an_abort_marker_has_the_coordinator_epoch_of_the_partition() -> None:
    spec = AbortTransactionSpec("a", 2, 7, 1)
    request = abort_request(spec)
    (marker,) = WriteTxnMarkersRequest.decode(request.encode(1), 1).markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 1, 0)
    assert not marker.transaction_result
    part = WritableTxnMarkerPartitionResult(partition_index=2, error_code=47)
    topic = WritableTxnMarkerTopicResult(name="a", partitions=[part])
    response = WriteTxnMarkersResponse(
        markers=[WritableTxnMarkerResult(producer_id=7, topics=[topic])]
    )
    assert name_of(aborted(response, spec)) == "INVALID_PRODUCER_EPOCH"
    assert "lacks the partition" in str(aborted(WriteTxnMarkersResponse(), spec))


def test_an_unknown_state_of_transactions_is_an_invalid_argument() -> None:
    response = ListTransactionsResponse(unknown_state_filters=["Sleeping"])
    assert isinstance(listed_transactions(response), ConfigurationError)
