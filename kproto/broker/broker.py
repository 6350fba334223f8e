"""Defines `Broker`: an embedded cluster of one node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..clock import SYSTEM_CLOCK, Clock
from ..messages.base import Request
from .embedded_cluster import BrokerHandle, EmbeddedCluster
from .faults import Control, ControlFunction
from .handlers import KAFKA_APIS
from .registry import Api
from .settings import BrokerSettings

__all__ = ["Broker"]


class Broker(EmbeddedCluster, BrokerHandle):
    """Runs a Kafka broker in memory, within `async with`; `Cluster` runs several.

    `host`, `port`, `num_partitions` and `auto_create_topics` override `settings` unless they are
    None. All timestamps and timeouts use `clock`, except the timeouts of TLS handshakes and of TLS
    shutdowns. `apis` are the APIs that the broker serves, and may include your own. If two elements
    of `apis` have the same API key, the broker serves the last of them.

    Raises ConfigurationError for invalid settings, and for an API whose response is not defined.
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
        BrokerHandle.__init__(self, self._nodes[self.settings.node_id])

    def control(
        self,
        function: ControlFunction,
        *,
        request: type[Request[Any]] | None = None,
        times: int | None = None,
    ) -> Control:
        """Calls `function` with each request before the handler of the request is called.

        If `request` is not None, calls `function` only with requests of that class.

        `function` returns None to handle the request normally, a response to send instead, or
        another outcome of `kproto.broker.faults`. The control is removed after `times` outcomes
        that are not None. If `times` is None, the attribute `times` of `function` applies, such as
        `ErrorCode.times`. If `function` has no such attribute, or if the attribute is None, the
        control stays. Returns the control for `remove_control`. Raises ConfigurationError for
        invalid arguments.
        """
        return self._control(function, request, times, self._nodes)
