"""A real Apache Kafka broker of a named version, from Maven's jars, started and stopped at will.

    with KafkaNode("4.4.0") as node:
        connect_to(node.bootstrap)

From a terminal: `python -m tools.kafka start --version 4.4.0`, `status`, `stop --port N`.
"""

from .jars import KafkaJarsError, resolve_jars
from .node import KafkaNode, KafkaStartError, RunningNode, running_nodes

__all__ = [
    "DEFAULT_VERSION",
    "VERSIONS",
    "KafkaJarsError",
    "KafkaNode",
    "KafkaStartError",
    "RunningNode",
    "resolve_jars",
    "running_nodes",
]

VERSIONS = ("4.4.0", "3.9.2")
"""The releases that every test with a real broker runs against: the newest, and the last 3.x."""

DEFAULT_VERSION = VERSIONS[0]
