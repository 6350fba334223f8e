"""Runs a real Apache Pulsar, broker and storage in one process, from Maven's jars.

with PulsarNode() as node:
    connect_to(node.service_url)
"""

from .node import PulsarError, PulsarNode

__all__ = ["PulsarError", "PulsarNode"]
