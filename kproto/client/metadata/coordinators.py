"""Tracks the coordinators of groups and transactions.

Plain data: `request_router` sends FindCoordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...messages.find_coordinator_request import FindCoordinatorRequest
from ...messages.find_coordinator_response import FindCoordinatorResponse
from ...protocol.error_codes import error_of_code
from ...wire.errors import BrokerResponseError, ProtocolError
from .routing import CoordinatorType

__all__ = ["Coordinators", "coordinators_in", "find_coordinator_requests"]

#: The first version of FindCoordinator with several keys (KIP-699).
_BATCHED: Final = 4


class Coordinators:
    """Stores the node ids of known coordinators, by coordinator type and key.

    A key is a group id or a transactional id.
    """

    def __init__(self) -> None:
        self._nodes: dict[tuple[CoordinatorType, str], int] = {}

    def node(self, kind: CoordinatorType, key: str) -> int | None:
        """Returns the node id of the coordinator of `key`; None if it is unknown."""
        return self._nodes.get((kind, key))

    def store(self, kind: CoordinatorType, key: str, node: int) -> None:
        """Stores the node id of a coordinator, from FindCoordinator."""
        self._nodes[kind, key] = node

    def forget(self, kind: CoordinatorType, keys: Iterable[str]) -> None:
        """Drops coordinators that are unavailable or have moved."""
        for key in keys:
            self._nodes.pop((kind, key), None)

    def forget_all(self) -> None:
        """Drops all coordinators: a rebootstrap may lead the client to another cluster."""
        self._nodes.clear()


def find_coordinator_requests(
    kind: CoordinatorType, keys: Sequence[str], version: int
) -> list[FindCoordinatorRequest]:
    """Returns the requests for the coordinators of `keys`.

    From v4 on, one request has all keys. Before v4, there is a request for each key.
    """
    if version >= _BATCHED:
        return [FindCoordinatorRequest(key_type=kind.value, coordinator_keys=list(keys))]
    return [FindCoordinatorRequest(key=key, key_type=kind.value) for key in keys]


def coordinators_in(
    kind: CoordinatorType,
    request: FindCoordinatorRequest,
    answer: FindCoordinatorResponse,
) -> dict[str, int | BrokerResponseError]:
    """Returns the node id of the coordinator, or the error, by key of `request`.

    Raises ProtocolError if the response lacks a key.
    """
    batched = {each.key: each for each in answer.coordinators}
    found: dict[str, int | BrokerResponseError] = {}
    for key in request.coordinator_keys or [request.key]:
        what = f"the coordinator of {kind.name.lower()} {key!r}"
        each = batched.get(key) if request.coordinator_keys else answer
        if each is None:
            raise ProtocolError(f"the response to FindCoordinator does not name {what}")
        detail = f": {each.error_message}" if each.error_message else ""
        found[key] = (
            error_of_code(each.error_code, f"finding {what}{detail}")
            if each.error_code
            else each.node_id
        )
    return found
