"""Provides the Python with the other clients and SDKs, called peers.

The peers are kafka-python, aiokafka, confluent-kafka, kio and cloudevents.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.setup import peers

from .availability import not_available

__all__ = ["peers_python"]


@pytest.fixture(scope="session")
def peers_python() -> Path:
    """Returns the path of a Python that can import the other clients and SDKs, the peers.

    Tests that use this fixture need the mark `peers`.
    """
    try:
        return peers.peers_python()
    except peers.PeersError as error:
        not_available("the peers", error)
