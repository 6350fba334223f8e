"""Runs real Apache Kafka of a given version, from Maven's jars: a broker or a cluster.

    with KafkaNode("4.4.0") as node:
        connect_to(node.bootstrap)
    with KafkaCluster("4.4.0", nodes=3, racks=("a", "b", "c")) as cluster:
        cluster.node(2).kill()

From a terminal: `python -m tools.kafka start --version 4.4.0 --nodes 3`, `status`, `stop --port N`.
"""

from .cluster import KafkaCluster
from .jars import KafkaJarsError, resolve_jars
from .node import KafkaNode, KafkaStartError, RunningNode, running_nodes

__all__ = [
    "DEFAULT_VERSION",
    "OLD_VERSIONS",
    "SMALL_INDEXES",
    "VERSIONS",
    "KafkaCluster",
    "KafkaJarsError",
    "KafkaNode",
    "KafkaStartError",
    "RunningNode",
    "resolve_jars",
    "running_nodes",
]

VERSIONS = ("4.4.0", "3.9.2")
"""The releases for all tests with a real broker: the newest, and the last 3.x."""

OLD_VERSIONS = (
    "0.8.2.2",
    "0.9.0.1",
    "0.10.0.1",
    "0.10.2.2",
    "0.11.0.3",
    "1.1.1",
    "2.0.1",
    "2.4.1",
    "2.8.2",
)
"""The last releases of the lines that need ZooKeeper and changed the protocol."""

SMALL_INDEXES = {"log.index.size.max.bytes": "4096"}
"""The configuration of a broker with thousands of partitions: two index files for each."""

DEFAULT_VERSION = VERSIONS[0]
