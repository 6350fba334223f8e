"""From which replica a consumer had better read (KIP-392): a table of Kafka's selectors.

Plain decisions on leaderships and racks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from .cluster_state import Endpoint
from .leader_and_isr import LeaderAndIsr
from .replica_selectors import LEADER_SELECTOR, RACK_AWARE_SELECTOR

__all__ = ["preferred_replica"]

#: Gets the rack of the consumer, the leader, and the racks of the replicas by node.
_Selector: TypeAlias = Callable[[str, int, Mapping[int, str | None]], int]


def preferred_replica(
    selector: str, rack: str, leader_and_isr: LeaderAndIsr, endpoints: Iterable[Endpoint]
) -> int | None:
    """The node that a consumer in `rack` had better ask; None for the leader, which it asks.

    `selector` is what `BrokerSettings.replica_selector` says. Only replicas count that are in step
    and that clients reach at one of `endpoints`.
    """
    racks = {it.node_id: it.rack for it in endpoints if it.node_id in leader_and_isr.in_sync}
    chosen = _SELECTORS[selector.rpartition(".")[2]](rack, leader_and_isr.leader, racks)
    return None if chosen == leader_and_isr.leader else chosen


def _leader(rack: str, leader: int, racks: Mapping[int, str | None]) -> int:
    return leader


def _same_rack(rack: str, leader: int, racks: Mapping[int, str | None]) -> int:
    """The leader if it is near; else the near one with the highest id, as all have all records."""
    near = [node_id for node_id, its in racks.items() if rack and its == rack]
    if not near or leader in near:
        return leader
    return max(near)


_SELECTORS: Final[Mapping[str, _Selector]] = MappingProxyType(
    {LEADER_SELECTOR: _leader, RACK_AWARE_SELECTOR: _same_rack}
)
