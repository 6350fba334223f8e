"""The calls of `Admin` for the cluster: brokers, features, and the metadata quorum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.remove_raft_voter_request import RemoveRaftVoterRequest
from ...messages.unregister_broker_request import UnregisterBrokerRequest
from ...messages.unregister_controller_request import UnregisterControllerRequest
from ...version import __version__
from ...wire.checks import check_whole_number
from ...wire.errors import UnsupportedVersionError
from ...wire.uuid import Uuid
from .area import AdminArea
from .arguments import checked_list, checked_map
from .cluster import (
    ClusterDescription,
    cluster_of_metadata,
    describe_cluster_request,
    described_cluster,
    metadata_request,
    unregistered,
)
from .features import (
    FeatureMetadata,
    FeatureUpdate,
    described_features,
    update_features_call,
)
from .quorum import (
    QuorumInfo,
    RaftVoterEndpoint,
    add_voter_request,
    changed_voter,
    describe_quorum_request,
    described_quorum,
)

__all__ = ["ClusterAdmin"]


class ClusterAdmin(AdminArea):
    """Describes the cluster, and changes its features, brokers and controllers."""

    async def describe_cluster(
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
        action = "describing the cluster"
        request = describe_cluster_request(
            operations=include_authorized_operations, fenced=include_fenced_brokers
        )
        try:
            return await self._requester.single(action, request, described_cluster, timeout_ms)
        except UnsupportedVersionError:
            if include_fenced_brokers:
                raise
        older = metadata_request(operations=include_authorized_operations)
        return await self._requester.single(action, older, cluster_of_metadata, timeout_ms)

    async def unregister_broker(self, broker: int, *, timeout_ms: int | None = None) -> None:
        """Removes the registration of a broker that is shut down for good (Kafka 2.8)."""
        check_whole_number("broker", broker, 0)
        await self._requester.single(
            f"unregistering broker {broker}",
            UnregisterBrokerRequest(broker_id=broker),
            lambda response: unregistered(response, f"broker {broker}"),
            timeout_ms,
            changes=True,
            done_errors=frozenset({"BROKER_ID_NOT_REGISTERED"}),
        )

    async def unregister_controller(
        self, controller: int, *, timeout_ms: int | None = None
    ) -> None:
        """Removes the registration of a controller that is shut down for good (Kafka 4.4)."""
        check_whole_number("controller", controller, 0)
        await self._requester.single(
            f"unregistering controller {controller}",
            UnregisterControllerRequest(controller_id=controller),
            lambda response: unregistered(response, f"controller {controller}"),
            timeout_ms,
            changes=True,
        )

    # Features

    async def describe_features(
        self, *, node: int | None = None, timeout_ms: int | None = None
    ) -> FeatureMetadata:
        """Returns the finalized features, and the versions that a broker supports (KIP-584).

        `node` is the node id of the broker, by default any broker.
        """
        request = ApiVersionsRequest(
            client_software_name="kproto", client_software_version=__version__
        )
        return await self._requester.single(
            "describing features", request, described_features, timeout_ms, broker=node
        )

    async def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Sets version levels of features; with `validate_only` only checks them (KIP-778).

        Raises AdminError by feature. From Kafka 4.0 on the controller makes all updates or none.
        """
        wanted = checked_map("updates", updates)
        for name, each in wanted.items():
            check_whole_number(f"the version level of {name!r}", each.max_version_level, 0)
        call = update_features_call(wanted, validate_only=validate_only)
        await self._requester.by_part(call, wanted, timeout_ms)

    # The metadata quorum

    async def describe_metadata_quorum(self, *, timeout_ms: int | None = None) -> QuorumInfo:
        """Returns leader, voters and observers of the metadata quorum (KRaft, KIP-595)."""
        return await self._requester.single(
            "describing the metadata quorum",
            describe_quorum_request(),
            described_quorum,
            timeout_ms,
        )

    async def add_raft_voter(
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
        action = f"adding voter {voter_id}"
        its = checked_list("endpoints", endpoints)
        await self._requester.single(
            action,
            lambda left_ms: add_voter_request(voter_id, directory_id, its, cluster_id, left_ms),
            lambda response: changed_voter(response, action),
            timeout_ms,
            changes=True,
            done_errors=frozenset({"DUPLICATE_VOTER"}),
        )

    async def remove_raft_voter(
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
        action = f"removing voter {voter_id}"
        request = RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id
        )
        await self._requester.single(
            action,
            request,
            lambda response: changed_voter(response, action),
            timeout_ms,
            changes=True,
            done_errors=frozenset({"VOTER_NOT_FOUND"}),
        )
