"""Replaces the addresses of brokers in responses with those of the proxy.

A broker is identified by its node id, so that a broker that moves keeps its port at the proxy.
Knows no socket and no loop: it returns the brokers that need a port.
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
    """Identifies a broker or controller by its id; without an id (-1), by its address."""

    kind: str
    id: int
    address: Address | None = None


class NodeFields(NamedTuple):
    """Names the list of a response that has nodes, "" for the response itself, and the id field."""

    list_field: str
    node_id: str = "node_id"


#: The fields with brokers of each response that clients read, by class and attribute names.
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
    """Yields each node that a response names, its address, and the struct that has them.

    Nodes without an address, as in an error response, are left out.
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
    found: Iterable[Any] = getattr(message, fields.list_field) if fields.list_field else (message,)
    return found


class NodeMap:
    """Maps each node to its address, and to the address that the proxy advertises for it."""

    def __init__(self) -> None:
        self._targets: dict[Node, Address] = {}
        self._advertised: dict[Node, Address] = {}

    def __len__(self) -> int:
        return len(self._advertised)

    def target(self, node: Node) -> Address:
        """Returns the address of a node. Raises KeyError for an unknown one."""
        return self._targets[node]

    def advertised(self, node: Node) -> Address | None:
        """Returns the advertised address of a node; None if it has none yet."""
        return self._advertised.get(node)

    def advertise(self, node: Node, target: Address, advertised: Address) -> None:
        """Advertises the address `advertised` for a node at `target` from now on."""
        self._targets[node] = target
        self._advertised[node] = advertised

    def learn(self, message: Message) -> tuple[dict[Node, Address], dict[Node, Address]]:
        """Records the addresses of the nodes that a response names.

        Returns the addresses of nodes without an advertised one, and the new addresses of moved
        nodes.
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
    """Replaces the addresses of advertised nodes in a response; returns whether any changed."""
    is_changed = False
    for node, _, struct in nodes_in(message):
        advertised = nodes.advertised(node)
        if advertised is not None:
            struct.host, struct.port = advertised
            is_changed = True
    return is_changed
