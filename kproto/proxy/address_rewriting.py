"""Replaces the addresses of brokers in responses with addresses of the proxy.

Identifies a broker by its node id, so that a broker whose address changes keeps its port at the
proxy. Opens no port: `NodeMap.learn` returns the brokers that need one.
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
    """Identifies a broker or controller by its node id, or by its address if the id is negative.

    `kind` is `broker` or `controller`. `address` is None if the id is 0 or more.
    """

    kind: str
    id: int
    address: Address | None = None


class NodeFields(NamedTuple):
    """Names the fields of a response that contain a node.

    `list_field` is the list of nodes; "" if the response itself has one node. `node_id` is the
    field of the node id. The address is in the fields `host` and `port`.
    """

    list_field: str
    node_id: str = "node_id"


#: The fields with brokers, by the class name of each response that clients receive.
NODE_FIELDS: Final[Mapping[str, tuple[NodeFields, ...]]] = {
    "MetadataResponse": (NodeFields("brokers"),),
    "FindCoordinatorResponse": (NodeFields(""), NodeFields("coordinators")),
    "DescribeClusterResponse": (NodeFields("brokers", "broker_id"),),
    "ProduceResponse": (NodeFields("node_endpoints"),),
    "FetchResponse": (NodeFields("node_endpoints"),),
    "ShareFetchResponse": (NodeFields("node_endpoints"),),
    "ShareAcknowledgeResponse": (NodeFields("node_endpoints"),),
}

#: Responses whose addresses are not rewritten: clients connect neither to the controllers' own
#: listeners nor to the applications of a streams group.
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

#: The `endpoint_type` of a DescribeCluster response that names controllers (KIP-919).
_CONTROLLERS: Final = 2


def nodes_in(message: Message) -> Iterator[tuple[Node, Address, Any]]:
    """Yields each broker or controller in a response, its address, and the struct that has both.

    Omits nodes without a valid address, which error responses contain. A response of another
    package may have the name of one of Kafka's responses, but not its fields; it has no node.
    """
    kind = "controller" if getattr(message, "endpoint_type", 1) == _CONTROLLERS else "broker"
    for fields in NODE_FIELDS.get(type(message)._generated().__name__, ()):
        for struct in _structs(message, fields):
            host, port, node_id = (
                getattr(struct, name, None) for name in ("host", "port", fields.node_id)
            )
            if not isinstance(host, str) or not isinstance(port, int) or node_id is None:
                continue
            if not host or not 0 < port <= 65_535:
                continue
            address = Address(host, port)
            yield Node(kind, node_id, address if node_id < 0 else None), address, struct


def _structs(message: Any, fields: NodeFields) -> Iterable[Any]:
    if not fields.list_field:
        return (message,)
    found = getattr(message, fields.list_field, ())
    return found if isinstance(found, list) else ()


class NodeMap:
    """Maps each node to its own address and to the address that the proxy advertises for it."""

    def __init__(self) -> None:
        self._targets: dict[Node, Address] = {}
        self._advertised: dict[Node, Address] = {}

    def __len__(self) -> int:
        return len(self._advertised)

    def target(self, node: Node) -> Address:
        """Returns the node's own address. Raises KeyError for an unknown node."""
        return self._targets[node]

    def advertised(self, node: Node) -> Address | None:
        """Returns the address that the proxy advertises for a node; None before `advertise`."""
        return self._advertised.get(node)

    def advertise(self, node: Node, target: Address, advertised: Address) -> None:
        """Sets the node's own address (`target`) and the address to advertise for it."""
        self._targets[node] = target
        self._advertised[node] = advertised

    def learn(self, message: Message) -> tuple[dict[Node, Address], dict[Node, Address]]:
        """Stores the addresses that a response reports for nodes.

        Returns (new, moved). `new` and `moved` map a node to the address that the broker reports.
        `new` has the unknown nodes, which need an advertised address. `moved` has the known nodes
        whose reported address has changed.
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
    """Replaces node addresses in a message by the addresses that the proxy advertises.

    Skips nodes for which the proxy advertises no address. Returns True if the message changed.
    """
    is_changed = False
    for node, _, struct in nodes_in(message):
        advertised = nodes.advertised(node)
        if advertised is not None:
            struct.host, struct.port = advertised
            is_changed = True
    return is_changed
