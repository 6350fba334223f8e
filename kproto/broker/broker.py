"""`Broker`: the public face of a cluster of one node. It decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..clock import SYSTEM_CLOCK, Clock
from ..messages.base import Request
from .embedded_cluster import EmbeddedCluster, Member
from .faults import Control, ControlFunction
from .handlers import KAFKA_APIS
from .registry import Api
from .settings import BrokerSettings

__all__ = ["Broker"]


class Broker(EmbeddedCluster, Member):
    """A Kafka broker in memory, for `async with`; `Cluster` has several.

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
        EmbeddedCluster.__init__(self, [self.settings], clock, apis)
        Member.__init__(self, self._nodes[self.settings.node_id])

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
        return self._control(function, request, times, self._nodes)
