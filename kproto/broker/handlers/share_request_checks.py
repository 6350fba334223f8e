"""Checks the member id of the requests of share groups, and finds current leaders (KIP-932)."""

from __future__ import annotations

from typing import Final

from ..api_error import api_error
from ..context import Context
from ..listeners import Endpoint

__all__ = ["LEADER_ERRORS", "check_member_id", "leader_endpoints"]

#: The length of a UUID in the usual notation. Members generate such ids.
_MOST_CHARS: Final = 36

#: The errors with which a response has the current leader.
LEADER_ERRORS: Final = frozenset({"NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"})


def check_member_id(member_id: str | None) -> None:
    """Raises INVALID_REQUEST for a null, empty or too long member id, without a message."""
    if not member_id or len(member_id.encode("utf-16-be", "surrogatepass")) // 2 > _MOST_CHARS:
        raise api_error("INVALID_REQUEST", "")


def leader_endpoints(context: Context, leader: int) -> list[Endpoint]:
    """Returns the endpoint of a leader for the client's listener; empty if there is none."""
    return [
        it for it in context.cluster.endpoints(context.endpoint.listener) if it.node_id == leader
    ]
