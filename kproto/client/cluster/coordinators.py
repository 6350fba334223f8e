"""The coordinators of groups and transactions: who they are, and when that is no longer true.

Plain data: `view` sends the requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...messages.find_coordinator_request import FindCoordinatorRequest
from ...messages.find_coordinator_response import FindCoordinatorResponse
from ...protocol.error_codes import raise_for_code
from ...wire.errors import ProtocolError
from .routing import CoordinatorType

__all__ = ["Coordinators", "coordinator_of", "find_coordinator_request"]

#: FindCoordinator asks for several at once from this version on (KIP-699).
_BATCHED: Final = 4


class Coordinators:
    """The node of each coordinator, as last heard of."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[CoordinatorType, str], int] = {}

    def node(self, kind: CoordinatorType, key: str) -> int | None:
        """The coordinator of `key`; None when it is not known."""
        return self._nodes.get((kind, key))

    def learn(self, kind: CoordinatorType, key: str, node: int) -> None:
        """Take note of what FindCoordinator said."""
        self._nodes[kind, key] = node

    def forget(self, kind: CoordinatorType, keys: Iterable[str]) -> None:
        """Drop coordinators that are gone or have turned out to be others."""
        for key in keys:
            self._nodes.pop((kind, key), None)


def find_coordinator_request(
    kind: CoordinatorType, key: str, version: int
) -> FindCoordinatorRequest:
    """The request for one coordinator, in the shape that `version` has."""
    batched = version >= _BATCHED
    return FindCoordinatorRequest(
        key="" if batched else key,
        key_type=kind.value,
        coordinator_keys=[key] if batched else [],
    )


def coordinator_of(
    kind: CoordinatorType, key: str, answer: FindCoordinatorResponse, version: int
) -> int:
    """The node that a response names. Raises BrokerResponseError, or ProtocolError without one."""
    batched = version >= _BATCHED
    place = f"the coordinator of {kind.name.lower()} {key!r}"
    if batched and not answer.coordinators:
        raise ProtocolError(f"the response to FindCoordinator does not name {place}")
    found = answer.coordinators[0] if batched else answer
    detail = f": {found.error_message}" if found.error_message else ""
    raise_for_code(found.error_code, f"finding {place}{detail}")
    return found.node_id
