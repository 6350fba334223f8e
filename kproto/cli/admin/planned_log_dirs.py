"""Moves replicas to the log directories of a plan of reassignments (KIP-113)."""

from __future__ import annotations

from collections.abc import Mapping

from ...client import Client, TopicPartition
from ...client.admin import AdminError, ReplicaLogDirInfo, TopicPartitionReplica
from ...wire.errors import BrokerResponseError, KprotoError
from .reassignment_plans import ANY_DIRECTORY, PlannedReplicas

__all__ = ["cancel_log_dirs", "log_dir_state", "log_dir_states", "move_log_dirs"]


def _paths(plan: Mapping[TopicPartition, PlannedReplicas]) -> dict[TopicPartitionReplica, str]:
    """Returns the paths that the plan has for replicas."""
    return {
        TopicPartitionReplica(*tp, broker): path
        for tp, its in plan.items()
        for broker, path in zip(its.replicas, its.log_dirs, strict=True)
        if path != ANY_DIRECTORY
    }


async def move_log_dirs(client: Client, plan: Mapping[TopicPartition, PlannedReplicas]) -> None:
    """Tells the brokers the log directories of the plan.

    A broker without the replica remembers the directory, and creates the replica there. Raises
    AdminError by replica for other errors, such as LOG_DIR_NOT_FOUND.
    """
    paths = _paths(plan)
    if not paths:
        return
    try:
        await client.admin.alter_replica_log_dirs(paths)
    except AdminError as error:
        if not all(map(_is_missing_replica, error.errors.values())):
            raise


def _is_missing_replica(error: KprotoError) -> bool:
    return isinstance(error, BrokerResponseError) and error.name in (
        "REPLICA_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    )


async def log_dir_states(
    client: Client, plan: Mapping[TopicPartition, PlannedReplicas]
) -> dict[TopicPartition, str]:
    """Returns `in progress` or `different` for partitions not yet in the directories of the plan.

    A partition is in progress if one of its replicas moves to its directory.
    """
    paths = _paths(plan)
    if not paths:
        return {}
    found = await client.admin.describe_replica_log_dirs(paths)
    states: dict[TopicPartition, str] = {}
    for replica, its in found.items():
        state = log_dir_state(its, paths[replica])
        tp = (replica.topic, replica.partition)
        if state is not None and states.get(tp) != "in progress":
            states[tp] = state
    return states


def log_dir_state(its: ReplicaLogDirInfo, path: str) -> str | None:
    """Returns None if a replica is at `path`, and else `in progress` or `different`."""
    if its.future_dir == path:
        return "in progress"
    return None if its.current_dir == path and its.future_dir is None else "different"


async def cancel_log_dirs(client: Client, plan: Mapping[TopicPartition, PlannedReplicas]) -> None:
    """Lets the replicas that move to a directory of the plan stay where they are."""
    paths = _paths(plan)
    if not paths:
        return
    found = await client.admin.describe_replica_log_dirs(paths)
    back = {
        replica: its.current_dir
        for replica, its in found.items()
        if its.future_dir == paths[replica] and its.current_dir is not None
    }
    if back:
        await client.admin.alter_replica_log_dirs(back)
