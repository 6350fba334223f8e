"""Selects the replica from which a consumer fetches, as Kafka's replica selectors do (KIP-392)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from ..wire.errors import ConfigurationError
from .leader_and_isr import LeaderAndIsr
from .listeners import Endpoint

__all__ = ["LEADER_SELECTOR", "RACK_AWARE_SELECTOR", "check_selector", "preferred_replica"]

LEADER_SELECTOR: Final = "LeaderSelector"
RACK_AWARE_SELECTOR: Final = "RackAwareReplicaSelector"

#: The package of Kafka's selectors; the class name without the package is accepted, too.
_PACKAGE: Final = "org.apache.kafka.common.replica."


def check_selector(name: str | None) -> None:
    """Raises ConfigurationError unless `name` is None or one of Kafka's selectors."""
    known = (LEADER_SELECTOR, RACK_AWARE_SELECTOR)
    if name is not None and name.removeprefix(_PACKAGE) not in known:
        raise ConfigurationError(
            f"replica_selector is {name!r}; it must be None, {LEADER_SELECTOR!r} or "
            f"{RACK_AWARE_SELECTOR!r}, with or without {_PACKAGE} before the name"
        )


#: Returns the node to fetch from; its arguments are the consumer's rack, the leader, and the rack
#: of each replica.
_Selector: TypeAlias = Callable[[str, int, Mapping[int, str | None]], int]


def preferred_replica(
    selector: str, rack: str, leader_and_isr: LeaderAndIsr, endpoints: Iterable[Endpoint]
) -> int | None:
    """Returns the node id of the preferred read replica for a consumer in `rack`.

    Returns None if the leader is preferred. `selector` is `BrokerSettings.replica_selector`.
    Considers only in-sync replicas that have an endpoint in `endpoints`.
    """
    racks = {it.node_id: it.rack for it in endpoints if it.node_id in leader_and_isr.in_sync}
    chosen = _SELECTORS[selector.rpartition(".")[2]](rack, leader_and_isr.leader, racks)
    return None if chosen == leader_and_isr.leader else chosen


def _leader(rack: str, leader: int, racks: Mapping[int, str | None]) -> int:
    return leader


def _same_rack(rack: str, leader: int, racks: Mapping[int, str | None]) -> int:
    """Returns the leader if it is in `rack`, or if no replica is in `rack`.

    Otherwise returns the replica in `rack` with the highest node id.
    """
    in_rack = [node_id for node_id, its in racks.items() if rack and its == rack]
    if not in_rack or leader in in_rack:
        return leader
    return max(in_rack)


_SELECTORS: Final[Mapping[str, _Selector]] = MappingProxyType(
    {LEADER_SELECTOR: _leader, RACK_AWARE_SELECTOR: _same_rack}
)
