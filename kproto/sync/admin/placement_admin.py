"""`PlacementAdmin` without `await`.

`python -m tools.sync` writes this module from `kproto/client/admin/placement_admin.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...client.admin.admin import Admin
from ...client.admin.elections import ElectionType
from ...client.admin.log_dirs import LogDirDescription, ReplicaLogDirInfo, TopicPartitionReplica
from ...client.admin.reassignments import PartitionReassignment
from ...client.metadata.cluster import TopicPartition
from ..wrapper import Wrapper

__all__ = ["PlacementAdmin"]


class PlacementAdmin(Wrapper[Admin]):
    """Moves replicas between brokers and log directories, and elects leaders."""

    __slots__ = ()

    def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> dict[int, dict[str, LogDirDescription]]:
        """Returns the log directories of brokers with their replicas, by node id and path.

        `brokers` are node ids, by default of all brokers. Raises AdminError by node id.
        """
        return self._call(self._wrapped.describe_log_dirs, brokers, timeout_ms=timeout_ms)

    def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], *, timeout_ms: int | None = None
    ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
        """Returns the log directory of each replica, and the one to which it moves.

        A replica that the broker does not have, has no directory. Raises AdminError by replica.
        """
        return self._call(self._wrapped.describe_replica_log_dirs, replicas, timeout_ms=timeout_ms)

    def alter_replica_log_dirs(
        self, assignments: Mapping[TopicPartitionReplica, str], *, timeout_ms: int | None = None
    ) -> None:
        """Moves replicas to other log directories of their brokers, by path (KIP-113).

        The call returns when the brokers have started the moves; `describe_replica_log_dirs` shows
        their progress. Raises AdminError by replica, with LOG_DIR_NOT_FOUND for an unknown path.
        """
        self._call(self._wrapped.alter_replica_log_dirs, assignments, timeout_ms=timeout_ms)

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        """Moves partitions to other brokers (KIP-455); None cancels the move of a partition.

        `reassignments` has the node ids of all new replicas, the preferred leader first. The call
        returns when the moves have started; `list_partition_reassignments` shows them. Without
        `allow_replication_factor_change`, another number of replicas is refused (Kafka 4.1,
        KIP-860). Raises AdminError by partition.
        """
        self._call(
            self._wrapped.alter_partition_reassignments,
            reassignments,
            allow_replication_factor_change=allow_replication_factor_change,
            timeout_ms=timeout_ms,
        )

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Returns the reassignments in progress, of `partitions` or of all partitions."""
        return self._call(
            self._wrapped.list_partition_reassignments, partitions, timeout_ms=timeout_ms
        )

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, bool]:
        """Elects the preferred leaders of partitions, or leaders out of sync (unclean; KIP-460).

        The result is True for a partition with a new leader, and False if no election was needed.
        Without `partitions`, elects leaders of all partitions; then the results have only the
        partitions of the response. Raises AdminError by partition, with
        PREFERRED_LEADER_NOT_AVAILABLE or ELIGIBLE_LEADERS_NOT_AVAILABLE.
        """
        return self._call(
            self._wrapped.elect_leaders, election_type, partitions, timeout_ms=timeout_ms
        )
