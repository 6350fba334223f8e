"""Runs embedded brokers in a thread, for tests that block and for other processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, TypeAlias, TypeVar

from kproto.broker import Broker, BrokerSettings, Cluster
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.registry import Api
from kproto.clock import SYSTEM_CLOCK, Clock
from kproto.loop_thread import LoopThread
from kproto.testing.clock import ManualClock
from kproto.wire.uuid import Uuid

__all__ = [
    "UNKNOWN_TOPIC_ID",
    "ThreadedBroker",
    "ThreadedCluster",
    "threaded_broker",
    "threaded_cluster",
]

T = TypeVar("T")
B = TypeVar("B", Broker, Cluster)

STOP_TIMEOUT_S = 60.0

UNKNOWN_TOPIC_ID = Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")
"""An id that no topic of a test has: Kafka reserves it for the metadata log."""


class _Threaded(Generic[B]):
    """A running broker or cluster; `call` runs a function in its event loop."""

    def __init__(self, thread: LoopThread[B]) -> None:
        self._thread: LoopThread[B] = thread
        self.bootstrap = self.call(lambda it: it.bootstrap)

    def call(self, function: Callable[[B], T]) -> T:
        """Runs `function(broker)` in the broker's thread, and returns its result."""
        return self._thread.call(function)

    def wait_for(self, function: Callable[[B], Coroutine[Any, Any, T]]) -> T:
        """Awaits `function(broker)` in the broker's thread, and returns its result."""
        return self._thread.run(function)

    def advance(self, clock: ManualClock, ms: float) -> None:
        """Advances the broker's clock, in the broker's thread."""
        self._thread.run(lambda _: clock.advance(ms))

    def until(self, condition: Callable[[B], object]) -> None:
        """Waits until `condition(broker)` holds; fails after `STOP_TIMEOUT_S`."""
        end = time.monotonic() + STOP_TIMEOUT_S
        while not self.call(condition):
            assert time.monotonic() < end, "what was waited for did not come"
            time.sleep(0.001)

    def topic_id(self, name: str) -> Uuid:
        """Returns the id of an existing topic."""
        return self.call(lambda it: it.topics[name].topic_id)


ThreadedBroker: TypeAlias = _Threaded[Broker]
ThreadedCluster: TypeAlias = _Threaded[Cluster]


def threaded_broker(
    settings: BrokerSettings | None = None,
    *,
    clock: Clock = SYSTEM_CLOCK,
    apis: Iterable[Api] = KAFKA_APIS,
) -> AbstractContextManager[ThreadedBroker]:
    """Runs a broker in a thread until the end of the block."""
    return _threaded(lambda: Broker(settings, clock=clock, apis=apis))


def threaded_cluster(
    brokers: int = 3,
    *,
    racks: Sequence[str | None] | None = None,
    settings: BrokerSettings | None = None,
) -> AbstractContextManager[ThreadedCluster]:
    """Runs several brokers in a thread until the end of the block."""
    return _threaded(lambda: Cluster(brokers, racks=racks, settings=settings))


@contextmanager
def _threaded(make: Callable[[], B]) -> Iterator[_Threaded[B]]:
    with LoopThread(make) as thread:
        yield _Threaded(thread)
