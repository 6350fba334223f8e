"""Forwards the connections of Kafka clients to brokers, and reports their traffic.

`Proxy` listens and forwards. `kproto.study` decodes the traffic. `address_rewriting` replaces the
addresses of brokers in responses.
"""

from __future__ import annotations

from .event_log import EventFilter, event_as_json, event_as_text
from .proxy import Proxy
from .settings import ProxySettings

__all__ = ["EventFilter", "Proxy", "ProxySettings", "event_as_json", "event_as_text"]
