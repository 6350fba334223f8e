"""Several Kafka nodes in one cluster, each a broker and a controller.

Each node is a `KafkaNode` that can be killed, stopped and started separately. A node keeps its
ports and data when it starts again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tools.setup.ports import free_ports

from .in_block import ServerContextManager
from .node import POLL_S, START_TIMEOUT_S, KafkaNode, KafkaStartError
from .old_releases import needs_zookeeper
from .probe import known_brokers
from .properties import HOST, Ports, cluster_properties
from .storage import new_id

__all__ = ["KafkaCluster"]

HEAP = "320m"
"""With this heap, three nodes and the tests fit in 4 GB; records are in files, not on the heap."""


class KafkaCluster(ServerContextManager):
    """`nodes` brokers of one cluster, on free ports of the loopback address.

    `racks` has the rack of each node. `config` overrides settings of server.properties on all
    nodes, and `configs` on each node separately. If `config` or `configs` sets listeners, pass the
    nodes' `ports`, too. As a context manager, the cluster runs during the block; its data is
    removed afterwards.

    Node ids count from 1. `cluster.node(2).kill()` kills a node; `cluster.node(2).start()` restarts
    it with the same ports and data. `start` starts all stopped nodes in parallel, because one node
    of three answers only when a second node runs. Raises the errors of `KafkaNode`, and
    `KafkaStartError` if the numbers of racks and nodes differ.
    """

    def __init__(
        self,
        version: str,
        *,
        nodes: int = 3,
        racks: Sequence[str] = (),
        config: Mapping[str, str] | None = None,
        configs: Sequence[Mapping[str, str]] = (),
        ports: Sequence[Ports] = (),
        format_arguments: Sequence[str] = (),
        heap: str = HEAP,
        detached: bool = False,
    ) -> None:
        if needs_zookeeper(version):
            raise KafkaStartError(
                f"Kafka {version} runs with ZooKeeper, as one broker: use KafkaNode, or a cluster "
                "of 3.3 or later"
            )
        if nodes < 1:
            raise KafkaStartError(f"a cluster of {nodes} nodes: name at least one")
        if racks and len(racks) != nodes:
            raise KafkaStartError(f"{len(racks)} racks for {nodes} nodes: name one for each")
        self.version = version
        if not ports:
            free = free_ports(2 * nodes, host=HOST)
            ports = [
                Ports(broker=broker, controller=controller)
                for broker, controller in zip(free[:nodes], free[nodes:], strict=True)
            ]
        cluster_id = new_id()
        self.nodes = {
            at: KafkaNode(
                version,
                ports=ports[at - 1],
                cluster_id=cluster_id,
                config={
                    **cluster_properties(at, ports, racks),
                    **(configs[at - 1] if configs else {}),
                    **(config or {}),
                },
                format_arguments=format_arguments,
                heap=heap,
                detached=detached,
            )
            for at in range(1, nodes + 1)
        }
        self.bootstrap = ",".join(node.bootstrap for node in self.nodes.values())

    def node(self, number: int) -> KafkaNode:
        """Returns the node with this id, from 1."""
        return self.nodes[number]

    def start(self) -> None:
        """Starts all stopped nodes, and waits until each node has all others in its metadata."""
        try:
            self._each(KafkaNode.start)
            self.wait_for_all()
        except BaseException:
            self._each(KafkaNode.close)
            raise

    def wait_for_all(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Waits until each node knows all others as live brokers. Raises `KafkaStartError`."""
        deadline = time.monotonic() + timeout_s
        while not all(
            known_brokers(HOST, node.ports.broker, timeout_s=1.0) == len(self.nodes)
            for node in self.nodes.values()
        ):
            if time.monotonic() > deadline:
                raise KafkaStartError(
                    f"not all of {self.bootstrap} knew of each other in {timeout_s:g} s"
                )
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Stops all nodes cleanly; their data and ports stay."""
        self._each(KafkaNode.stop)

    def close(self) -> None:
        """Stops all nodes and removes their data."""
        self._each(KafkaNode.close)

    def _each(self, action: Callable[[KafkaNode], None]) -> None:
        """Calls `action` on all nodes in parallel; when all have ended, raises the first error."""
        with ThreadPoolExecutor(len(self.nodes)) as threads:
            pending = [threads.submit(action, node) for node in self.nodes.values()]
        for done in pending:
            done.result()
