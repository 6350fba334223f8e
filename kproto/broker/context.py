"""What a handler may know besides its request: who asks, whom, when, and of which cluster.

Plain data, made anew only when something in it changes. Knows no connection and no handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..clock import Clock
from .cluster_state import ClusterState, Endpoint
from .faults.outcomes import Refuse
from .fetch_sessions import FetchSessionCache
from .listeners import PLAINTEXT
from .principals import ANONYMOUS, Principal
from .settings import BrokerSettings

__all__ = ["ANONYMOUS", "Context", "Principal"]


@dataclass(frozen=True, slots=True)
class Context:
    """Of one request.

    `endpoint` is where the client reached us, `host` the address that it came from, `client_id`
    what it calls itself, None for nothing. `versions` are those that this node answers, by api
    key. `by_token` tells that the client came in by a delegation token, `security_protocol` what
    its listener asks for: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. `fetch_sessions` are those of
    this node. `refuse` is what a fault of a test lets the handler refuse.
    """

    cluster: ClusterState
    settings: BrokerSettings
    endpoint: Endpoint
    versions: Mapping[int, range]
    clock: Clock
    host: str = ""
    client_id: str | None = None
    principal: Principal = ANONYMOUS
    by_token: bool = False
    security_protocol: str = PLAINTEXT
    fetch_sessions: FetchSessionCache = field(default_factory=FetchSessionCache)
    refuse: Refuse | None = None

    def deadline(self, ms: int) -> float:
        """The moment that is `ms` from now, as `Wait` takes it."""
        return self.clock.monotonic() + ms / 1000
