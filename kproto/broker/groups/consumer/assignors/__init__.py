"""Who shall have what: the assignors of Kafka's coordinator, which decide as its classes do.

`uniform` spreads partitions evenly and moves few: `alike` where all members subscribe alike,
`mixed` where they do not. `ranges` gives each member a range of each topic. Plain functions on a
`GroupSpec`.
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


#: By the names that members give, and `group.consumer.assignors`.
ASSIGNOR_TABLE: Final[Mapping[str, Callable[[GroupSpec], Assignment]]] = MappingProxyType(
    {"uniform": _assign_uniformly, "range": assign_range}
)


def assign(assignor: str, group: GroupSpec) -> Assignment:
    """What each member shall have; who is not there shall have nothing."""
    return ASSIGNOR_TABLE[assignor](group)
