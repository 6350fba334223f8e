"""Tests the APIs of classic groups in each version over a socket: requests and responses."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker import BrokerSettings
from kproto.broker.groups import ClockReading
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kproto.messages.list_groups_request import ListGroupsRequest
from kproto.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.protocol.error_codes import error_code
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection


@pytest.fixture(autouse=True)
def _coordinator(connection: RawConnection) -> None:
    """Sends FindCoordinator, which creates the offsets topic and group g's coordinator."""
    connection.exchange(FindCoordinatorRequest(key="g"), 0)


def error(answer: Any) -> str:
    return error_code(answer.error_code).name


def join_request(member_id: str = "", *names: str, **fields: Any) -> JoinGroupRequest:
    given: dict[str, Any] = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        **fields,
    }
    supported = [JoinGroupRequestProtocol(name=it, metadata=b"m") for it in names or ("range",)]
    return JoinGroupRequest(member_id=member_id, protocols=supported, **given)


def join(connection: RawConnection, version: int, **fields: Any) -> Any:
    """Joins with the member id that the first response assigns; returns the last response."""
    answer = connection.exchange(join_request(**fields), version)
    if version >= 4 and "group_instance_id" not in fields:
        assert error(answer) == "MEMBER_ID_REQUIRED"
        answer = connection.exchange(join_request(answer.member_id, **fields), version)
    assert error(answer) == "NONE"
    return answer


def sync_request(answer: Any, version: int = 0, **fields: Any) -> SyncGroupRequest:
    """Returns the SyncGroup request of the member that received the JoinGroup response `answer`.

    The leader assigns to each member the bytes of the member's id.
    """
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    given: dict[str, Any] = {
        "group_id": "g",
        "generation_id": answer.generation_id,
        "member_id": answer.member_id,
        "assignments": [
            SyncGroupRequestAssignment(member_id=it.member_id, assignment=it.member_id.encode())
            for it in answer.members
        ],
        **named,
        **fields,
    }
    return SyncGroupRequest(**given)


@pytest.mark.parametrize("version", JoinGroupRequest.VALID_VERSIONS)
def test_join_group(connection: RawConnection, version: int) -> None:
    first = join(connection, version)
    assert first.member_id.startswith("raw-")
    assert (first.generation_id, first.leader, first.protocol_name) == (1, first.member_id, "range")
    assert first.protocol_type == ("consumer" if version >= 7 else None)
    ((told_id, told_metadata),) = [(it.member_id, it.metadata) for it in first.members]
    assert (told_id, told_metadata) == (first.member_id, b"m")
    assert not first.skip_assignment
    unknown = connection.exchange(join_request("x"), version)
    assert (error(unknown), unknown.member_id) == ("UNKNOWN_MEMBER_ID", "x")
    assert unknown.protocol_name == (None if version >= 7 else "")
    other = connection.exchange(join_request("", "other"), version)
    assert (error(other), other.member_id) == ("INCONSISTENT_GROUP_PROTOCOL", "")
    short = connection.exchange(join_request(session_timeout_ms=5_999), version)
    assert error(short) == "INVALID_SESSION_TIMEOUT"
    long = connection.exchange(join_request(session_timeout_ms=1_800_001), version)
    assert error(long) == "INVALID_SESSION_TIMEOUT"
    nameless = connection.exchange(join_request(group_id="", session_timeout_ms=1), version)
    assert (error(nameless), nameless.generation_id) == ("INVALID_GROUP_ID", -1)


