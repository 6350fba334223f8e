"""Elects leaders and updates ISRs when nodes stop and start; `cluster_state` applies the results.

The rules are those of Kafka's controller in KRaft mode. The leader stays while it is alive and in
sync. Otherwise the new leader is the first replica of the assignment that is alive and in sync. The
leader epoch rises when the leader changes, and also when a partition loses its leader or gets a
leader again. If only the ISR changes, the leader epoch stays the same, as in Kafka since metadata
version 3.6 (KAFKA-15021).

This module omits eligible leader replicas (KIP-966), and the automatic election of preferred
leaders, which Kafka repeats every five minutes. `cluster_state` decides about automatic unclean
elections.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Final

from .api_error import api_error
from .leader_and_isr import NO_LEADER, LeaderAndIsr
from .reassignment import complete_reassignment
from .replica_placement import Replicas

__all__ = [
    "after_broker_start",
    "after_broker_stop",
    "alternate_racks",
    "elect_leader",
    "elect_preferred",
    "elect_unclean",
    "initial_leader_and_isr",
]


_NOT_NEEDED: Final = "Leader election not needed for topic partition."


def initial_leader_and_isr(replicas: Replicas, alive: Container[int]) -> LeaderAndIsr:
    """Returns the leader and ISR of a new partition: the first live replica, and all live replicas.

    If no replica is alive, the partition has no leader, and its ISR is the first replica.
    """
    in_sync = tuple(node for node in replicas if node in alive)
    if not in_sync:
        return LeaderAndIsr(replicas, NO_LEADER, replicas[:1])
    return LeaderAndIsr(replicas, in_sync[0], in_sync)


def after_broker_stop(current: LeaderAndIsr, node: int, alive: Container[int]) -> LeaderAndIsr:
    """Returns the state after `node` has stopped; `alive` no longer contains `node`.

    The last node of an ISR stays in the ISR, so that only this node can become the leader again,
    and no records are lost.
    """
    if node not in current.in_sync:
        return current
    left = tuple(each for each in current.in_sync if each != node)
    return _elected(replace(current, in_sync=left or current.in_sync), alive)


def after_broker_start(current: LeaderAndIsr, node: int, alive: Container[int]) -> LeaderAndIsr:
    """Returns the state after `node` has started and caught up with the leader.

    If no in-sync replica is alive, there is no leader to catch up with, and `node` does not join
    the ISR.
    """
    if node not in current.replicas:
        return current
    current = _elected(current, alive)
    if current.leader == NO_LEADER:
        return current
    # If `node` is the new leader, all live followers catch up with it and join the ISR.
    in_sync = tuple(each for each in current.replicas if each in current.in_sync or each in alive)
    return complete_reassignment(replace(current, in_sync=in_sync), alive)


def elect_leader(current: LeaderAndIsr, node: int, alive: Container[int]) -> LeaderAndIsr:
    """Returns the state with `node` as the leader.

    Raises INVALID_REQUEST if `node` has no replica, and ELIGIBLE_LEADERS_NOT_AVAILABLE if `node` is
    stopped or not in sync.
    """
    if node not in current.replicas:
        raise api_error(
            "INVALID_REQUEST",
            f"broker {node} holds no replica; those that do are {_listed(current.replicas)}",
        )
    if node not in alive or node not in current.in_sync:
        raise api_error(
            "ELIGIBLE_LEADERS_NOT_AVAILABLE",
            f"broker {node} cannot lead, because it is stopped or not in sync; in sync are "
            f"{_listed(current.in_sync)}",
        )
    return replace(current, leader=node)


def elect_preferred(current: LeaderAndIsr, alive: Container[int]) -> LeaderAndIsr:
    """Returns the state with the first replica as the leader (KIP-183).

    Raises ELECTION_NOT_NEEDED if it leads already, and PREFERRED_LEADER_NOT_AVAILABLE if it is
    stopped or not in sync.
    """
    preferred = current.replicas[0]
    if current.leader == preferred:
        raise api_error("ELECTION_NOT_NEEDED", _NOT_NEEDED)
    if preferred not in alive or preferred not in current.in_sync:
        raise api_error(
            "PREFERRED_LEADER_NOT_AVAILABLE",
            "The preferred leader was not available.",
        )
    return replace(current, leader=preferred)


def elect_unclean(current: LeaderAndIsr, alive: Container[int]) -> LeaderAndIsr:
    """Returns the state with the first live replica as the leader and the only in-sync replica.

    The replica may be out of sync (KIP-460). Raises ELECTION_NOT_NEEDED if the partition has a
    leader, and ELIGIBLE_LEADERS_NOT_AVAILABLE if no replica is alive.
    """
    if current.leader != NO_LEADER:
        raise api_error("ELECTION_NOT_NEEDED", _NOT_NEEDED)
    leader = next((node for node in current.replicas if node in alive), NO_LEADER)
    if leader == NO_LEADER:
        raise api_error(
            "ELIGIBLE_LEADERS_NOT_AVAILABLE",
            "Eligible topic partition leaders are not available.",
        )
    return replace(current, leader=leader, in_sync=(leader,))


def alternate_racks(nodes: Sequence[int], racks: Sequence[str | None]) -> list[int]:
    """Returns the nodes, one of each rack in turn, so that most neighbors are in different racks.

    `racks` has the rack of each node. The replicas of a partition are neighbors in the result. If
    all racks have the same size, and there are at least as many racks as replicas, the replicas are
    in different racks: the failure of one rack stops at most one replica of a partition (KIP-36).
    """
    by_rack: dict[str | None, list[int]] = {}
    for node, rack in zip(nodes, racks, strict=True):
        by_rack.setdefault(rack, []).append(node)
    longest = max((len(each) for each in by_rack.values()), default=0)
    return [
        in_rack[turn]
        for turn in range(longest)
        for in_rack in by_rack.values()
        if turn < len(in_rack)
    ]


def _elected(current: LeaderAndIsr, alive: Container[int]) -> LeaderAndIsr:
    if current.leader in alive and current.leader in current.in_sync:
        return current
    able = (node for node in current.replicas if node in current.in_sync and node in alive)
    return replace(current, leader=next(able, NO_LEADER))


def _listed(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes))
