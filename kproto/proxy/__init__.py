"""A proxy between Kafka's clients and brokers that tells what passes.

`Proxy` listens and passes on; `kproto.study` reads what passes; `rewriting` decides which addresses
of brokers a client is told.
"""

from __future__ import annotations

from .lines import LineFilter, line_as_json, line_as_text
from .proxy import Proxy
from .settings import ProxySettings

__all__ = ["LineFilter", "Proxy", "ProxySettings", "line_as_json", "line_as_text"]