@pytest.mark.parametrize("version", range(4))
def test_join_group_of_two_members(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    leader = join(connection, version)
    with RawConnection(broker.bootstrap, "other") as second:
        second.send(join_request(), version)
        broker.until(lambda it: len(_members(it)) == 2)
        again = connection.exchange(join_request(leader.member_id), version)
        follower: Any = second.receive()
    assert (error(again), again.generation_id, len(again.members)) == ("NONE", 2, 2)
    assert (error(follower), follower.generation_id, follower.members) == ("NONE", 2, [])
    assert follower.leader == again.leader == leader.member_id


def _members(broker: Any) -> list[str]:
    """Returns the member ids of group g."""
    group = broker._cluster.groups.find("g", ClockReading(0, 0))
    return list(group.members)


@pytest.mark.parametrize("version", range(5, 10))
def test_join_group_of_a_static_member(connection: RawConnection, version: int) -> None:
    first = join(connection, version, group_instance_id="i")
    assert first.member_id.startswith("i-")
    assert [it.group_instance_id for it in first.members] == ["i"]
    assert error(connection.exchange(sync_request(first, 5), 5)) == "NONE"
    again = join(connection, version, group_instance_id="i", reason=_reason(version))
    assert (again.generation_id, again.member_id == first.member_id) == (1, False)
    assert again.skip_assignment is (version >= 9)
    assert again.leader == (again.member_id if version >= 9 else first.member_id)
    assert len(again.members) == (1 if version >= 9 else 0)
    fenced = join_request(first.member_id, group_instance_id="i")
    answer = connection.exchange(fenced, version)
    assert (error(answer), answer.member_id) == ("FENCED_INSTANCE_ID", first.member_id)


def _reason(version: int) -> str | None:
    return "because" if version >= 8 else None


@pytest.mark.parametrize("version", SyncGroupRequest.VALID_VERSIONS)
def test_sync_group(connection: RawConnection, version: int) -> None:
    member = join(connection, 5)
    request = sync_request(member, version)
    missing = connection.exchange(sync_request(member, version, group_id="other"), version)
    assert error(missing) == "UNKNOWN_MEMBER_ID"
    nameless = connection.exchange(sync_request(member, version, group_id=""), version)
    assert error(nameless) == "INVALID_GROUP_ID"
    if version >= 5:
        for wrong in ({"protocol_name": None}, {"protocol_type": None}, {"protocol_name": "x"}):
            answer = connection.exchange(sync_request(member, version, **wrong), version)
            assert error(answer) == "INCONSISTENT_GROUP_PROTOCOL"
    answer = connection.exchange(request, version)
    assert (error(answer), answer.assignment) == ("NONE", member.member_id.encode())
    expected = ("consumer", "range") if version >= 5 else (None, None)
    assert (answer.protocol_type, answer.protocol_name) == expected
    old = connection.exchange(sync_request(member, version, generation_id=0), version)
    assert (error(old), old.assignment) == ("ILLEGAL_GENERATION", b"")
    if version >= 3:
        wrong_instance = sync_request(member, version, group_instance_id="i")
        assert error(connection.exchange(wrong_instance, version)) == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("version", HeartbeatRequest.VALID_VERSIONS)
def test_heartbeat(connection: RawConnection, version: int) -> None:
    member = join(connection, 5)

    def beat(**fields: Any) -> str:
        given = {"group_id": "g", "member_id": member.member_id, "generation_id": 1, **fields}
        return error(connection.exchange(HeartbeatRequest(**given), version))

    assert beat() == "NONE", "the leader has not assigned yet"
    assert beat(generation_id=2) == "ILLEGAL_GENERATION"
    assert beat(member_id="x") == "UNKNOWN_MEMBER_ID"
    assert beat(group_id="x") == "UNKNOWN_MEMBER_ID"
    assert beat(group_id="") == "INVALID_GROUP_ID"
    if version >= 3:
        assert beat(group_instance_id="i") == "UNKNOWN_MEMBER_ID"
    connection.exchange(sync_request(member, 5), 5)
    assert beat() == "NONE"


@pytest.mark.parametrize("version", range(3))
def test_leave_group_of_one_member(connection: RawConnection, version: int) -> None:
    member = join(connection, 5)

    def leave(member_id: str, group_id: str = "g") -> str:
        request = LeaveGroupRequest(group_id=group_id, member_id=member_id)
        return error(connection.exchange(request, version))

    assert leave("x") == "UNKNOWN_MEMBER_ID"
    assert leave("", group_id="") == "INVALID_GROUP_ID"
    assert leave(member.member_id, group_id="x") == "UNKNOWN_MEMBER_ID"
    assert leave(member.member_id) == "NONE"
    assert leave(member.member_id) == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("version", range(3, 6))
def test_leave_group_of_many_members(connection: RawConnection, version: int) -> None:
    join(connection, 5, group_instance_id="i")

    def leave(*members: tuple[str, str | None], group_id: str = "g") -> object:
        wanted = [
            MemberIdentity(
                member_id=member_id,
                group_instance_id=instance_id,
                reason="done" if version >= 5 else None,
            )
            for member_id, instance_id in members
        ]
        answer = connection.exchange(LeaveGroupRequest(group_id=group_id, members=wanted), version)
        left = [(it.member_id, it.group_instance_id, error(it)) for it in answer.members]
        return left if not answer.error_code else error(answer)

    assert leave(("", "i"), group_id="") == "INVALID_GROUP_ID"
    assert leave(("", "i"), group_id="x") == [("", "i", "UNKNOWN_MEMBER_ID")]
    assert leave(("x", "i"), ("x", None), ("", "i"), ("", "j")) == [
        ("x", "i", "FENCED_INSTANCE_ID"),
        ("x", None, "UNKNOWN_MEMBER_ID"),
        ("", "i", "NONE"),
        ("", "j", "UNKNOWN_MEMBER_ID"),
    ]
    assert leave() == []


@pytest.mark.parametrize("version", DescribeGroupsRequest.VALID_VERSIONS)
def test_describe_groups(connection: RawConnection, version: int) -> None:
    member = join(connection, 5, group_instance_id="i")

    def describe() -> tuple[Any, Any]:
        request = DescribeGroupsRequest(
            groups=["g", "x"], include_authorized_operations=version >= 3
        )
        found, missing = connection.exchange(request, version).groups
        assert (found.group_id, missing.group_id) == ("g", "x")
        return found, missing

    found, missing = describe()
    assert (error(found), found.group_state) == ("NONE", "CompletingRebalance")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "")
    assert [it.member_metadata for it in found.members] == [b""]
    assert missing.group_state == "Dead"
    assert error(missing) == ("GROUP_ID_NOT_FOUND" if version >= 6 else "NONE")
    assert bool(missing.error_message) is (version >= 6)
    assert missing.members == []
    connection.exchange(sync_request(member, 5, group_instance_id="i"), 5)
    found, _ = describe()
    assert (found.group_state, found.protocol_data) == ("Stable", "range")
    (member_info,) = found.members
    assert (member_info.member_id, member_info.client_id) == (member.member_id, "raw")
    assert member_info.client_host == "/127.0.0.1"
    assert member_info.group_instance_id == ("i" if version >= 4 else None)
    assert (member_info.member_metadata, member_info.member_assignment) == (
        b"m",
        member.member_id.encode(),
    )
    # Read, Describe, Delete, DescribeConfigs, AlterConfigs
    everything = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    assert found.authorized_operations == (everything if version >= 3 else -(2**31))


