"""`ClusterAdmin` without `await`.

`python -m tools.sync` writes this module from `kproto/client/admin/cluster_admin.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...client.admin.admin import Admin
from ...client.admin.cluster import ClusterDescription
from ...client.admin.features import FeatureMetadata, FeatureUpdate
from ...client.admin.quorum import QuorumInfo, RaftVoterEndpoint
from ...wire.uuid import Uuid
from ..wrapper import Wrapper

__all__ = ["ClusterAdmin"]


class ClusterAdmin(Wrapper[Admin]):
    """Describes the cluster, and changes its features, brokers and controllers."""

    __slots__ = ()

    def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout_ms: int | None = None,
    ) -> ClusterDescription:
        """Returns the brokers of the cluster, its id, and the broker of its controller.

        `include_fenced_brokers` needs Kafka 4.0 (KIP-1073); the other fields come from Metadata at
        brokers before Kafka 2.8.
        """
        return self._call(
            self._wrapped.describe_cluster,
            include_authorized_operations=include_authorized_operations,
            include_fenced_brokers=include_fenced_brokers,
            timeout_ms=timeout_ms,
        )

    def unregister_broker(self, broker: int, *, timeout_ms: int | None = None) -> None:
        """Removes the registration of a broker that is shut down for good (Kafka 2.8)."""
        self._call(self._wrapped.unregister_broker, broker, timeout_ms=timeout_ms)

    def unregister_controller(self, controller: int, *, timeout_ms: int | None = None) -> None:
        """Removes the registration of a controller that is shut down for good (Kafka 4.4)."""
        self._call(self._wrapped.unregister_controller, controller, timeout_ms=timeout_ms)

    def describe_features(
        self, *, node: int | None = None, timeout_ms: int | None = None
    ) -> FeatureMetadata:
        """Returns the finalized features, and the versions that a broker supports (KIP-584).

        `node` is the node id of the broker, by default any broker.
        """
        return self._call(self._wrapped.describe_features, node=node, timeout_ms=timeout_ms)

    def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Sets version levels of features; with `validate_only` only checks them (KIP-778).

        Raises AdminError by feature. From Kafka 4.0 on the controller makes all updates or none.
        """
        self._call(
            self._wrapped.update_features,
            updates,
            validate_only=validate_only,
            timeout_ms=timeout_ms,
        )

    def describe_metadata_quorum(self, *, timeout_ms: int | None = None) -> QuorumInfo:
        """Returns leader, voters and observers of the metadata quorum (KRaft, KIP-595)."""
        return self._call(self._wrapped.describe_metadata_quorum, timeout_ms=timeout_ms)

    def add_raft_voter(
        self,
        voter_id: int,
        directory_id: Uuid,
        endpoints: Iterable[RaftVoterEndpoint],
        *,
        cluster_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Adds a controller to the voters of the metadata quorum (Kafka 3.9, KIP-853).

        `directory_id` is the id of the controller's metadata directory; `endpoints` are its
        endpoints. The request fails if the cluster has another id than `cluster_id`. Raises
        BrokerResponseError, with DUPLICATE_VOTER for a voter; after an attempt that was not
        answered, a note on the error says so.
        """
        self._call(
            self._wrapped.add_raft_voter,
            voter_id,
            directory_id,
            endpoints,
            cluster_id=cluster_id,
            timeout_ms=timeout_ms,
        )

    def remove_raft_voter(
        self,
        voter_id: int,
        directory_id: Uuid,
        *,
        cluster_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Removes a controller from the voters of the metadata quorum (Kafka 3.9, KIP-853).

        Raises BrokerResponseError, with VOTER_NOT_FOUND if it is no voter; after an attempt that
        was not answered, a note on the error says so.
        """
        self._call(
            self._wrapped.remove_raft_voter,
            voter_id,
            directory_id,
            cluster_id=cluster_id,
            timeout_ms=timeout_ms,
        )
