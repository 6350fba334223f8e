"""Which addresses of brokers stand in a response, and which of the proxy's take their place.

A broker is known by its id, so that one that moves keeps its place behind the proxy. Knows no
socket and no loop: who opens ports is told which brokers want one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ..messages.base import Message
from .settings import Address

__all__ = [
    "NODE_FIELDS",
    "UNREWRITTEN_RESPONSES",
    "Node",
    "NodeFields",
    "NodeMap",
    "nodes_in",
    "rewrite_addresses",
]


class Node(NamedTuple):
    """A broker or controller by its id; without one, which is -1, by its address alone."""

    kind: str
    id: int
    address: Address | None = None


class NodeFields(NamedTuple):
    """Where a response names nodes: a list, or the response itself where that is empty."""

    of: str
    node_id: str = "node_id"


#: Where each response that clients read names brokers, by the names of classes and attributes.
NODE_FIELDS: Final[Mapping[str, tuple[NodeFields, ...]]] = {
    "MetadataResponse": (NodeFields("brokers"),),
    "FindCoordinatorResponse": (NodeFields(""), NodeFields("coordinators")),
    "DescribeClusterResponse": (NodeFields("brokers", "broker_id"),),
    "ProduceResponse": (NodeFields("node_endpoints"),),
    "FetchResponse": (NodeFields("node_endpoints"),),
    "ShareFetchResponse": (NodeFields("node_endpoints"),),
    "ShareAcknowledgeResponse": (NodeFields("node_endpoints"),),
}

#: Responses with addresses that stay: those of controllers' own listeners, which no client connects
#: to, and of the applications of a streams group.
UNREWRITTEN_RESPONSES: Final = frozenset(
    {
        "BeginQuorumEpochResponse",
        "DescribeQuorumResponse",
        "EndQuorumEpochResponse",
        "FetchSnapshotResponse",
        "StreamsGroupDescribeResponse",
        "StreamsGroupHeartbeatResponse",
        "UpdateRaftVoterResponse",
        "VoteResponse",
    }
)

#: `endpoint_type` of DescribeCluster when it names controllers (KIP-919).
_CONTROLLERS: Final = 2


def nodes_in(message: Message) -> Iterator[tuple[Node, Address, Any]]:
    """Each node that a response names, where that is, and the struct that says so.

    Nodes without an address, as in an answer that is an error, are left out.
    """
    kind = "controller" if getattr(message, "endpoint_type", 1) == _CONTROLLERS else "broker"
    for fields in NODE_FIELDS.get(type(message)._generated().__name__, ()):
        for struct in _structs(message, fields):
            if not struct.host or not 0 < struct.port <= 65_535:
                continue
            address = Address(struct.host, struct.port)
            node_id = getattr(struct, fields.node_id)
            yield Node(kind, node_id, address if node_id < 0 else None), address, struct


def _structs(message: Any, fields: NodeFields) -> Iterable[Any]:
    found: Iterable[Any] = getattr(message, fields.of) if fields.of else (message,)
    return found


class NodeMap:
    """Where each node is, and where it is met behind the proxy."""

    def __init__(self) -> None:
        self._targets: dict[Node, Address] = {}
        self._advertised: dict[Node, Address] = {}

    def __len__(self) -> int:
        return len(self._advertised)

    def target(self, node: Node) -> Address:
        """Where a node is that has a place. Raises KeyError for one that nobody named."""
        return self._targets[node]

    def advertised(self, node: Node) -> Address | None:
        """Where clients are told that a node is; None when it has no place yet."""
        return self._advertised.get(node)

    def advertise(self, node: Node, target: Address, advertised: Address) -> None:
        """Tell clients from now on that a node, which is at `target`, is at `advertised`."""
        self._targets[node] = target
        self._advertised[node] = advertised

    def learn(self, message: Message) -> tuple[dict[Node, Address], dict[Node, Address]]:
        """Take note of where the nodes are that a response names.

        Returns where those are that have no place yet, and where those are now that moved.
        """
        new: dict[Node, Address] = {}
        moved: dict[Node, Address] = {}
        for node, address, _ in nodes_in(message):
            if node not in self._advertised:
                new[node] = address
            elif self._targets[node] != address:
                self._targets[node] = moved[node] = address
        return new, moved


def rewrite_addresses(message: Message, nodes: NodeMap) -> bool:
    """Put the proxy's address where the response names a node that has a place; whether it did."""
    is_changed = False
    for node, _, struct in nodes_in(message):
        advertised = nodes.advertised(node)
        if advertised is not None:
            struct.host, struct.port = advertised
            is_changed = True
    return is_changed
