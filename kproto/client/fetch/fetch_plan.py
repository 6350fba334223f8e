"""Plans fetches: the partitions to fetch, to reset and to validate at each broker.

Plain functions on plain data. A backoff delays only the partition that failed, not the other
partitions of its topic or of its broker.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final, NamedTuple

from .partition_state import FetchState, TopicPartitionState

__all__ = ["FetchPlan", "plan_fetches"]

_NEVER: Final = float("inf")


class FetchPlan(NamedTuple):
    """The partitions to fetch, to reset and to validate, each by node id.

    `unknown_leaders` are partitions whose leader is unknown, because metadata names none or is too
    old. `next_at` is the time at which the first backoff ends, in seconds of the clock; infinity if
    no partition backs off.
    """

    fetches: dict[int, list[TopicPartitionState]]
    resets: dict[int, list[TopicPartitionState]]
    validations: dict[int, list[TopicPartitionState]]
    unknown_leaders: list[TopicPartitionState]
    next_at: float


def plan_fetches(
    partitions: Iterable[TopicPartitionState],
    now: float,
    leader_since: Callable[[str, int, float], int | None],
    epoch_of: Callable[[str, int], int],
    brokers: Container[int],
) -> FetchPlan:
    """Returns the requests that are due at `now`, in the order of the partitions.

    `leader_since(topic, partition, time)` returns the leader from metadata newer than `time`, or
    None; `epoch_of(topic, partition)` returns the leader epoch. `brokers` are the known node ids.
    Compares leader epochs: if the leader epoch of a partition has increased, its fetch state
    becomes AWAIT_VALIDATION; if not, its fetch state becomes FETCHING again.
    """
    plan = FetchPlan({}, {}, {}, [], _NEVER)
    next_at = _NEVER
    for state in partitions:
        if state.is_at_end:
            continue
        if state.attempts.not_before > now:
            next_at = min(next_at, state.attempts.not_before)
            continue
        node = leader_since(state.topic, state.partition, state.metadata_since)
        if node is None:
            plan.unknown_leaders.append(state)
        elif state.fetch_state is FetchState.AWAIT_RESET:
            plan.resets.setdefault(node, []).append(state)
        elif not state.may_fetch_from(epoch_of(state.topic, state.partition)):
            plan.validations.setdefault(node, []).append(state)
        else:
            node = state.select_node(node, now, brokers)
            plan.fetches.setdefault(node, []).append(state)
    return plan._replace(next_at=next_at)
