"""Describes the metadata quorum, and changes its voters: requests and results as plain data.

DescribeQuorum (55, KIP-595), AddRaftVoter (80) and RemoveRaftVoter (81, KIP-853).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ...messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from ...messages.add_raft_voter_response import AddRaftVoterResponse
from ...messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from ...messages.describe_quorum_response import DescribeQuorumResponse, ReplicaState
from ...messages.remove_raft_voter_response import RemoveRaftVoterResponse
from ...wire.errors import KprotoError, ProtocolError
from ...wire.uuid import Uuid
from .calls import error_in

__all__ = [
    "QuorumInfo",
    "QuorumReplica",
    "RaftVoterEndpoint",
    "add_voter_request",
    "changed_voter",
    "describe_quorum_request",
    "described_quorum",
]

#: The topic of the metadata log, which has one partition.
_METADATA_TOPIC: Final = "__cluster_metadata"

_ACTION: Final = "describing the metadata quorum"


class RaftVoterEndpoint(NamedTuple):
    """An endpoint of a voter: the name of its listener, and its address."""

    name: str
    host: str
    port: int


class QuorumReplica(NamedTuple):
    """A replica of the metadata log.

    `directory_id` is all zeros if the broker does not send it (before Kafka 3.9). The times, in ms
    since 1970, are None if they are unknown: of the last fetch, and of the last fetch from the log
    end.
    """

    replica_id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


class QuorumInfo(NamedTuple):
    """The metadata quorum: its leader, voters and observers.

    `nodes` has the endpoints of the controllers, by node id; it is empty before Kafka 3.9.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    nodes: dict[int, tuple[RaftVoterEndpoint, ...]]


def describe_quorum_request() -> DescribeQuorumRequest:
    """Returns the request that describes the metadata quorum."""
    partition = PartitionData(partition_index=0)
    return DescribeQuorumRequest(
        topics=[TopicData(topic_name=_METADATA_TOPIC, partitions=[partition])]
    )


def described_quorum(response: DescribeQuorumResponse) -> QuorumInfo | KprotoError:
    """Returns the quorum of a response, or its error."""
    error = error_in(response.error_code, _ACTION, response.error_message)
    if error is not None:
        return error
    for topic in response.topics:
        for each in topic.partitions:
            error = error_in(each.error_code, _ACTION, each.error_message)
            if error is not None:
                return error
            return QuorumInfo(
                each.leader_id,
                each.leader_epoch,
                each.high_watermark,
                tuple(map(_replica, each.current_voters)),
                tuple(map(_replica, each.observers)),
                {
                    node.node_id: tuple(
                        RaftVoterEndpoint(it.name, it.host, it.port) for it in node.listeners
                    )
                    for node in response.nodes
                },
            )
    return ProtocolError("the response to DescribeQuorum lacks the metadata partition")


def _replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        state.replica_directory_id,
        state.log_end_offset,
        _time(state.last_fetch_timestamp),
        _time(state.last_caught_up_timestamp),
    )


def _time(ms: int) -> int | None:
    return None if ms < 0 else ms


def add_voter_request(
    voter_id: int,
    directory_id: Uuid,
    endpoints: Iterable[RaftVoterEndpoint],
    cluster_id: str | None,
    timeout_ms: int,
) -> AddRaftVoterRequest:
    """Returns the request that adds a voter to the quorum."""
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[Listener(name=each.name, host=each.host, port=each.port) for each in endpoints],
    )


def changed_voter(
    response: AddRaftVoterResponse | RemoveRaftVoterResponse, action: str
) -> KprotoError | None:
    """Returns the error of a response that adds or removes a voter."""
    return error_in(response.error_code, action, response.error_message)
