"""Members of a group on a broker, real or embedded: what each hears, in words both have in common.

A member has a connection of its own, named as the member is. Ids differ from broker to broker; they
begin with the name of who got them, so that the n-th id of `a` is told as `a.n`.
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

__all__ = ["IN_TURN", "PATIENCE_S", "WAITS", "Side"]

#: Settings of a real broker that reads and handles requests one after the other, as ours does.
IN_TURN: Final = {"num.network.threads": "1", "num.io.threads": "1"}

#: How long a broker may take for what it will do.
PATIENCE_S: Final = 20.0
#: What a member hears that is not answered yet.
WAITS: Final = "waits"

_UUID_CHARS: Final = 37


class Side:
    """One broker and the members of group `group_id` there."""

    def __init__(self, bootstrap: str, group_id: str) -> None:
        self.bootstrap = bootstrap
        self.group_id = group_id
        #: The member id that each has been told last, and its generation.
        self.ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        #: All ids that were told, as they came.
        self.given: list[str] = []
        #: Ids that each had before, and may still be members.
        self.former: dict[str, list[str]] = {}
        #: Whom the last generation of each was told to be led by, and the ids told to a leader.
        self.told: dict[str, list[str]] = {}
        self.waiting: set[str] = set()
        self._connections: dict[str, RawConnection] = {}
        self._names: dict[str, str] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.__exit__(None, None, None)

    def wait_for_coordinator(self) -> None:
        """Brokers make the topic of groups when somebody looks for a coordinator."""
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

    def ask(self, who: str, request: Request[Any], version: int) -> Any:
        """The answer to a request that is answered at once."""
        return self._connection(who).exchange(request, version)

    def post(self, who: str, request: Request[Any], version: int) -> None:
        """Send what may have to wait."""
        self._connection(who).send(request, version)
        self.waiting.add(who)

    def _connection(self, who: str) -> RawConnection:
        if who not in self._connections:
            self._connections[who] = RawConnection(self.bootstrap, who, timeout=PATIENCE_S)
        return self._connections[who]

    def arrives(self) -> None:
        """Wait until the broker has handled what was sent, of which nothing may be to be seen.

        It handles requests `IN_TURN`: the first of these is read with what came before, or later,
        and the second is handled after that.
        """
        for _ in range(2):
            self.describe()

    def has_heard(self, who: str) -> bool:
        """Whether the request of `who` is answered."""
        return who in self.waiting and self._connection(who).has_answer(0)

    def hears(self, who: str, timeout_s: float) -> object:
        """What the request of `who` was answered with, or WAITS."""
        connection = self._connection(who)
        if not connection.has_answer(timeout_s):
            return WAITS
        self.waiting.discard(who)
        try:
            return self.in_words(who, connection.receive())
        except ClosedByBrokerError:
            connection.__exit__(None, None, None)
            del self._connections[who]
            return "closed"

    def join(
        self,
        who: str,
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
        self.post(who, request, version)

    def sync(
        self,
        who: str,
        version: int,
        member_id: str,
        generation: int,
        assigned: Iterable[str] = (),
        *,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = None,
    ) -> None:
        """The leader assigns to each id its name."""
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
        self.post(who, request, version)

    def beat(
        self,
        who: str,
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
        return self.in_words(who, self.ask(f"{who}-beats", request, version))

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
        return self.in_words("nobody", self.ask("nobody", request, version))

    def describe(self, version: int = 5) -> Any:
        request = DescribeGroupsRequest(groups=[self.group_id])
        return self.in_words("nobody", self.ask("nobody", request, version))

    def list(self, version: int, states: Iterable[str] = (), types: Iterable[str] = ()) -> object:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        return self.in_words("nobody", self.ask("nobody", request, version))

    def delete(self, version: int) -> object:
        answer = self.ask("nobody", DeleteGroupsRequest(groups_names=[self.group_id]), version)
        return [_error(it) for it in answer.results]

    # Words

    def name_of(self, member_id: str) -> str:
        """`a.1` for the first id that was seen of `a`; as it is, if no broker gave it."""
        if len(member_id) < _UUID_CHARS or member_id[-_UUID_CHARS] != "-":
            return member_id
        if member_id not in self._names:
            start = member_id[:-_UUID_CHARS]
            known = sum(it[:-_UUID_CHARS] == start for it in self._names)
            self._names[member_id] = f"{start}.{known + 1}"
        return self._names[member_id]

    def in_words(self, who: str, answer: Any) -> Any:
        """What both brokers should say alike; what `who` has to know for later is kept."""
        if isinstance(answer, JoinGroupResponse):
            return self._joined(who, answer)
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

    def _joined(self, who: str, answer: JoinGroupResponse) -> object:
        known = self.ids.get(who)
        if answer.member_id:
            if known not in (None, answer.member_id):
                self.former.setdefault(who, []).append(known)
            self.ids[who] = answer.member_id
            if answer.member_id not in self.given:
                self.given.append(answer.member_id)
        self.generations[who] = answer.generation_id
        self.told[who] = [it.member_id for it in answer.members]
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