@pytest.mark.parametrize("version", ListGroupsRequest.VALID_VERSIONS)
def test_list_groups(connection: RawConnection, version: int) -> None:
    join(connection, 5, group_instance_id="i")
    connection.exchange(join_request(group_id="new"), 5)

    def listed(**filters: list[str]) -> list[tuple[str, str, str, str]]:
        answer = connection.exchange(ListGroupsRequest(**filters), version)
        assert error(answer) == "NONE"
        return [
            (it.group_id, it.protocol_type, it.group_state, it.group_type) for it in answer.groups
        ]

    found = listed()
    state, kind = ("CompletingRebalance" if version >= 4 else ""), "classic" if version >= 5 else ""
    empty = "Empty" if version >= 4 else ""
    assert found == [("g", "consumer", state, kind), ("new", "", empty, kind)]
    if version >= 4:
        assert [it[0] for it in listed(states_filter=["empty", "Stable"])] == ["new"]
        assert listed(states_filter=["nonsense"]) == []
    if version >= 5:
        assert listed(types_filter=["Consumer"]) == []
        assert listed(types_filter=["Classic"]) == found
        assert listed(types_filter=["classic"], states_filter=["Dead"]) == []


@pytest.mark.parametrize("version", DeleteGroupsRequest.VALID_VERSIONS)
def test_delete_groups(connection: RawConnection, version: int) -> None:
    member = join(connection, 5)
    connection.exchange(join_request(group_id="new"), 5)

    def delete(*names: str) -> list[tuple[str, str]]:
        answer = connection.exchange(DeleteGroupsRequest(groups_names=names), version)
        return [(it.group_id, error(it)) for it in answer.results]

    assert delete("g", "new", "x", "new") == [
        ("g", "NON_EMPTY_GROUP"),
        ("new", "NONE"),
        ("x", "GROUP_ID_NOT_FOUND"),
    ]
    connection.exchange(LeaveGroupRequest(group_id="g", member_id=member.member_id), 0)
    assert delete("g", "new") == [("g", "NONE"), ("new", "GROUP_ID_NOT_FOUND")]
    assert connection.exchange(ListGroupsRequest(), 0).groups == []


