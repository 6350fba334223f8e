"""Provides an embedded broker in a thread, and fails a test that leaves a thread of the client."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from tests.support.embedded import ThreadedBroker, threaded_broker


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    """An embedded broker with the topic `t` of three partitions and `one` of one partition."""
    with threaded_broker() as running:
        running.call(lambda it: it.create_topic("t", partitions=3))
        running.call(lambda it: it.create_topic("one"))
        yield running


def client_threads() -> list[str]:
    """Returns the names of the threads of the blocking client."""
    return [each.name for each in threading.enumerate() if each.name.startswith("kproto.sync")]


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    yield
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("kproto.sync"):
            thread.join(10)  # a client that was dropped is closed in the background
    assert client_threads() == []
