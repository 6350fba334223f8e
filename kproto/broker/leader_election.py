"""Who leads when nodes come and go: decisions on plain data, which the cluster carries out.

The rules are those of Kafka's controller in KRaft mode: the first replica in the order of the
assignment that is in sync and alive leads, and who leads already goes on. The leader epoch rises
with each change of the leader, to and from nobody too; since metadata version 3.6 it does not rise
when the ISR alone changes (KAFKA-15021). Left out: eligible leader replicas (KIP-966), unclean
elections by themselves, and the preferred leader, to which Kafka moves back within five minutes.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from .api_error import api_error
from .leader_and_isr import NO_LEADER, LeaderAndIsr
from .replica_placement import Replicas

__all__ = [
    "after_broker_start",
    "after_broker_stop",
    "alternate_racks",
    "elect_leader",
    "initial_leader_and_isr",
]


def initial_leader_and_isr(replicas: Replicas, alive: Container[int]) -> LeaderAndIsr:
    """The leadership of a new partition: in sync is who is alive, and the first of them leads."""
    in_sync = tuple(node for node in replicas if node in alive)
    if not in_sync:
        return LeaderAndIsr(replicas, NO_LEADER, replicas[:1])
    return LeaderAndIsr(replicas, in_sync[0], in_sync)


def after_broker_stop(current: LeaderAndIsr, node: int, alive: Container[int]) -> LeaderAndIsr:
    """The leadership once `node` is no longer among the `alive`.

    The last one of the ISR stays in it: with it alone nothing is lost when it comes back.
    """
    if node not in current.in_sync:
        return current
    left = tuple(each for each in current.in_sync if each != node)
    return _elected(replace(current, in_sync=left or current.in_sync), alive)


def after_broker_start(current: LeaderAndIsr, node: int, alive: Container[int]) -> LeaderAndIsr:
    """The leadership once `node` is among the `alive` again, and has read what it lacked.

    Where nobody leads and `node` was not in sync, it has nobody to read from, and stays out.
    """
    if node not in current.replicas:
        return current
    current = _elected(current, alive)
    if current.leader == NO_LEADER:
        return current
    # A leader that comes back finds followers which wait for it, and takes them in again.
    in_sync = tuple(each for each in current.replicas if each in current.in_sync or each in alive)
    return replace(current, in_sync=in_sync)


def elect_leader(current: LeaderAndIsr, node: int, alive: Container[int]) -> LeaderAndIsr:
    """The leadership with another leader.

    Raises INVALID_REQUEST for one that holds no replica, and ELIGIBLE_LEADERS_NOT_AVAILABLE for
    one that is stopped or lacks records.
    """
    if node not in current.replicas:
        raise api_error(
            "INVALID_REQUEST",
            f"broker {node} holds no replica; those that do are {_listed(current.replicas)}",
        )
    if node not in alive or node not in current.in_sync:
        raise api_error(
            "ELIGIBLE_LEADERS_NOT_AVAILABLE",
            f"broker {node} cannot lead, as it is stopped or not in sync; in sync are "
            f"{_listed(current.in_sync)}",
        )
    return replace(current, leader=node)


def alternate_racks(nodes: Sequence[int], racks: Sequence[str | None]) -> list[int]:
    """The nodes in an order in which neighbours stand in different racks, as far as that goes.

    `racks` are those of `nodes`. With racks of one size, each run of as many nodes as there are
    racks has one of each: replicas that are placed side by side outlive a rack (KIP-36).
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
