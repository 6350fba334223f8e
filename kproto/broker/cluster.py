"""All that the nodes of a cluster know in common: who they are, the topics, the ids given away.

Apart from asyncio and from the messages; handlers decide on it, `Broker` makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..wire.uuid import Uuid
from .authorizer import Acl, Authorizer
from .listeners import PLAINTEXT
from .placement import place_partitions
from .quotas import Metering, QuotaTable
from .security.tokens import DelegationTokens
from .security.users import Users
from .settings import BrokerSettings
from .storage.room import Room
from .topic_configs import TopicConfig
from .topics import Topic, Topics

__all__ = ["ClusterState", "Endpoint"]


class Endpoint(NamedTuple):
    """Where clients are told to reach a node; the port is known once the node listens.

    A node has one for each of its listeners: clients stay with that by which they came.
    """

    node_id: int
    host: str
    port: int
    listener: str = PLAINTEXT
    rack: str | None = None


class ClusterState:
    """One cluster; of the settings it takes those that count for all of its nodes."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self.cluster_id = settings.cluster_id or str(Uuid.random())
        self.topics = Topics()
        self.room = Room(settings.max_stored_bytes)
        #: The quotas of users and clients, and what they have taken.
        self.metering = Metering(
            QuotaTable(),
            settings.quota_window_num,
            settings.quota_window_size_seconds * 1000,
            settings.max_throttle_ms,
        )
        #: Who may do what; None where nobody is asked for rights.
        self.authorizer = _authorizer(settings)
        self.users = Users(settings.users)
        self.tokens = DelegationTokens(
            settings.delegation_token_secret_key,
            max_lifetime_ms=settings.delegation_token_max_lifetime_ms,
            renew_ms=settings.delegation_token_expiry_time_ms,
            kept_ms=settings.delegation_token_kept_ms,
        )
        self._endpoints: dict[int, dict[str, Endpoint]] = {}
        self._next_producer_id = 0

    def join(self, endpoint: Endpoint) -> None:
        """Take a node in, or learn where it listens now."""
        self._endpoints.setdefault(endpoint.node_id, {})[endpoint.listener] = endpoint

    def endpoints(self, listener: str) -> list[Endpoint]:
        """Where clients of a listener reach the nodes that have it, by their ids in order."""
        return [
            endpoints[listener]
            for _, endpoints in sorted(self._endpoints.items())
            if listener in endpoints
        ]

    @property
    def controller_id(self) -> int:
        """The node that clients are told to be the controller."""
        return min(self._endpoints)

    def new_producer_id(self) -> int:
        """A producer id that nobody has."""
        given = self._next_producer_id
        self._next_producer_id += 1
        return given

    def plan_topic(
        self,
        name: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        assignments: Mapping[int, Iterable[int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
    ) -> Topic:
        """A topic that could be added; -1 stands for the cluster's default.

        Raises BrokerResponseError with what Kafka's controller would answer.
        """
        self.topics.check_new_name(name)
        replicas = place_partitions(
            num_partitions,
            replication_factor,
            assignments or {},
            nodes=sorted(self._endpoints),
            default=self._settings.num_partitions,
            most=self._settings.max_partitions,
        )
        config = TopicConfig(
            configs or {},
            self._settings.message_max_bytes,
            self._settings.retention_check_interval_ms,
            self._settings.producer_id_expiration_ms,
        )
        return Topic(name, replicas, config, self.room)


def _authorizer(settings: BrokerSettings) -> Authorizer | None:
    if not settings.authorizer:
        return None
    return Authorizer(
        settings.super_users,
        [acl for acl in settings.acls if isinstance(acl, Acl)],
        allow_if_no_acl=settings.allow_everyone_if_no_acl_found,
    )
