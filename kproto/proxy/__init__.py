"""A proxy between Kafka's clients and brokers that tells what passes.

`Proxy` listens and passes on; `kproto.study` reads what passes; `address_rewriting` decides which
addresses of brokers a client is told.
"""

from __future__ import annotations

from .event_log import EventFilter, event_as_json, event_as_text
from .proxy import Proxy
from .settings import ProxySettings

__all__ = ["EventFilter", "Proxy", "ProxySettings", "event_as_json", "event_as_text"]
