"""Provides a broker in a thread, and a connection that sends requests in any version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    """Yields a broker with default settings."""
    with threaded_broker() as running:
        yield running


@pytest.fixture
def connection(broker: ThreadedBroker) -> Iterator[RawConnection]:
    """Yields a connection to `broker`."""
    with RawConnection(broker.bootstrap) as opened:
        yield opened
