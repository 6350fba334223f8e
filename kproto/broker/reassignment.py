"""Reassigns the replicas of a partition (KIP-455); `cluster_state` applies the results.

All replicas share one log, so an added replica is in sync as soon as its node is alive. A
reassignment that adds only live nodes is therefore complete at once; otherwise it is complete when
the added nodes have started.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from .api_error import api_error
from .leader_and_isr import NO_LEADER, LeaderAndIsr
from .replica_placement import Replicas

__all__ = ["cancel_reassignment", "complete_reassignment", "reassign"]


def reassign(current: LeaderAndIsr, target: Replicas, alive: Container[int]) -> LeaderAndIsr:
    """Returns the state of a partition whose replicas become `target`.

    A reassignment that is not complete is replaced. The caller has checked `target`.
    """
    replicas = _without(current.replicas, current.adding)
    adding = _without(target, replicas)
    removing = _without(replicas, target)
    state = replace(
        current,
        replicas=(*target, *removing),
        in_sync=tuple(node for node in current.in_sync if node in (*target, *removing)),
        adding=adding,
        removing=removing,
    )
    return complete_reassignment(state, alive)


def complete_reassignment(current: LeaderAndIsr, alive: Container[int]) -> LeaderAndIsr:
    """Returns the state after the reassignment, if it can be complete, else `current`.

    The reassignment is complete when all added replicas are in sync, and at least one remaining
    replica is. If the leader is removed, the first replica that is alive and in sync leads.
    """
    if not current.adding and not current.removing:
        return current
    if current.leader != NO_LEADER:
        caught_up = (node for node in current.adding if node in alive)
        current = replace(current, in_sync=tuple(dict.fromkeys((*current.in_sync, *caught_up))))
    target = _without(current.replicas, current.removing)
    in_sync = tuple(node for node in target if node in current.in_sync)
    if not in_sync or not set(current.adding) <= set(in_sync):
        return current
    leader = current.leader
    if leader not in target:
        leader = next((node for node in in_sync if node in alive), NO_LEADER)
    return LeaderAndIsr(target, leader, in_sync)


def cancel_reassignment(current: LeaderAndIsr, alive: Container[int]) -> LeaderAndIsr:
    """Returns the state without the reassignment: the added replicas are removed.

    Raises NO_REASSIGNMENT_IN_PROGRESS if no reassignment is in progress.
    """
    if not current.adding and not current.removing:
        raise api_error("NO_REASSIGNMENT_IN_PROGRESS", "No partition reassignment is in progress.")
    replicas = _without(current.replicas, current.adding)
    in_sync = _without(current.in_sync, current.adding)
    leader = current.leader
    if leader not in replicas:
        leader = next((node for node in replicas if node in in_sync and node in alive), NO_LEADER)
    return LeaderAndIsr(replicas, leader, in_sync)


def _without(nodes: Replicas, others: Replicas) -> Replicas:
    return tuple(node for node in nodes if node not in others)
