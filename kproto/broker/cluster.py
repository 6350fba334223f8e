"""Defines `Cluster`: several embedded brokers in one process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from ..clock import SYSTEM_CLOCK, Clock
from ..messages.base import Request
from ..wire.checks import check_whole_number
from ..wire.errors import ConfigurationError
from .coordinators import CoordinatorType
from .embedded_cluster import BrokerHandle, EmbeddedCluster
from .faults import Control, ControlFunction
from .handlers import KAFKA_APIS
from .listeners import Listener
from .registry import Api
from .releases import Release
from .settings import BrokerSettings

__all__ = ["Cluster"]

#: The key types of FindCoordinator, by the argument `kind` of `Cluster.coordinator`.
_KINDS: Final[Mapping[str, CoordinatorType]] = MappingProxyType(
    {
        "group": CoordinatorType.GROUP,
        "transaction": CoordinatorType.TRANSACTION,
        "share": CoordinatorType.SHARE,
    }
)


class Cluster(EmbeddedCluster):
    """Runs a Kafka cluster in memory, within `async with`; each node listens on its own port.

    Node ids count up from `settings.node_id`. If a port in `settings` is not 0, it is the port of
    the first node, and the ports of the other nodes count up from it. `racks` has the rack of each
    node; if None, all nodes have `settings.rack`. `release` sets `settings.release`, which must be
    None or the same release. `clock` and `apis` are as in `Broker`.

    All nodes share one log for each partition. So a record is on all replicas as soon as the leader
    has appended it, and a stopped broker loses no records.

    Raises ConfigurationError for invalid arguments.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        racks: Sequence[str | None] | None = None,
        release: Release | None = None,
        settings: BrokerSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
        apis: Iterable[Api] = KAFKA_APIS,
    ) -> None:
        check_whole_number("brokers", brokers, 1)
        self.settings = settings or BrokerSettings()
        if release is not None:
            if self.settings.release not in (None, release):
                raise ConfigurationError(
                    f"release is {release!r:.80}, and in settings {self.settings.release!r:.80}: "
                    "name one of them"
                )
            self.settings = replace(self.settings, release=release)
        if racks is None:
            racks = [self.settings.rack] * brokers
        elif isinstance(racks, str) or len(racks) != brokers:
            raise ConfigurationError(
                f"racks is {racks!r}: give a list of as many as there are brokers, {brokers}"
            )
        super().__init__(
            [_settings_of(self.settings, number, rack) for number, rack in enumerate(racks)],
            clock,
            apis,
        )
        self._members = {number: BrokerHandle(node) for number, node in self._nodes.items()}

    # State for tests

    @property
    def bootstrap(self) -> str:
        """Returns `host:port` of all nodes, comma-separated as for bootstrap.servers.

        Stopped nodes are included. Raises ConfigurationError while the cluster does not listen.
        """
        return ",".join(member.bootstrap for member in self._members.values())

    def bootstrap_of(self, listener: str) -> str:
        """Returns the comma-separated `host:port` of all nodes for the listener named `listener`.

        Raises ConfigurationError for an unknown listener, and while the cluster does not listen.
        """
        return ",".join(member.bootstrap_of(listener) for member in self._members.values())

    @property
    def nodes(self) -> tuple[int, ...]:
        """Returns the ids of all nodes in ascending order, including stopped nodes."""
        return tuple(self._nodes)

    def broker(self, node: int) -> BrokerHandle:
        """Returns the node with the id `node`. Raises ConfigurationError for an unknown id."""
        self._check_node(node)
        return self._members[node]

    @property
    def connections(self) -> int:
        """Returns the number of client connections of all nodes."""
        return sum(member.connections for member in self._members.values())

    @property
    def controller(self) -> int:
        """Returns the node id of the controller; -1 if all nodes are stopped."""
        return self._cluster.controller_id

    def coordinator(self, key: str, kind: str = "group") -> int:
        """Returns the node id of the coordinator of `key`; -1 if there is none.

        If `kind` is `group`, `key` is a group id; the first lookup of a group creates
        `__consumer_offsets`. If `kind` is `transaction`, `key` is a transactional id. If `kind` is
        `share`, `key` is a share partition, `group:topicId:partition`. Raises ConfigurationError
        for another kind.
        """
        found = _KINDS.get(kind)
        if found is None:
            raise ConfigurationError(f"kind is {kind!r}: take one of {', '.join(_KINDS)}")
        return self._cluster.coordinator(found, key)

    # Actions of tests

    async def stop_broker(self, node: int) -> None:
        """Stops a node as a controlled shutdown does.

        Before the node closes its connections, each partition that it leads gets another in-sync
        replica as the leader. A partition without another in-sync replica loses its leader. The
        ports of the node stay reserved, and clients cannot connect. Does nothing if the node is
        stopped. Raises ConfigurationError for an unknown node.
        """
        self._check_node(node)
        if self._nodes[node].is_listening:
            self._cluster.stop(node)
            await self._nodes[node].close(keep_ports=True)

    async def start_broker(self, node: int) -> None:
        """Starts a stopped node on the same ports.

        The node joins the ISR of each of its partitions at once, except for partitions that still
        have no leader. Does nothing if the node is not stopped. Raises ConfigurationError for an
        unknown node and while the cluster does not listen. Raises BrokerConnectionError if another
        process uses a port.
        """
        self._check_node(node)
        if not self._is_started:
            raise ConfigurationError("the cluster does not listen; use it in `async with`")
        if not self._nodes[node].is_listening:
            self._nodes[node].start()
            self._cluster.start(node)

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Makes the in-sync replica `node` the leader of a partition, and bumps the leader epoch.

        The former leader checks its delayed Fetches again. A Fetch with the former leader epoch
        gets FENCED_LEADER_EPOCH. A Fetch without a leader epoch gets NOT_LEADER_OR_FOLLOWER before
        v11; since v11 the former leader serves such a Fetch as a follower. Does nothing if `node`
        is the leader. Raises BrokerResponseError for an unknown partition, and for a node that is
        stopped or not in sync.
        """
        self._cluster.move_leader(topic, partition, node)

    def move_controller(self, node: int) -> None:
        """Makes a node the controller.

        Raises ConfigurationError if the node is unknown or stopped.
        """
        self._cluster.move_controller(node)

    def control(
        self,
        function: ControlFunction,
        *,
        request: type[Request[Any]] | None = None,
        times: int | None = None,
        node: int | None = None,
    ) -> Control:
        """Adds a control as `Broker.control` does: for all nodes, or only for the node `node`.

        The control is removed after `function` has returned `times` outcomes other than None; the
        outcomes on all nodes count together.
        """
        if node is not None:
            self._check_node(node)
        return self._control(function, request, times, self._nodes if node is None else [node])

    def _check_node(self, node: int) -> None:
        if node not in self._nodes:
            raise ConfigurationError(
                f"there is no broker {node!r}: take one of {', '.join(map(str, self._nodes))}"
            )


def _settings_of(settings: BrokerSettings, number: int, rack: str | None) -> BrokerSettings:
    """Returns the settings of node `number`, counted from 0, with its node id, rack and ports."""
    listeners = tuple(_listener_of(each, number) for each in settings.listeners)
    advertised = settings.advertised_port
    return replace(
        settings,
        node_id=settings.node_id + number,
        rack=rack,
        port=settings.port + number if settings.port else 0,
        advertised_port=None if advertised is None else advertised + number,
        listeners=listeners,
    )


def _listener_of(listener: Listener, number: int) -> Listener:
    advertised = listener.advertised_port
    return replace(
        listener,
        port=listener.port + number if listener.port else 0,
        advertised_port=None if advertised is None else advertised + number,
    )
