"""The calls of `Admin` for replicas: log directories, reassignments and elections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...messages.elect_leaders_request import ElectLeadersRequest
from ...messages.elect_leaders_response import ElectLeadersResponse
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError, KprotoError
from ..core.gather import gather_all
from ..metadata.cluster import TopicPartition
from .area import AdminArea
from .arguments import checked_list, checked_map, checked_partitions
from .calls import PartCall
from .elections import ElectionType, elect_leaders_request, elected_leaders
from .errors import AdminError
from .log_dirs import (
    LogDirDescription,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
    alter_log_dirs_request,
    altered_log_dirs,
    by_broker,
    describe_log_dirs_request,
    described_log_dirs,
    replica_log_dir,
)
from .reassignments import (
    PartitionReassignment,
    alter_reassignments_call,
    list_reassignments_request,
    listed_reassignments,
)

__all__ = ["PlacementAdmin"]


class PlacementAdmin(AdminArea):
    """Moves replicas between brokers and log directories, and elects leaders."""

    # Log directories

    async def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> dict[int, dict[str, LogDirDescription]]:
        """Returns the log directories of brokers with their replicas, by node id and path.

        `brokers` are node ids, by default of all brokers. Raises AdminError by node id.
        """
        wanted = None if brokers is None else checked_list("brokers", brokers)
        request = describe_log_dirs_request(None)
        return await self._requester.by_broker(
            "describing log directories",
            lambda node: request,
            described_log_dirs,
            wanted,
            timeout_ms,
        )

    async def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], *, timeout_ms: int | None = None
    ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
        """Returns the log directory of each replica, and the one to which it moves.

        A replica that the broker does not have, has no directory. Raises AdminError by replica.
        """
        wanted = _checked_replicas("replicas", replicas)

        async def at_broker(
            broker: int, its: Sequence[TopicPartitionReplica], left_ms: int
        ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo | KprotoError]:
            tps = [(each.topic, each.partition) for each in its]
            found = await self._requester.at_broker(
                describe_log_dirs_request(tps), described_log_dirs, broker, left_ms
            )
            if isinstance(found, KprotoError):
                return dict.fromkeys(its, found)
            return {each: replica_log_dir(found, each[:2]) for each in its}

        async def send(
            parts: Sequence[TopicPartitionReplica], left_ms: int
        ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo | KprotoError]:
            answers = await gather_all(
                at_broker(broker, its, left_ms) for broker, its in by_broker(parts).items()
            )
            return {part: it for each in answers for part, it in each.items()}

        call: PartCall[TopicPartitionReplica, ReplicaLogDirInfo] = PartCall(
            "describing replicas",
            build=lambda parts, left_ms: describe_log_dirs_request(None),
            read=lambda response, parts: {},
        )
        return await self._requester.run(call, send, wanted, timeout_ms)

    async def alter_replica_log_dirs(
        self, assignments: Mapping[TopicPartitionReplica, str], *, timeout_ms: int | None = None
    ) -> None:
        """Moves replicas to other log directories of their brokers, by path (KIP-113).

        The call returns when the brokers have started the moves; `describe_replica_log_dirs` shows
        their progress. Raises AdminError by replica, with LOG_DIR_NOT_FOUND for an unknown path.
        """
        paths = dict(checked_map("assignments", assignments))
        _checked_replicas("assignments", paths)

        async def at_broker(
            broker: int, its: Sequence[TopicPartitionReplica], left_ms: int
        ) -> dict[TopicPartitionReplica, KprotoError | None]:
            found = await self._requester.at_broker(
                alter_log_dirs_request(paths, its),
                lambda response: altered_log_dirs(response, broker),
                broker,
                left_ms,
            )
            return dict.fromkeys(its, found) if isinstance(found, KprotoError) else found

        async def send(
            parts: Sequence[TopicPartitionReplica], left_ms: int
        ) -> dict[TopicPartitionReplica, KprotoError | None]:
            answers = await gather_all(
                at_broker(broker, its, left_ms) for broker, its in by_broker(parts).items()
            )
            return {part: it for each in answers for part, it in each.items()}

        call: PartCall[TopicPartitionReplica, None] = PartCall(
            "moving replicas",
            build=lambda parts, left_ms: alter_log_dirs_request(paths, parts),
            read=lambda response, parts: {},
            changes=True,
        )
        await self._requester.run(call, send, paths, timeout_ms)

    # Reassignments

    async def alter_partition_reassignments(
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
        wanted = {
            tp: None if replicas is None else list(replicas)
            for tp, replicas in checked_map("reassignments", reassignments).items()
        }
        checked_partitions("reassignments", wanted)
        call = alter_reassignments_call(wanted, may_change_factor=allow_replication_factor_change)
        await self._requester.by_part(call, wanted, timeout_ms)

    async def list_partition_reassignments(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Returns the reassignments in progress, of `partitions` or of all partitions."""
        tps = None if partitions is None else checked_partitions("partitions", partitions)
        return await self._requester.single(
            "listing reassignments",
            lambda left_ms: list_reassignments_request(tps, left_ms),
            listed_reassignments,
            timeout_ms,
        )

    # Elections

    async def elect_leaders(
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
        if not isinstance(election_type, ElectionType):
            raise ConfigurationError(f"{election_type!r:.80} is no ElectionType")
        action = "electing leaders"
        if partitions is None:
            found = await self._requester.single(
                action,
                lambda left_ms: elect_leaders_request(election_type, None, left_ms),
                elected_leaders,
                timeout_ms,
                changes=True,
            )
            errors = {tp: it for tp, it in found.items() if isinstance(it, KprotoError)}
            results = {tp: it for tp, it in found.items() if not isinstance(it, KprotoError)}
            if errors:
                raise AdminError(action, results, errors)
            return results

        def build(tps: Sequence[TopicPartition], left_ms: int) -> ElectLeadersRequest:
            return elect_leaders_request(election_type, tps, left_ms)

        def read(
            response: ElectLeadersResponse, tps: Sequence[TopicPartition]
        ) -> dict[TopicPartition, bool | KprotoError]:
            found = elected_leaders(response)
            return dict.fromkeys(tps, found) if isinstance(found, KprotoError) else found

        call = PartCall(action, build, read, changes=True)
        wanted = checked_partitions("partitions", partitions)
        try:
            return await self._requester.by_part(call, wanted, timeout_ms)
        finally:
            self._requester.view.cluster.forget(topic for topic, _ in wanted)


def _checked_replicas(
    what: str, replicas: Iterable[TopicPartitionReplica]
) -> list[TopicPartitionReplica]:
    found = checked_list(what, replicas)
    for each in found:
        if not isinstance(each, TopicPartitionReplica):
            raise ConfigurationError(
                f"{what} has {each!r:.80}; pass a TopicPartitionReplica(topic, partition, broker)"
            )
        check_whole_number(f"the broker in {each!r}", each.broker, 0)
    return found
