"""What a handler may know besides its request: who asks, whom, when, and of which cluster.

Plain data, made anew only when something in it changes. Knows no connection and no handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..clock import Clock
from .cluster import ClusterState, Endpoint
from .settings import BrokerSettings

__all__ = ["ANONYMOUS", "Context", "Principal"]


class Principal(NamedTuple):
    """Whom a client has shown to be; as text `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


#: A client that was not asked who it is.
ANONYMOUS: Final = Principal("User", "ANONYMOUS")


@dataclass(frozen=True, slots=True)
class Context:
    """Of one request.

    `endpoint` is where the client reached us, `host` the address that it came from, `client_id`
    what it calls itself, None for nothing. `versions` are those that this node answers, by api
    key.
    """

    cluster: ClusterState
    settings: BrokerSettings
    endpoint: Endpoint
    versions: Mapping[int, range]
    clock: Clock
    host: str = ""
    client_id: str | None = None
    principal: Principal = ANONYMOUS

    def deadline(self, ms: int) -> float:
        """The moment that is `ms` from now, as `Wait` takes it."""
        return self.clock.monotonic() + ms / 1000
