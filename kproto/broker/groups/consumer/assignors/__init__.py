"""Implements the server-side assignors of Kafka's coordinator; the results equal Kafka's.

`uniform` spreads partitions evenly, and moves as few partitions as possible. `uniform_homogeneous`
implements `uniform` for equal subscriptions, `uniform_heterogeneous` for different subscriptions.
`range_assignor` assigns a range of each topic's partitions to each member.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from .group_spec import Assignment, GroupSpec, MemberSpec
from .range_assignor import assign_range
from .uniform_heterogeneous import assign_uniform_heterogeneous
from .uniform_homogeneous import assign_uniform_homogeneous

__all__ = ["ASSIGNOR_TABLE", "Assignment", "GroupSpec", "MemberSpec", "assign"]


def _assign_uniformly(group: GroupSpec) -> Assignment:
    return (
        assign_uniform_homogeneous(group)
        if group.is_homogeneous
        else assign_uniform_heterogeneous(group)
    )


#: The assignors by the names in ConsumerGroupHeartbeat and in `group.consumer.assignors`.
ASSIGNOR_TABLE: Final[Mapping[str, Callable[[GroupSpec], Assignment]]] = MappingProxyType(
    {"uniform": _assign_uniformly, "range": assign_range}
)


def assign(assignor: str, group: GroupSpec) -> Assignment:
    """Returns the target assignment; members that are not in it get no partitions."""
    return ASSIGNOR_TABLE[assignor](group)
