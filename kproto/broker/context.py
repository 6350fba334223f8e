"""Defines the context of a request, as Kafka's RequestContext: client, endpoint, clock, cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..clock import Clock
from .api_error import api_error
from .cluster_state import ClusterState
from .faults.outcomes import Refuse
from .features import GROUP_VERSION, SHARE_VERSION
from .fetch_sessions import FetchSessionCache
from .groups import ClockReading
from .groups.group_coordinator import GroupCoordinator
from .listeners import PLAINTEXT, Endpoint
from .principals import ANONYMOUS, Principal
from .settings import BrokerSettings
from .share import SharePartitionManager
from .transactions.transaction_coordinator import TransactionCoordinator

__all__ = ["ANONYMOUS", "Context", "Principal", "read_clock"]


@dataclass(frozen=True, slots=True)
class Context:
    """Holds the context of one request.

    `endpoint` is the endpoint that the client connected to, `host` the address of the client.
    `versions` are the versions that ApiVersions lists, by API key. `token_authenticated` is True if
    the client authenticated by a delegation token. `security_protocol` of the listener is
    PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. `fetch_sessions` has the fetch sessions of this
    node. `refuse` is an error that a test injects and that the handler sets in its response; None
    for no error. `connection_id` names the connection; it is unique within the node.
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
    connection_id: str = ""

    @property
    def node_id(self) -> int:
        """Returns the id of the node that the client connected to."""
        return self.endpoint.node_id

    @property
    def group_coordinator(self) -> GroupCoordinator:
        """Returns the group coordinator of the cluster."""
        return self.cluster.group_coordinator

    @property
    def transaction_coordinator(self) -> TransactionCoordinator:
        """Returns the transaction coordinator of the cluster."""
        return self.cluster.transaction_coordinator

    @property
    def share_partitions(self) -> SharePartitionManager:
        """Returns the share partitions and share sessions of the node."""
        return self.cluster.share_partitions_of(self.node_id)

    @property
    def now(self) -> ClockReading:
        """Returns the current time by the monotonic clock and the wall clock, in ms."""
        return read_clock(self.clock)

    def deadline(self, ms: int) -> float:
        """Returns the time that is `ms` milliseconds from now, in seconds of the monotonic clock.

        Handlers pass the result to `DelayedResponse`.
        """
        return self.clock.monotonic() + ms / 1000

    def check_consumer_protocol(self) -> None:
        """Raises UNSUPPORTED_VERSION if the consumer group protocol (KIP-848) is not enabled."""
        has_feature = self.cluster.features.levels.get(GROUP_VERSION, 1) > 0
        if not self.settings.has_consumer_protocol or not has_feature:
            raise api_error(
                "UNSUPPORTED_VERSION", "the consumer protocol is not enabled on the broker"
            )

    def check_share_groups(self) -> None:
        """Raises UNSUPPORTED_VERSION if share groups (KIP-932) are not enabled."""
        if self.cluster.features.levels.get(SHARE_VERSION, 1) <= 0:
            raise api_error("UNSUPPORTED_VERSION", "share groups are not enabled on the broker")


def read_clock(clock: Clock) -> ClockReading:
    """Returns the current time by the monotonic clock and the wall clock, in ms."""
    return ClockReading(round(clock.monotonic() * 1000), clock.now_ms())
