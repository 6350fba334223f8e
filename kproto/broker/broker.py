"""`Broker`: the public face, which makes a cluster of one node. It decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from ..clock import SYSTEM_CLOCK, Clock
from ..messages.base import Request
from ..records import Record
from .cluster import ClusterState
from .faults import Control, ControlFunction, Controls
from .handlers import KAFKA_APIS
from .node import Node
from .registry import Api
from .settings import BrokerSettings
from .topics import Topic, Topics

__all__ = ["Broker"]


class Broker:
    """A Kafka broker in memory, for `async with`.

    The four settings that tests change most may be named here; they go before those in
    `settings`. All that it dates or waits for goes by `clock`. `apis` are what it answers, a
    user's own among them; of two for one api key, the later counts. Raises ConfigurationError for
    a setting that cannot work, and for an API whose response is not defined.
    """

    def __init__(
        self,
        settings: BrokerSettings | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
        num_partitions: int | None = None,
        auto_create_topics: bool | None = None,
        clock: Clock = SYSTEM_CLOCK,
        apis: Iterable[Api] = KAFKA_APIS,
    ) -> None:
        named: dict[str, Any] = {
            "host": host,
            "port": port,
            "num_partitions": num_partitions,
            "auto_create_topics": auto_create_topics,
        }
        given = {name: value for name, value in named.items() if value is not None}
        self.settings = replace(settings or BrokerSettings(), **given)
        self._cluster = ClusterState(self.settings)
        self._clock = clock
        self._controls = Controls()
        self._node = Node(self.settings, self._cluster, apis, self._controls, clock)

    # Life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Listen. Raises BrokerConnectionError when the address cannot be had."""
        self._node.start()

    async def close(self) -> None:
        """Stop listening and end every connection; topics stay, and `start` serves them again.

        Cancelled, it ends them all the same, and does not wait until nothing of them is left.
        """
        await self._node.close()

    # What a test wants to know

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients, as advertised.

        Raises ConfigurationError while the broker does not listen.
        """
        return self._node.bootstrap

    def bootstrap_of(self, listener: str) -> str:
        """`host:port` of a listener for clients, as advertised; `bootstrap` is that of the first.

        Raises ConfigurationError for an unknown one, and while the broker does not listen.
        """
        return self._node.bootstrap_of(listener)

    @property
    def listens_at(self) -> str:
        """`host:port` where the broker itself listens, for a proxy or a forwarded port.

        It is `bootstrap` unless another host or port is advertised; of several listeners it is
        the first. Raises ConfigurationError
        while the broker does not listen.
        """
        return self._node.listens_at

    @property
    def cluster_id(self) -> str:
        """The id that clients see in metadata."""
        return self._cluster.cluster_id

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return self._node.connections

    @property
    def topics(self) -> dict[str, Topic]:
        """The topics by name; a copy."""
        return {topic.name: topic for topic in self._kept()}

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """The offset that the next record will get. Raises BrokerResponseError."""
        return self._kept().named(topic).partition(partition).log.end_offset

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """Every record of a partition, decoded.

        Raises BrokerResponseError for an unknown one, CorruptBatchError, MissingCodecError.
        """
        log = self._kept().named(topic).partition(partition).log
        return [
            record
            for batch in log
            if not batch.is_control
            for record in batch.records(from_offset=log.start_offset)
        ]

    def _kept(self) -> Topics:
        """The topics, without what they no longer keep now."""
        self._cluster.topics.keep_retention(self._clock.now_ms())
        return self._cluster.topics

    # What a test wants to do

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        configs: Mapping[str, str | None] | None = None,
    ) -> Topic:
        """Create a topic, with the default of partitions unless they are given.

        Raises BrokerResponseError, as a client would get it.
        """
        topic = self._cluster.plan_topic(
            name, -1 if partitions is None else partitions, configs=configs
        )
        self._cluster.topics.add(topic)
        return topic

    def delete_topic(self, name: str) -> None:
        """Delete a topic. Raises BrokerResponseError."""
        self._cluster.topics.remove(self._cluster.topics.named(name))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move the start of a log to offset `before`. Raises BrokerResponseError."""
        self._cluster.topics.named(topic).partition(partition).log.delete_before(before)

    def control(
        self,
        function: ControlFunction,
        *,
        request: type[Request[Any]] | None = None,
        times: int | None = None,
    ) -> Control:
        """Let `function` see each request, or those of class `request`, before the broker does.

        It returns None to let the request pass, or a response, `Delay` or `Close`. After it has
        decided `times` it is asked no more. Give what comes back to `remove_control`.
        """
        return self._controls.add(function, request, times)

    def remove_control(self, control: Control) -> None:
        """Take a control function away."""
        self._controls.remove(control)
