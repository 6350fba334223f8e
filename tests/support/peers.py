"""The interpreter that has the peers: kafka-python, aiokafka, confluent-kafka, kio, cloudevents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.setup import peers

from .availability import not_available

__all__ = ["peers_python"]


@pytest.fixture(scope="session")
def peers_python() -> Path:
    """Path of a Python in which the peers can be imported; mark the test `peers`."""
    try:
        return peers.peers_python()
    except peers.PeersError as error:
        not_available("the peers", error)