def test_member_id_without_client_id() -> None:
    with threaded_broker() as broker, RawConnection(broker.bootstrap, None) as connection:
        connection.exchange(FindCoordinatorRequest(key="g"), 0)
        answer = connection.exchange(join_request(), 4)
    assert answer.member_id.startswith("null-"), "as Java writes it"


def test_session_and_size_limits_are_settings() -> None:
    settings = BrokerSettings(
        group_min_session_timeout_ms=10, group_max_session_timeout_ms=20, group_max_size=1
    )
    with threaded_broker(settings) as broker, RawConnection(broker.bootstrap) as connection:
        connection.exchange(FindCoordinatorRequest(key="g"), 0)
        codes = [
            error(connection.exchange(join_request(session_timeout_ms=ms), 9)) for ms in (9, 10, 21)
        ]
        assert codes == ["INVALID_SESSION_TIMEOUT", "MEMBER_ID_REQUIRED", "INVALID_SESSION_TIMEOUT"]


@pytest.mark.parametrize("version", JoinGroupRequest.VALID_VERSIONS)
@pytest.mark.parametrize("instance_id", [None, "i" * 32_767])
def test_overlong_member_id_is_unknown_server_error(
    version: int, instance_id: str | None, broker: ThreadedBroker
) -> None:
    if instance_id is not None and version < 5:
        return
    with RawConnection(broker.bootstrap, client_id="c" * 32_760) as connection:
        answer = connection.exchange(join_request(group_instance_id=instance_id), version)
    assert (error(answer), answer.member_id) == ("UNKNOWN_SERVER_ERROR", "")
    assert broker.call(lambda it: it._cluster.groups.ids) == ()


@pytest.mark.parametrize("version", DescribeGroupsRequest.VALID_VERSIONS)
@pytest.mark.parametrize("name", ["g" * 32_767, "\0" * 32_767])
def test_longest_group_id_is_not_found(version: int, name: str, connection: RawConnection) -> None:
    (group,) = connection.exchange(DescribeGroupsRequest(groups=[name]), version).groups
    assert (group.group_id, group.group_state) == (name, "Dead")
    assert bool(group.error_message) == (version >= 6)


@pytest.mark.parametrize("version", FindCoordinatorRequest.VALID_VERSIONS)
def test_longest_unauthorized_key_is_rejected(version: int) -> None:
    name = "\0" * 32_767
    with (
        threaded_broker(BrokerSettings(authorizer=True)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        request = FindCoordinatorRequest(key=name) if version < 4 else None
        request = request or FindCoordinatorRequest(coordinator_keys=[name])
        answer: Any = connection.exchange(request, version)
    member_info = answer if version < 4 else answer.coordinators[0]
    assert error(member_info) == "GROUP_AUTHORIZATION_FAILED"
