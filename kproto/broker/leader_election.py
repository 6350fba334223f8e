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

from .api_error import refusal
from .leader_and_isr import NO_LEADER, Leadership
from .replica_placement import Replicas

__all__ = ["after_start", "after_stop", "first_led", "led_by", "striped"]


def first_led(replicas: Replicas, alive: Container[int]) -> Leadership:
    """The leadership of a new partition: in sync is who is alive, and the first of them leads."""
    in_sync = tuple(node for node in replicas if node in alive)
    if not in_sync:
        return Leadership(replicas, NO_LEADER, replicas[:1])
    return Leadership(replicas, in_sync[0], in_sync)


def after_stop(led: Leadership, node: int, alive: Container[int]) -> Leadership:
    """The leadership once `node` is no longer among the `alive`.

    The last one of the ISR stays in it: with it alone nothing is lost when it comes back.
    """
    if node not in led.in_sync:
        return led
    left = tuple(each for each in led.in_sync if each != node)
    return _elected(replace(led, in_sync=left or led.in_sync), alive)


def after_start(led: Leadership, node: int, alive: Container[int]) -> Leadership:
    """The leadership once `node` is among the `alive` again, and has read what it lacked.

    Where nobody leads and `node` was not in sync, it has nobody to read from, and stays out.
    """
    if node not in led.replicas:
        return led
    led = _elected(led, alive)
    if led.leader == NO_LEADER:
        return led
    # A leader that comes back finds followers which wait for it, and takes them in again.
    in_sync = tuple(each for each in led.replicas if each in led.in_sync or each in alive)
    return replace(led, in_sync=in_sync)


def led_by(led: Leadership, node: int, alive: Container[int]) -> Leadership:
    """The leadership with another leader.

    Raises INVALID_REQUEST for one that holds no replica, and ELIGIBLE_LEADERS_NOT_AVAILABLE for
    one that is stopped or lacks records.
    """
    if node not in led.replicas:
        raise refusal(
            "INVALID_REQUEST",
            f"broker {node} holds no replica; those that do are {_listed(led.replicas)}",
        )
    if node not in alive or node not in led.in_sync:
        raise refusal(
            "ELIGIBLE_LEADERS_NOT_AVAILABLE",
            f"broker {node} cannot lead, as it is stopped or not in sync; in sync are "
            f"{_listed(led.in_sync)}",
        )
    return replace(led, leader=node)


def striped(nodes: Sequence[int], racks: Sequence[str | None]) -> list[int]:
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


def _elected(led: Leadership, alive: Container[int]) -> Leadership:
    if led.leader in alive and led.leader in led.in_sync:
        return led
    able = (node for node in led.replicas if node in led.in_sync and node in alive)
    return replace(led, leader=next(able, NO_LEADER))


def _listed(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes))
