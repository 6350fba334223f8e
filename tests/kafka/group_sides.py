"""Sends requests of group members to a real or embedded broker, and compares responses.

Every member has its own connection, whose client id is the member's name. Both brokers generate
random member ids, which begin with the client id. To make responses comparable, the n-th id of
member `a` is shown as `a.n`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

from kproto.messages.base import Request
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.describe_groups_response import DescribeGroupsResponse
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.heartbeat_response import HeartbeatResponse
from kproto.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.join_group_response import JoinGroupResponse
from kproto.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kproto.messages.leave_group_response import LeaveGroupResponse
from kproto.messages.list_groups_request import ListGroupsRequest
from kproto.messages.list_groups_response import ListGroupsResponse
from kproto.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.sync_group_response import SyncGroupResponse
from kproto.protocol.error_codes import error_code
from tests.support.raw_connection import ClosedByBrokerError, RawConnection

__all__ = ["ONE_THREAD", "PATIENCE_S", "WAITS", "Side"]

#: Settings that make a real broker read and handle one request at a time, as the embedded one does.
ONE_THREAD: Final = {"num.network.threads": "1", "num.io.threads": "1"}

#: Seconds within which an expected response must arrive.
PATIENCE_S: Final = 20.0
#: Represents the missing response of a request that the broker has not answered yet.
WAITS: Final = "waits"

_UUID_CHARS: Final = 37


class Side:
    """One broker and the members of group `group_id` on it."""

    def __init__(self, bootstrap: str, group_id: str) -> None:
        self.bootstrap = bootstrap
        self.group_id = group_id
        #: The last member id and the last generation that the broker returned to each member.
        self.ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        #: All member ids that the broker returned, in order.
        self.issued_ids: list[str] = []
        #: Earlier ids of each member that the group may still contain.
        self.former: dict[str, list[str]] = {}
        #: The member ids in each member's last JoinGroup response; only a leader's lists any.
        self.joined_ids: dict[str, list[str]] = {}
        self.waiting: set[str] = set()
        self._connections: dict[str, RawConnection] = {}
        self._names: dict[str, str] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.__exit__(None, None, None)

    def wait_for_coordinator(self) -> None:
        """Waits for a coordinator: the broker first has to create `__consumer_offsets`."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.ask("nobody", FindCoordinatorRequest(coordinator_keys=["g"]), 4)
            if not answer.coordinators[0].error_code:
                break
            assert time.monotonic() < deadline
            time.sleep(0.1)
        loading = {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}
        while self.describe()[0] in loading:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    # Requests

    def ask(self, member: str, request: Request[Any], version: int) -> Any:
        """Returns the response to a request that the broker answers at once."""
        return self._connection(member).exchange(request, version)

    def post(self, member: str, request: Request[Any], version: int) -> None:
        """Sends a request whose response may be delayed."""
        self._connection(member).send(request, version)
        self.waiting.add(member)

    def _connection(self, member: str) -> RawConnection:
        if member not in self._connections:
            self._connections[member] = RawConnection(self.bootstrap, member, timeout=PATIENCE_S)
        return self._connections[member]

    def wait_until_handled(self) -> None:
        """Waits until the broker has handled all earlier requests, even if responses are delayed.

        Sends DescribeGroups twice. With the settings `ONE_THREAD` a broker handles one request at a
        time. The broker may handle the first DescribeGroups before an earlier request of another
        connection, but it handles the second DescribeGroups after that request.
        """
        for _ in range(2):
            self.describe()

    def has_response(self, member: str) -> bool:
        """Returns whether the request of `member` is answered."""
        return member in self.waiting and self._connection(member).has_answer(0)

    def receives(self, member: str, timeout_s: float) -> object:
        """Returns the response to the request of `member`, or `WAITS` after `timeout_s` seconds.

        Returns "closed" if the broker closes the connection.
        """
        connection = self._connection(member)
        if not connection.has_answer(timeout_s):
            return WAITS
        self.waiting.discard(member)
        try:
            return self.comparable(member, connection.receive())
        except ClosedByBrokerError:
            connection.__exit__(None, None, None)
            del self._connections[member]
            return "closed"

    def join(
        self,
        member: str,
        version: int,
        member_id: str,
        protocols: Iterable[tuple[str, bytes]],
        *,
        instance_id: str | None = None,
        protocol_type: str = "consumer",
        session_ms: int = 60_000,
        rebalance_ms: int = 60_000,
    ) -> None:
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols
            ],
        )
        self.post(member, request, version)

    def sync(
        self,
        member: str,
        version: int,
        member_id: str,
        generation: int,
        assigned: Iterable[str] = (),
        *,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = None,
    ) -> None:
        """Sends SyncGroup with an assignment for each member id in `assigned`.

        The assignment of a member id is the text `name_of(id)`.
        """
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=it, assignment=self.name_of(it).encode())
                for it in assigned
            ],
        )
        self.post(member, request, version)

    def beat(
        self,
        member: str,
        version: int,
        member_id: str,
        generation: int,
        instance_id: str | None = None,
    ) -> object:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        return self.comparable(member, self.ask(f"{member}-beats", request, version))

    def leave(self, version: int, *members: tuple[str, str | None]) -> object:
        if version < 3:
            ((member_id, _),) = members
            request = LeaveGroupRequest(group_id=self.group_id, member_id=member_id)
        else:
            identities = [
                MemberIdentity(member_id=member_id, group_instance_id=instance_id)
                for member_id, instance_id in members
            ]
            request = LeaveGroupRequest(group_id=self.group_id, members=identities)
        return self.comparable("nobody", self.ask("nobody", request, version))

    def describe(self, version: int = 5) -> Any:
        request = DescribeGroupsRequest(groups=[self.group_id])
        return self.comparable("nobody", self.ask("nobody", request, version))

    def list(self, version: int, states: Iterable[str] = (), types: Iterable[str] = ()) -> object:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        return self.comparable("nobody", self.ask("nobody", request, version))

    def delete(self, version: int) -> object:
        answer = self.ask("nobody", DeleteGroupsRequest(groups_names=[self.group_id]), version)
        return [_error(it) for it in answer.results]

    # Comparable responses

    def name_of(self, member_id: str) -> str:
        """Returns a name that does not depend on the broker: `a.1` for the first id `a-UUID`.

        Returns other ids unchanged, because they are not from a broker.
        """
        if len(member_id) < _UUID_CHARS or member_id[-_UUID_CHARS] != "-":
            return member_id
        if member_id not in self._names:
            start = member_id[:-_UUID_CHARS]
            known = sum(it[:-_UUID_CHARS] == start for it in self._names)
            self._names[member_id] = f"{start}.{known + 1}"
        return self._names[member_id]

    def comparable(self, member: str, answer: Any) -> Any:
        """Returns the fields of `answer` that both brokers must agree on; stores `member`'s ids."""
        if isinstance(answer, JoinGroupResponse):
            return self._joined(member, answer)
        if isinstance(answer, SyncGroupResponse):
            return (
                _error(answer),
                answer.protocol_type,
                answer.protocol_name,
                answer.assignment,
            )
        if isinstance(answer, HeartbeatResponse):
            return _error(answer)
        if isinstance(answer, LeaveGroupResponse):
            left = [
                (self.name_of(it.member_id), it.group_instance_id, _error(it))
                for it in answer.members
            ]
            return _error(answer), left
        if isinstance(answer, DescribeGroupsResponse):
            (group,) = answer.groups
            members = [
                (
                    self.name_of(it.member_id),
                    it.group_instance_id,
                    it.client_id,
                    it.client_host,
                    it.member_metadata,
                    it.member_assignment,
                )
                for it in group.members
            ]
            return (
                _error(group),
                bool(group.error_message),
                group.group_state,
                group.protocol_type,
                group.protocol_data,
                sorted(members),
            )
        assert isinstance(answer, ListGroupsResponse)
        return _error(answer), [
            (it.protocol_type, it.group_state, it.group_type)
            for it in answer.groups
            if it.group_id == self.group_id
        ]

    def _joined(self, member: str, answer: JoinGroupResponse) -> object:
        known = self.ids.get(member)
        if answer.member_id:
            if known not in (None, answer.member_id):
                self.former.setdefault(member, []).append(known)
            self.ids[member] = answer.member_id
            if answer.member_id not in self.issued_ids:
                self.issued_ids.append(answer.member_id)
        self.generations[member] = answer.generation_id
        self.joined_ids[member] = [it.member_id for it in answer.members]
        member_id = self.name_of(answer.member_id)
        return (
            _error(answer),
            answer.generation_id,
            answer.protocol_type,
            answer.protocol_name,
            self.name_of(answer.leader),
            member_id,
            answer.skip_assignment,
            sorted(
                (self.name_of(it.member_id), it.group_instance_id, it.metadata)
                for it in answer.members
            ),
        )


def _error(answer: Any) -> str:
    return error_code(answer.error_code).name
