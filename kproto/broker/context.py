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
    """The context of one request.

    `endpoint` is the endpoint that the client connected to, `host` the address of the client,
    `client_id` its client id or None. `versions` are the versions that this node supports, by api
    key. `token_authenticated` is True if the client authenticated by a delegation token;
    `security_protocol` is that of the listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
    `fetch_sessions` are those of this node. `refuse` is the error that a test injects here.
    """

    cluster: ClusterState
    settings: BrokerSettings
    endpoint: Endpoint
    versions: Mapping[int, range]
    clock: Clock
    host: str = ""
    client_id: str | None = None
    principal: Principal = ANONYMOUS
    token_authenticated: bool = False
    security_protocol: str = PLAINTEXT
    fetch_sessions: FetchSessionCache = field(default_factory=FetchSessionCache)
    refuse: Refuse | None = None

    def deadline(self, ms: int) -> float:
        """The moment that is `ms` from now, as `Wait` takes it."""
        return self.clock.monotonic() + ms / 1000
