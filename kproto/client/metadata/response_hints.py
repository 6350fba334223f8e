"""Reads from responses whether the broker is the leader, the coordinator or the controller.

Does no I/O; `request_router` acts on the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ...messages.base import Message
from ...protocol.codes_in_messages import error_codes_in
from ...protocol.error_codes import code_of
from ..core.retry import Remedy, remedy_of_code
from .cluster import Broker, Cluster, LeaderHint
from .fan_out import SplitRule, response_elements

__all__ = [
    "brokers_in",
    "hints_of",
    "is_not_controller",
    "is_not_coordinator",
    "topics_with_moved_leaders",
]

_NOT_CONTROLLER: Final = code_of("NOT_CONTROLLER")


def is_not_coordinator(response: Message) -> bool:
    """Returns True if an error in the response requires that the coordinator is looked up again.

    The error means that the broker is not the coordinator, or that the coordinator is unavailable.
    """
    return any(remedy_of_code(c) is Remedy.FIND_COORDINATOR for c in error_codes_in(response))


def is_not_controller(response: Message) -> bool:
    """Returns True if the response has the error NOT_CONTROLLER."""
    return _NOT_CONTROLLER in error_codes_in(response)


def topics_with_moved_leaders(response: Message, row: SplitRule, cluster: Cluster) -> set[str]:
    """Returns the topics of partitions with an error that a metadata refresh may repair.

    Partitions whose new leader is known already, from a hint, do not count.
    """
    found = set()
    for name, partition, answer in _partitions(response, row, cluster):
        hint = _hint(name, partition, answer)
        moved = hint is not None and cluster.leader(name, partition) == hint.leader
        if remedy_of_code(answer.error_code) is Remedy.REFRESH and not moved:
            found.add(name)
    return found


def hints_of(
    response: Message, row: SplitRule, cluster: Cluster
) -> tuple[list[LeaderHint], list[Broker]]:
    """Returns the leaders that a response names for failed partitions (KIP-951), and their brokers.

    A broker has the node id and the address of a leader.
    """
    every = (_hint(*found) for found in _partitions(response, row, cluster))
    return [hint for hint in every if hint is not None], brokers_in(response)


def brokers_in(response: Message) -> list[Broker]:
    """Returns the brokers in `node_endpoints` of a response (KIP-951); empty if it has none."""
    nodes: Iterable[Any] = getattr(response, "node_endpoints", ())
    return [Broker(each.node_id, each.host, each.port, each.rack) for each in nodes]


def _hint(name: str, partition: int, answer: Any) -> LeaderHint | None:
    leader = getattr(answer, "current_leader", None)
    if not answer.error_code or leader is None or leader.leader_id < 0:
        return None
    return LeaderHint(name, partition, leader.leader_id, leader.leader_epoch)


def _partitions(
    response: Message, row: SplitRule, cluster: Cluster
) -> Iterator[tuple[str, int, Any]]:
    """Yields the topic name, the number and the struct of each partition in a response.

    Leaves out partitions of topics that the response names by an unknown id.
    """
    topic, partition = row.response_levels[-2:]
    for element in response_elements(response, row):
        for _, each in topic.identities(element[-2]):
            name = each if isinstance(each, str) else cluster.topic_name(each)
            if name:
                yield name, partition.identities(element[-1])[0][1], element[-1]
                break
