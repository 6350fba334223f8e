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

SMALL_INDEXES = {"log.index.size.max.bytes": "4096"}
"""The configuration of a broker with thousands of partitions: two index files for each."""

DEFAULT_VERSION = VERSIONS[0]
