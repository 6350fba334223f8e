"""Tests handlers of group requests on several nodes over time, without a connection."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker import Acl, BrokerSettings
from kproto.broker.authorizer import Operation, ResourceType
from kproto.broker.cluster_state import ClusterState
from kproto.broker.context import Context, Principal
from kproto.broker.coordinators import CoordinatorType
from kproto.broker.groups import ClassicGroupState, ClockReading
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.listeners import Endpoint
from kproto.broker.registry import Decision, DelayedResponse, by_key
from kproto.messages.base import Request
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.leave_group_request import LeaveGroupRequest
from kproto.messages.list_groups_request import ListGroupsRequest
from kproto.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.protocol.error_codes import error_code
from kproto.testing.clock import ManualClock
from tests.support.batches import TIMESTAMP

APIS = by_key(KAFKA_APIS)
ALICE = Principal("User", "alice")


class Nodes:
    """Three nodes with one cluster state and one clock."""

    def __init__(self, **settings: Any) -> None:
        self.settings = BrokerSettings(**settings)
        self.cluster = ClusterState(self.settings)
        for node in (1, 2, 3):
            self.cluster.register_endpoint(Endpoint(node, "localhost", 9090 + node))
        self.clock = ManualClock(TIMESTAMP)

    def ask(self, node: int, request: Request[Any], version: int) -> Decision:
        context = Context(
            self.cluster,
            self.settings,
            Endpoint(node, "localhost", 9090 + node),
            {},
            self.clock,
            host="10.0.0.1",
            client_id="c",
            principal=ALICE,
        )
        return APIS[request.API_KEY].handle(context, request, version)

    @property
    def coordinator(self) -> int:
        return self.cluster.coordinator(CoordinatorType.GROUP, "g")

    def join(
        self, member_id: str = "", version: int = 3, *, metadata: bytes = b"", **fields: Any
    ) -> Any:
        request = JoinGroupRequest(
            group_id="g",
            member_id=member_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
            **fields,
        )
        return self.ask(self.coordinator, request, version)

    def sync(self, answer: Any) -> Any:
        assignments = [
            SyncGroupRequestAssignment(member_id=it.member_id, assignment=b"A")
            for it in answer.members
        ]
        request = SyncGroupRequest(
            group_id="g",
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            assignments=assignments,
        )
        return self.ask(self.coordinator, request, 3)

    def beat(self, answer: Any) -> str:
        request = HeartbeatRequest(
            group_id="g", generation_id=answer.generation_id, member_id=answer.member_id
        )
        return error(self.ask(self.coordinator, request, 3))


def error(answer: Any) -> str:
    return error_code(answer.error_code).name


REQUESTS: list[Request[Any]] = [
    JoinGroupRequest(group_id="g", session_timeout_ms=10_000),
    SyncGroupRequest(group_id="g"),
    HeartbeatRequest(group_id="g"),
    LeaveGroupRequest(group_id="g"),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda it: type(it).__name__)
def test_only_the_coordinator_answers(request_: Request[Any]) -> None:
    nodes = Nodes()
    others = {1, 2, 3} - {nodes.coordinator}
    assert {error(nodes.ask(node, request_, 4)) for node in others} == {"NOT_COORDINATOR"}
    assert error(nodes.ask(nodes.coordinator, request_, 4)) != "NOT_COORDINATOR"
    assert nodes.cluster.groups.ids in ((), ("g",))


def test_only_coordinator_describes_and_deletes_group() -> None:
    nodes = Nodes()
    nodes.join(version=4)
    seen = {}
    for node in (1, 2, 3):
        described: Any = nodes.ask(node, DescribeGroupsRequest(groups=["g"]), 5)
        listed: Any = nodes.ask(node, ListGroupsRequest(), 5)
        deleted: Any = nodes.ask(node, DeleteGroupsRequest(groups_names=["g"]), 2)
        (group,), (result,) = described.groups, deleted.results
        seen[node] = (error(group), len(listed.groups), error(result))
    other = ("NOT_COORDINATOR", 0, "NOT_COORDINATOR")
    mine = nodes.coordinator
    assert seen == {1: other, 2: other, 3: other} | {mine: ("NONE", 1, "NONE")}


def test_join_is_delayed_until_next_deadline() -> None:
    nodes = Nodes(group_initial_rebalance_delay_ms=3_000)
    wait = nodes.join()
    assert isinstance(wait, DelayedResponse)
    assert wait.deadline == nodes.clock.monotonic() + 3
    (group,) = wait.watched
    again = wait.try_complete(False)
    assert isinstance(again, DelayedResponse)
    assert (again.deadline, list(again.watched)) == (wait.deadline, [group])
    assert group.watchers == set(), "the handler itself does not wait"


async def test_join_is_answered_at_its_deadline() -> None:
    nodes = Nodes(group_initial_rebalance_delay_ms=3_000)
    wait = nodes.join()
    assert isinstance(wait, DelayedResponse)
    await nodes.clock.advance(3_000)
    answer: Any = wait.try_complete(True)
    assert (error(answer), answer.generation_id) == ("NONE", 1)


async def test_join_is_delayed_again_if_not_complete() -> None:
    nodes = Nodes(group_initial_rebalance_delay_ms=3_000)
    first = nodes.join()
    await nodes.clock.advance(1_000)
    nodes.join()
    await nodes.clock.advance(2_000)
    assert isinstance(first, DelayedResponse)
    longer = first.try_complete(True)
    assert isinstance(longer, DelayedResponse)
    assert (longer is first, longer.deadline) == (False, 6.0)


def test_waiting_join_gets_not_coordinator_when_broker_stops() -> None:
    nodes = Nodes()
    leader = nodes.join()
    assert error(nodes.sync(leader)) == "NONE"
    waits = nodes.join()
    assert isinstance(waits, DelayedResponse)
    before = nodes.coordinator
    nodes.cluster.stop(before)
    assert nodes.coordinator != before
    assert error(waits.try_complete(False)) == "NOT_COORDINATOR"
    assert nodes.beat(leader) == "NONE", "the stored group is unchanged"
    again = nodes.join(leader.member_id)
    assert (error(again), again.generation_id) == ("NONE", 2)


def test_waiting_sync_gets_not_coordinator_when_broker_stops() -> None:
    nodes = Nodes()
    leader = nodes.join()
    other = nodes.join()
    joined = nodes.join(leader.member_id)
    follower: Any = other.try_complete(False)
    waits = nodes.sync(follower)
    assert isinstance(waits, DelayedResponse)
    nodes.cluster.stop(nodes.coordinator)
    assert error(waits.try_complete(False)) == "NOT_COORDINATOR"
    assert error(nodes.sync(joined)) == "UNKNOWN_MEMBER_ID", "no generation was stored"


def test_groups_of_other_coordinators_are_unaffected() -> None:
    nodes = Nodes(group_initial_rebalance_delay_ms=3_000)
    waits = nodes.join()
    assert isinstance(waits, DelayedResponse)
    nodes.cluster.stop(next(iter({1, 2, 3} - {nodes.coordinator})))
    assert isinstance(waits.try_complete(False), DelayedResponse)


async def test_sessions_restart_at_new_coordinator() -> None:
    nodes = Nodes()
    member = nodes.join()
    nodes.sync(member)
    await nodes.clock.advance(9_000)
    nodes.cluster.stop(nodes.coordinator)
    assert nodes.beat(member) == "NONE"
    await nodes.clock.advance(9_000)
    assert nodes.beat(member) == "NONE"
    await nodes.clock.advance(10_000)
    assert nodes.beat(member) == "UNKNOWN_MEMBER_ID"


def test_group_survives_stop_of_all_coordinators() -> None:
    nodes = Nodes()
    member = nodes.join()
    nodes.sync(member)
    for node in (1, 2, 3):
        nodes.cluster.stop(node)
    assert error(nodes.ask(1, HeartbeatRequest(group_id="g"), 0)) == "NOT_COORDINATOR"
    for node in (3, 2, 1):
        nodes.cluster.start(node)
    assert nodes.beat(member) == "NONE"


def test_unauthorized_groups_come_first_or_last_as_in_kafka() -> None:
    acls = tuple(
        Acl("User:alice", operation, ResourceType.GROUP, "mine")
        for operation in (Operation.DESCRIBE, Operation.DELETE, Operation.READ)
    )
    nodes = Nodes(authorizer=True, acls=acls)
    described: Any = None
    for node in (1, 2, 3):
        request = DescribeGroupsRequest(
            groups=["mine", "x", "y"], include_authorized_operations=True
        )
        described = nodes.ask(node, request, 5)
        assert [it.group_id for it in described.groups] == ["x", "y", "mine"]
        assert [error(it) for it in described.groups[:2]] == ["GROUP_AUTHORIZATION_FAILED"] * 2
        assert [it.authorized_operations for it in described.groups[:2]] == [-(2**31)] * 2
        request_to_delete = DeleteGroupsRequest(groups_names=["x", "mine", "y"])
        deleted: Any = nodes.ask(node, request_to_delete, 2)
        assert [it.group_id for it in deleted.results] == ["mine", "x", "y"]


def test_authorization_is_checked_before_other_errors() -> None:
    nodes = Nodes(authorizer=True)
    answer: Any = nodes.ask(1, JoinGroupRequest(group_id="", member_id="m"), 9)
    assert (error(answer), answer.member_id) == ("GROUP_AUTHORIZATION_FAILED", "")
    assert answer.protocol_name is None
    nameless: Any = nodes.ask(1, SyncGroupRequest(group_id="g"), 5)
    assert error(nameless) == "INCONSISTENT_GROUP_PROTOCOL", "Kafka checks it first"
    assert nodes.cluster.groups.ids == ()


def test_the_state_of_a_deleted_group_is_dead() -> None:
    nodes = Nodes()
    nodes.join(version=4)
    group = nodes.cluster.groups.find("g", ClockReading(0, TIMESTAMP))
    assert group is not None
    nodes.ask(nodes.coordinator, DeleteGroupsRequest(groups_names=["g"]), 0)
    assert group.state is ClassicGroupState.DEAD
    assert nodes.cluster.groups.ids == ()


def test_join_to_unstorable_group_fails() -> None:
    nodes = Nodes(max_stored_bytes=1)
    for version in (3, 4):
        answer = nodes.join(version=version)
        assert (error(answer), answer.member_id) == ("NOT_COORDINATOR", "")
    listed: Any = nodes.ask(nodes.coordinator, ListGroupsRequest(), 5)
    assert listed.groups == []
    nodes.cluster.storage_limit.limit = 10_000
    assert error(nodes.join(version=4)) == "MEMBER_ID_REQUIRED"


def test_coordinator_with_too_small_isr_is_not_available() -> None:
    nodes = Nodes()
    nodes.cluster.topics.add(
        nodes.cluster.plan_topic("__consumer_offsets", 1, 3, configs={"min.insync.replicas": "2"})
    )
    answer = nodes.join()
    others = [node for node in (1, 2, 3) if node != nodes.coordinator]
    for node in others:
        nodes.cluster.stop(node)
    assert error(nodes.sync(answer)) == "COORDINATOR_NOT_AVAILABLE"
    assert nodes.beat(answer) == "REBALANCE_IN_PROGRESS"
    nodes.cluster.start(others[0])
    assert error(nodes.sync(nodes.join(answer.member_id))) == "NONE"


def test_unstorable_assignments_fail_all_syncs() -> None:
    nodes = Nodes()
    answer = nodes.join()
    nodes.cluster.storage_limit.limit = nodes.cluster.storage_limit.used
    synced = nodes.sync(answer)
    assert (error(synced), synced.assignment) == ("NOT_COORDINATOR", b"")
    assert nodes.beat(answer) == "REBALANCE_IN_PROGRESS"
    nodes.cluster.storage_limit.limit += 10_000
    synced = nodes.sync(nodes.join(answer.member_id))
    assert (error(synced), synced.assignment) == ("NONE", b"A")
