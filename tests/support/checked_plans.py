"""Checks each fetch plan and each fetch of a consumer against a computation over all partitions.

The consumer updates a plan and a fetch only for the partitions that have changed. The checks
compute the expected plan and the expected fetch from all partitions of the consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from kproto.client.fetch.fetch_plan import FetchPlan, FetchPlanner, NodeFetches
from kproto.client.fetch.fetch_session import RequestedPartition
from kproto.client.fetch.fetcher import Fetcher
from kproto.client.fetch.partition_state import FetchState

__all__ = ["checked_fetch", "checked_plan"]


def checked_plan(plan: Callable[..., FetchPlan]) -> Callable[..., FetchPlan]:
    """Returns a function that calls `FetchPlanner.plan`, and checks the returned plan."""

    def check(
        self: FetchPlanner,
        now: float,
        version: int,
        leader_since: Callable[[str, int, float], int | None],
        epoch_of: Callable[[str, int], int],
        brokers: Container[int],
    ) -> FetchPlan:
        found = plan(self, now, version, leader_since, epoch_of, brokers)
        fetches: dict[int, set[object]] = {}
        resets: dict[int, set[object]] = {}
        validations: dict[int, set[object]] = {}
        unknown = set()
        for state in self._partitions.values():
            assert state.changed is self.changed
            if state.fetch_state is FetchState.INITIALIZING or self.is_excluded(state.tp):
                continue
            if state.is_at_end:
                continue
            if state.attempts.not_before > now:
                assert found.next_at <= state.attempts.not_before
                continue
            node = leader_since(*state.tp, state.metadata_since)
            if node is None:
                unknown.add(state)
            elif state.fetch_state is FetchState.AWAIT_RESET:
                resets.setdefault(node, set()).add(state)
            elif not state.may_fetch_from(epoch_of(*state.tp)):
                validations.setdefault(node, set()).add(state)
            else:
                node = state.select_node(node, now, brokers)
                fetches.setdefault(node, set()).add(state)
                assert self.node_of(state.tp) == node
        assert {node: set(its.states.values()) for node, its in found.fetches.items()} == fetches
        assert {node: set(states) for node, states in found.resets.items()} == resets
        assert {node: set(states) for node, states in found.validations.items()} == validations
        assert set(found.unknown_leaders) == unknown
        for its in found.fetches.values():
            retrying = {state for state in its.states.values() if state.attempts.count}
            assert set(its.retrying.values()) == retrying
            assert its.leader_until >= max(state.leader_until for state in its.states.values())
        topics: dict[str, int] = {}
        for its in found.fetches.values():
            for topic, _ in its.states:
                topics[topic] = topics.get(topic, 0) + 1
        assert self.topics == topics
        return found

    return check


def checked_fetch(fetch_at: Callable[..., None]) -> Callable[..., None]:
    """Returns a function that calls `Fetcher._fetch_at`, and checks the requested partitions."""

    def check(self: Fetcher, node: int, fetches: NodeFetches, now: float, limit: int) -> None:
        fetch_at(self, node, fetches, now, limit)
        topics = self._view.cluster.topics
        most = self._options.max_partition_fetch_bytes
        expected = {
            tp: RequestedPartition(
                topics[tp[0]].topic_id, its.position, most, its.leader_epoch, its.last_epoch
            )
            for tp, its in fetches.states.items()
        }
        _, fetch = self._in_flight.fetches[node]
        assert fetch.session.partitions == expected
        assert fetch.states == fetches.states

    return check
