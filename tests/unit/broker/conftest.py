"""A broker in a thread, and a connection to it that speaks any version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    """A broker with default settings."""
    with threaded_broker() as running:
        yield running


@pytest.fixture
def connection(broker: ThreadedBroker) -> Iterator[RawConnection]:
    """One connection to `broker`."""
    with RawConnection(broker.bootstrap) as opened:
        yield opened
