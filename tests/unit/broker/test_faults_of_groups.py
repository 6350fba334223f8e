"""Tests `ErrorCode` faults of group requests: responses have the code in its usual field."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker import ErrorCode
from kproto.messages.base import Request
from kproto.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kproto.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.join_group_request import JoinGroupRequest
from kproto.messages.leave_group_request import LeaveGroupRequest
from kproto.messages.list_groups_request import ListGroupsRequest
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto.messages.sync_group_request import SyncGroupRequest
from kproto.protocol.error_codes import error_code
from tests.support.embedded import ThreadedBroker
from tests.support.raw_connection import RawConnection

LOADING = "COORDINATOR_LOAD_IN_PROGRESS"
FIRST_BY_ID = 10


@pytest.fixture
def offsets(broker: ThreadedBroker, connection: RawConnection) -> ThreadedBroker:
    """Returns a broker with committed offsets of group g: 5 for t-0, 6 for t-1, 7 for u-0."""
    broker.call(lambda it: (it.create_topic("t", partitions=2), it.create_topic("u")))
    connection.exchange(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    commits = [("t", 0, 5), ("t", 1, 6), ("u", 0, 7)]
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=3,
                        committed_metadata="m",
                    )
                ],
            )
            for name, index, offset in commits
        ],
    )
    answer = connection.exchange(request, 9)
    assert not any(it.error_code for topic in answer.topics for it in topic.partitions)
    return broker


Results = dict[tuple[str, int], tuple[str, int, int, str | None]]
FINE: Results = {
    ("t", 0): ("NONE", 5, 3, "m"),
    ("t", 1): ("NONE", 6, 3, "m"),
    ("u", 0): ("NONE", 7, 3, "m"),
}
REFUSED = (LOADING, -1, -1, "")


class Asking:
    """Sends an OffsetFetch about group g in one version, and returns the result by partition."""

    def __init__(self, broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
        self.connection, self.version = connection, version
        self.ids = {name: broker.topic_id(name) for name in "tu"}

    def __call__(self, *topics: tuple[str, tuple[int, ...]]) -> Results:
        """Returns the offsets of these topics, or of all topics if none is given."""
        return self.results(self.connection.exchange(self.request(topics or None), self.version))

    def request(self, topics: Any) -> OffsetFetchRequest:
        if self.version < 8:
            by_name = [OffsetFetchRequestTopic(name=it, partition_indexes=at) for it, at in topics]
            return OffsetFetchRequest(group_id="g", topics=by_name)
        by_id = topics and [
            OffsetFetchRequestTopics(
                name=name if self.version < FIRST_BY_ID else "",
                topic_id=self.ids[name],
                partition_indexes=indexes,
            )
            for name, indexes in topics
        ]
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=by_id)])

    def results(self, answer: Any) -> Results:
        assert not answer.error_code
        topics = answer.topics
        if self.version >= 8:
            ((group,),) = (answer.groups,)
            assert not group.error_code
            topics = group.topics
        names = {topic_id: name for name, topic_id in self.ids.items()}
        return {
            (topic.name if self.version < FIRST_BY_ID else names[topic.topic_id], at): (
                error_code(code).name,
                offset,
                # The response has the leader epoch since v5.
                epoch if self.version >= 5 else 3 if offset >= 0 else -1,
                metadata,
            )
            for topic in topics
            for at, code, offset, epoch, metadata in (
                (
                    it.partition_index,
                    it.error_code,
                    it.committed_offset,
                    it.committed_leader_epoch,
                    it.metadata,
                )
                for it in topic.partitions
            )
        }


ALL = ("t", (0, 1)), ("u", (0,))


@pytest.mark.parametrize("version", range(11))
def test_an_offset_fetch_returns_the_error_of_a_partition(
    version: int, offsets: ThreadedBroker, connection: RawConnection
) -> None:
    ask = Asking(offsets, connection, version)
    control = offsets.call(lambda it: it.control(ErrorCode(LOADING, topics={"t": [1]})))
    assert ask(("u", (0,))) == {("u", 0): FINE["u", 0]}
    assert ask(("t", (0,))) == {("t", 0): FINE["t", 0]}
    assert control.times == 1, "other partitions are not counted"
    assert ask(*ALL) == FINE | {("t", 1): REFUSED}
    assert control.times == 0
    assert ask(*ALL) == FINE


@pytest.mark.parametrize("version", range(8, 11))
def test_a_fetch_of_all_offsets_returns_the_error_of_a_topic(
    version: int, offsets: ThreadedBroker, connection: RawConnection
) -> None:
    ask = Asking(offsets, connection, version)
    offsets.call(lambda it: it.control(ErrorCode(LOADING, topics=["t"])))
    assert ask() == FINE | {("t", 0): REFUSED, ("t", 1): REFUSED}
    assert ask() == FINE


def test_an_offset_fetch_returns_the_error_of_a_group(
    offsets: ThreadedBroker, connection: RawConnection
) -> None:
    control = offsets.call(lambda it: it.control(ErrorCode(LOADING, topics=["other"])))
    some = [OffsetFetchRequestTopics(name="u", partition_indexes=[0])]
    of_g = OffsetFetchRequestGroup(group_id="g", topics=some)
    of_other = OffsetFetchRequestGroup(group_id="other", topics=some)
    connection.exchange(OffsetFetchRequest(groups=[of_g]), 9)
    assert control.times == 1
    g, other = connection.exchange(OffsetFetchRequest(groups=[of_g, of_other]), 9).groups
    assert (g.error_code, g.topics[0].partitions[0].committed_offset) == (0, 7)
    assert (error_code(other.error_code).name, other.topics) == (LOADING, [])


def test_an_offset_delete_returns_the_error_of_a_partition(
    offsets: ThreadedBroker, connection: RawConnection
) -> None:
    control = offsets.call(lambda it: it.control(ErrorCode(LOADING, topics={"t": [1]})))

    def delete(*topics: tuple[str, tuple[int, ...]]) -> dict[tuple[str, int], str]:
        request = OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[OffsetDeleteRequestPartition(partition_index=at) for at in its],
                )
                for name, its in topics
            ],
        )
        answer = connection.exchange(request, 0)
        assert not answer.error_code
        return {
            (topic.name, it.partition_index): error_code(it.error_code).name
            for topic in answer.topics
            for it in topic.partitions
        }

    assert delete(("u", (0,))) == {("u", 0): "NONE"}
    assert control.times == 1
    assert delete(("t", (0, 1))) == {("t", 0): "NONE", ("t", 1): LOADING}
    assert Asking(offsets, connection, 9)() == {("t", 1): FINE["t", 1]}, "which is not deleted"
    offsets.call(lambda it: it.control(ErrorCode(LOADING)))
    whole = OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name="t")])
    answer = connection.exchange(whole, 0)
    assert (error_code(answer.error_code).name, answer.topics) == (LOADING, [])


WHOLE: list[Request[Any]] = [
    JoinGroupRequest(group_id="g"),
    SyncGroupRequest(group_id="g"),
    HeartbeatRequest(group_id="g"),
    LeaveGroupRequest(group_id="g"),
    ListGroupsRequest(),
    DescribeGroupsRequest(groups=["g"]),
    ConsumerGroupHeartbeatRequest(group_id="g"),
    ConsumerGroupDescribeRequest(group_ids=["g"]),
]
DESCRIBES = DescribeGroupsRequest | ConsumerGroupDescribeRequest


@pytest.mark.parametrize("request_", WHOLE, ids=lambda it: type(it).__name__)
def test_every_version_returns_the_error_of_a_request(
    request_: Request[Any], broker: ThreadedBroker, connection: RawConnection
) -> None:
    broker.call(lambda it: it.control(ErrorCode(LOADING, times=None), request=type(request_)))
    for version in type(request_).VALID_VERSIONS:
        answer: Any = connection.exchange(request_, version)
        found = answer.groups[0] if isinstance(request_, DESCRIBES) else answer
        assert error_code(found.error_code).name == LOADING


def test_describe_groups_returns_the_error_of_a_group(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=["g", "h"])
    control = ErrorCode(LOADING, times=None, topics=["h"])
    broker.call(lambda it: it.control(control, request=ConsumerGroupDescribeRequest))
    found = {
        it.group_id: error_code(it.error_code).name for it in connection.exchange(request, 1).groups
    }
    assert found["h"] == LOADING != found["g"]
