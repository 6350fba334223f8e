"""Defines `ScriptedGroup`: the coordinator of a group with one member, on a `ScriptedBroker`.

The coordinator assigns member ids, counts generations and returns the leader's assignment. A test
sets errors in `errors`, delays answers with `hold`, or replaces an entry of `broker.answers`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from kproto.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kproto.messages.base import Request
from kproto.messages.find_coordinator_response import Coordinator
from kproto.messages.join_group_response import JoinGroupResponseMember
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.error_codes import code_of
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker

__all__ = ["ScriptedGroup"]

#: The version from which JoinGroup answers MEMBER_ID_REQUIRED (KIP-394).
_GIVES_IDS = 4


class ScriptedGroup:
    """Answers requests of one member; `member_id` is None while the group is empty."""

    def __init__(self, broker: ScriptedBroker, node: int = 0) -> None:
        self.broker = broker
        self.node = node
        self.port = broker.port
        self.member_id: str | None = None
        self.ids = 0
        self.generation = 0
        self.rebalances = False  # heartbeats are answered with REBALANCE_IN_PROGRESS
        self.protocol = ""
        self.assignments: dict[str, bytes] = {}
        self.errors: dict[type[Request[Any]], list[str]] = defaultdict(list)
        self.held: dict[type[Request[Any]], asyncio.Event] = {}
        for request, answer in {
            FindCoordinatorRequest: self.find,
            JoinGroupRequest: self.join,
            SyncGroupRequest: self.sync,
            HeartbeatRequest: self.beat,
            LeaveGroupRequest: self.leave,
        }.items():
            broker.answers[request] = self.answering(request, answer)

    def answering(self, request: type[Request[Any]], answer: Any) -> Any:
        async def answered(asked: ReceivedRequest) -> Any:
            held = self.held.get(request)
            if held is not None:
                await held.wait()
            error = self.errors[request].pop(0) if self.errors[request] else "NONE"
            if error == HANG_UP:
                return HANG_UP
            return answer(asked, code_of(error))

        return answered

    def hold(self, request: type[Request[Any]]) -> asyncio.Event:
        """Delays answers to `request` until the returned event is set."""
        self.held[request] = asyncio.Event()
        return self.held[request]

    def find(self, asked: ReceivedRequest, code: int) -> FindCoordinatorResponse:
        request = asked.message
        assert isinstance(request, FindCoordinatorRequest)
        if asked.version >= _GIVES_IDS:
            found = Coordinator(
                key=request.coordinator_keys[0],
                node_id=self.node,
                host="127.0.0.1",
                port=self.port,
                error_code=code,
            )
            return FindCoordinatorResponse(coordinators=[found])
        return FindCoordinatorResponse(
            node_id=self.node, host="127.0.0.1", port=self.port, error_code=code
        )

    def join(self, asked: ReceivedRequest, code: int) -> JoinGroupResponse:
        request = asked.message
        assert isinstance(request, JoinGroupRequest)
        if code:
            return JoinGroupResponse(error_code=code, protocol_name="")
        if not request.member_id:
            self.ids += 1
            self.member_id = f"member-{self.ids}"
            if asked.version >= _GIVES_IDS and request.group_instance_id is None:
                required = code_of("MEMBER_ID_REQUIRED")
                return JoinGroupResponse(
                    error_code=required, member_id=self.member_id, protocol_name=""
                )
        elif request.member_id != self.member_id:
            return JoinGroupResponse(error_code=code_of("UNKNOWN_MEMBER_ID"), protocol_name="")
        self.generation += 1
        self.rebalances = False
        first = request.protocols[0]
        self.protocol = first.name
        me = JoinGroupResponseMember(member_id=self.member_id or "", metadata=first.metadata)
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer" if asked.version >= 7 else None,
            protocol_name=first.name,
            leader=self.member_id or "",
            member_id=self.member_id or "",
            members=[me],
        )

    def sync(self, asked: ReceivedRequest, code: int) -> SyncGroupResponse:
        request = asked.message
        assert isinstance(request, SyncGroupRequest)
        code = code or self.fault(request)
        if code:
            return SyncGroupResponse(error_code=code)
        self.assignments = {each.member_id: each.assignment for each in request.assignments}
        is_newest = asked.version >= 5
        return SyncGroupResponse(
            protocol_type="consumer" if is_newest else None,
            protocol_name=self.protocol if is_newest else None,
            assignment=self.assignments.get(request.member_id, b""),
        )

    def beat(self, asked: ReceivedRequest, code: int) -> HeartbeatResponse:
        request = asked.message
        assert isinstance(request, HeartbeatRequest)
        code = code or self.fault(request)
        if not code and self.rebalances:
            code = code_of("REBALANCE_IN_PROGRESS")
        return HeartbeatResponse(error_code=code)

    def leave(self, asked: ReceivedRequest, code: int) -> LeaveGroupResponse:
        if not code:
            self.member_id = None
        return LeaveGroupResponse(error_code=code)

    def fault(self, request: SyncGroupRequest | HeartbeatRequest) -> int:
        if request.member_id != self.member_id:
            return code_of("UNKNOWN_MEMBER_ID")
        return 0 if request.generation_id == self.generation else code_of("ILLEGAL_GENERATION")
