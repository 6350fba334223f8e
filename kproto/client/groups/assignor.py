"""Defines `Assignor`, a plain function with a name, and the assignors of Kafka's own clients.

Also builds the user data that members send to their leader for an assignor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ...wire.errors import ConfigurationError
from ..metadata.cluster import TopicPartition
from .assignors.ranges import assign_ranges
from .assignors.roundrobin import assign_round_robin
from .assignors.sticky import assign_cooperative_sticky, assign_sticky
from .assignors.sticky_data import cooperative_user_data, sticky_user_data
from .assignors.subscriptions import NO_GENERATION, Assign

__all__ = ["ASSIGNORS", "Assignor", "UserData", "are_cooperative", "resolve_assignors"]

#: Builds the user data of a member from its topics, the partitions that the assignor last assigned
#: to the member, and the generation of that assignment (NO_GENERATION before the first one).
#: Returns None if the member sends no user data.
UserData: TypeAlias = Callable[[Sequence[str], Sequence[TopicPartition], int], bytes | None]


@dataclass(frozen=True, slots=True)
class Assignor:
    """Assigns partitions by the plain function `assign`, which only the leader of the group calls.

    The function gets the topics with the racks of their replicas, and the subscription of each
    member; it returns the partitions of each member. The broker chooses an assignor whose `name`
    all members of the group send. A `cooperative` assignor never assigns a partition that another
    member still owns. If all assignors of a member are cooperative, the member keeps reading during
    a rebalance (KIP-429). `user_data` builds the user data that a member sends to the leader for
    `assign`; None if `assign` needs none.
    """

    name: str
    assign: Assign
    cooperative: bool = False
    user_data: UserData | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ConfigurationError(
                f"the name of an assignor is {self.name!r}; it must be a str, and not empty"
            )
        for what, function in (("assign", self.assign), ("user_data", self.user_data)):
            if not callable(function) and (function is not None or what == "assign"):
                raise ConfigurationError(
                    f"{what} of the assignor {self.name!r} is {function!r}; it must be a function"
                )


def _sticky_data(
    topics: Sequence[str], partitions: Sequence[TopicPartition], generation: int
) -> bytes | None:
    return None if generation == NO_GENERATION else sticky_user_data(partitions, generation)


def _cooperative_data(
    topics: Sequence[str], partitions: Sequence[TopicPartition], generation: int
) -> bytes:
    return cooperative_user_data(generation)


#: The assignors of Kafka's own clients, by name.
ASSIGNORS: Final[dict[str, Assignor]] = {
    each.name: each
    for each in (
        Assignor("range", assign_ranges),
        Assignor("roundrobin", assign_round_robin),
        Assignor("sticky", assign_sticky, user_data=_sticky_data),
        Assignor("cooperative-sticky", assign_cooperative_sticky, True, _cooperative_data),
    )
}


def resolve_assignors(assignors: str | Assignor | Iterable[str | Assignor]) -> tuple[Assignor, ...]:
    """Returns the assignors that a user names, in order: the preferred assignor is first.

    Raises ConfigurationError for an unknown name, for an object that is neither a name nor an
    `Assignor`, for two assignors of the same name, and if `assignors` is empty.
    """
    if isinstance(assignors, str | Assignor):
        assignors = (assignors,)
    if not isinstance(assignors, Iterable):
        raise ConfigurationError(f"assignors is {assignors!r}; name one assignor or several")
    found: dict[str, Assignor] = {}
    for each in assignors:
        known = ASSIGNORS.get(each) if isinstance(each, str) else each
        if not isinstance(known, Assignor):
            names = ", ".join(ASSIGNORS)
            raise ConfigurationError(
                f"{each!r} is no assignor: name one of {names}, or pass a kproto.Assignor"
            )
        if known.name in found:
            raise ConfigurationError(f"assignors names {known.name!r} twice")
        found[known.name] = known
    if not found:
        raise ConfigurationError(f"assignors is empty; name one of {', '.join(ASSIGNORS)}")
    return tuple(found.values())


def are_cooperative(assignors: Iterable[Assignor]) -> bool:
    """Returns True if all assignors, and so their member, are cooperative (KIP-429)."""
    return all(each.cooperative for each in assignors)
