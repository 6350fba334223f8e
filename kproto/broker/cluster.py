"""`Cluster`: several embedded brokers in one process."""

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

#: The key types by the names that `coordinator` takes.
_KINDS: Final[Mapping[str, CoordinatorType]] = MappingProxyType(
    {
        "group": CoordinatorType.GROUP,
        "transaction": CoordinatorType.TRANSACTION,
        "share": CoordinatorType.SHARE,
    }
)


class Cluster(EmbeddedCluster):
    """A Kafka cluster in memory, for `async with`: each node listens on a port of its own.

    Node ids count up from `settings.node_id`; with a port that is set, so do the ports. `racks` are
    the racks of the nodes, `release` is the release whose versions they support, as in `settings`.
    The nodes share one state: a record that the leader appends is at all replicas at once, so that
    a stopped broker loses nothing. `clock` and `apis` are as in `Broker`. Raises ConfigurationError
    for invalid settings.
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
        """Returns `host:port` of every node, stopped or not, comma-separated as bootstrap.servers.

        Raises ConfigurationError while the cluster does not listen.
        """
        return ",".join(member.bootstrap for member in self._members.values())

    def bootstrap_of(self, listener: str) -> str:
        """Returns `bootstrap` of a listener; raises ConfigurationError for an unknown one, too."""
        return ",".join(member.bootstrap_of(listener) for member in self._members.values())

    @property
    def nodes(self) -> tuple[int, ...]:
        """Returns the ids of the nodes in order, stopped or not."""
        return tuple(self._nodes)

    def broker(self, node: int) -> BrokerHandle:
        """Returns a node: its addresses and connections.

        Raises ConfigurationError for an unknown one.
        """
        self._check_node(node)
        return self._members[node]

    @property
    def connections(self) -> int:
        """Returns the number of connected clients of all nodes."""
        return sum(member.connections for member in self._members.values())

    @property
    def controller(self) -> int:
        """Returns the id of the controller that clients see; -1 if all nodes are stopped."""
        return self._cluster.controller_id

    def coordinator(self, key: str, kind: str = "group") -> int:
        """Returns the id of the node that coordinates a group; -1 if there is none.

        `kind` may be `transaction` for a transactional id, or `share` for a share partition.
        """
        found = _KINDS.get(kind)
        if found is None:
            raise ConfigurationError(f"kind is {kind!r}: take one of {', '.join(_KINDS)}")
        return self._cluster.coordinator(found, key)

    # Actions of tests

    async def stop_broker(self, node: int) -> None:
        """Stops a node as a controlled shutdown does: other replicas become leaders first.

        Then its connections end, and no client can connect to its port, which stays reserved. Does
        nothing if it is stopped already. Raises ConfigurationError for an unknown node.
        """
        self._check_node(node)
        if self._nodes[node].is_listening:
            self._cluster.stop(node)
            await self._nodes[node].close(keep_ports=True)

    async def start_broker(self, node: int) -> None:
        """Starts a stopped node on its port again; it joins the ISRs at once.

        Raises ConfigurationError for an unknown node and while the cluster does not listen,
        BrokerConnectionError if another process uses the port.
        """
        self._check_node(node)
        if not self._is_started:
            raise ConfigurationError("the cluster does not listen; use it in `async with`")
        if not self._nodes[node].is_listening:
            self._nodes[node].start()
            self._cluster.start(node)

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Makes another in-sync replica the leader.

        Raises the leader epoch unless it leads already. Fetches that wait at the old leader are
        answered NOT_LEADER_OR_FOLLOWER. Raises BrokerResponseError for an unknown partition, and
        for a node that cannot lead it.
        """
        self._cluster.move_leader(topic, partition, node)

    def move_controller(self, node: int) -> None:
        """Makes another node the controller. Raises ConfigurationError if it is stopped."""
        self._cluster.move_controller(node)

    def control(
        self,
        function: ControlFunction,
        *,
        request: type[Request[Any]] | None = None,
        times: int | None = None,
        node: int | None = None,
    ) -> Control:
        """Adds a control as `Broker.control`, for all nodes or one.

        `times` counts over all of them.
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
    """Returns the settings of the node with that number from 0; ports that are set count up."""
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
