"""Tests fetch plans: backoffs, replicas and exclusions, and the steps for idle partitions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import Client, ClientSettings
from kproto.broker import Broker
from kproto.client.fetch.fetch_plan import FetchPlan, FetchPlanner
from kproto.client.fetch.fetch_session import FetchSession, RequestedPartition
from kproto.client.fetch.fetcher import Fetcher
from kproto.client.fetch.partition_state import TopicPartitionState
from kproto.client.metadata.cluster import TopicPartition
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.wire.uuid import Uuid
from tests.support.checked_plans import checked_fetch, checked_plan
from tests.support.steps import Steps, counted_steps

ID = Uuid(bytes(15) + b"\x01")
NOT_LEADER = error_of_code(code_of("NOT_LEADER_OR_FOLLOWER"), "")
MANY = 3_000

#: The functions without the checks of all client tests, which look at all partitions.
PLAN = FetchPlanner.plan
FETCH_AT = Fetcher._fetch_at
START_DUE = Fetcher.start_due
TAKE_COMPLETED = Fetcher.take_completed


class Scene:
    """A planner with its partitions, and metadata that the test changes."""

    def __init__(self, count: int) -> None:
        self.partitions: dict[TopicPartition, TopicPartitionState] = {}
        self.planner = FetchPlanner(self.partitions)
        self.leaders: dict[TopicPartition, int | None] = {}
        self.epochs: dict[TopicPartition, int] = {}
        self.brokers = {1, 2, 3}
        self.version = 0
        self.now = 0.0
        for partition in range(count):
            self.add(("t", partition))

    def add(self, tp: TopicPartition) -> TopicPartitionState:
        state = TopicPartitionState(tp, ClientSettings(), position=0)
        self.partitions[tp] = state
        state.changed = self.planner.changed
        state.mark_changed()
        self.leaders.setdefault(tp, 1)
        self.epochs.setdefault(tp, 0)
        return state

    def remove(self, tp: TopicPartition) -> None:
        self.planner.changed[tp] = None
        del self.partitions[tp]

    def plan(self) -> FetchPlan:
        return self.planner.plan(
            self.now,
            self.version,
            lambda topic, partition, since: self.leaders[topic, partition],
            lambda topic, partition: self.epochs[topic, partition],
            self.brokers,
        )

    def fetched(self) -> dict[int, list[int]]:
        """Returns the partitions of the fetches by node id, in their order."""
        return {
            node: [partition for _, partition in its.states]
            for node, its in self.plan().fetches.items()
        }


def test_backoff_delays_only_its_partition() -> None:
    scene = Scene(3)
    assert scene.fetched() == {1: [0, 1, 2]}
    state = scene.partitions["t", 1]
    state.on_failure(NOT_LEADER, 0.0)
    plan = scene.plan()
    assert [partition for _, partition in plan.fetches[1].states] == [0, 2]
    assert plan.next_at == state.attempts.not_before > 0
    scene.now = plan.next_at
    plan = scene.plan()
    assert [partition for _, partition in plan.fetches[1].states] == [0, 2, 1]
    assert list(plan.fetches[1].retrying) == [("t", 1)]
    assert plan.next_at == float("inf")
    state.on_success()
    assert not scene.plan().fetches[1].retrying


def test_preferred_replica_is_fetched_until_it_expires_or_leaves() -> None:
    scene = Scene(2)
    scene.plan()
    for partition in range(2):
        scene.partitions["t", partition].prefer_replica(2, until=5.0)
    plan = scene.plan()
    assert list(plan.fetches) == [2]
    assert plan.next_at == 5.0
    scene.now = 5.0
    assert scene.fetched() == {1: [0, 1]}
    scene.partitions["t", 0].prefer_replica(3, until=9.0)
    assert scene.fetched() == {1: [1], 3: [0]}
    scene.brokers.remove(3)
    scene.version += 1
    assert scene.fetched() == {1: [0, 1]}


def test_unknown_leader_is_planned_until_it_is_known() -> None:
    scene = Scene(1)
    scene.leaders["t", 0] = None
    for _ in range(2):
        plan = scene.plan()
        assert [state.tp for state in plan.unknown_leaders] == [("t", 0)]
        assert not plan.fetches
    scene.leaders["t", 0] = 3
    assert scene.fetched() == {3: [0]}


@pytest.mark.parametrize(
    "name", ["paused", "under_backpressure", "awaiting_callback", "awaiting_assignment"]
)
def test_excluded_partitions_are_not_fetched(name: str) -> None:
    scene = Scene(3)
    excluded = getattr(scene.planner, name)
    excluded.update([("t", 0), ("t", 1)])
    assert scene.fetched() == {1: [2]}
    assert scene.planner.topics == {"t": 1}
    excluded.difference_update([("t", 0), ("t", 2)])
    assert scene.fetched() == {1: [2, 0]}
    assert list(excluded) == [("t", 1)]


def test_finished_when_all_ends_are_reached() -> None:
    scene = Scene(3)
    for state in scene.partitions.values():
        state.end = 5
    is_finished = [scene.planner.is_finished]
    scene.plan()
    for state in scene.partitions.values():
        state.on_fetched(5, 0)
    is_finished.append(scene.planner.is_finished)
    assert scene.plan().fetches == {}
    scene.partitions["t", 1].rewind(4)
    is_finished.append(scene.planner.is_finished)
    assert scene.fetched() == {1: [1]}
    scene.partitions["t", 1].lower_end(4)
    assert [*is_finished, scene.planner.is_finished] == [False, True, False, True]
    assert scene.fetched() == {}


CHANGES: dict[str, Callable[[TopicPartitionState], object]] = {
    "fetched": lambda state: state.on_fetched(1, 0),
    "rewind": lambda state: state.rewind(0),
    "end": lambda state: state.lower_end(3),
    "last epoch": lambda state: state.lower_last_epoch(0),
    "validation": lambda state: state.skip_validation(2),
    "replica": lambda state: state.prefer_replica(2, 1.0),
    "leader": lambda state: state.prefer_leader(1.0),
    "reset": lambda state: state.await_reset("latest"),
    "failure": lambda state: state.on_failure(NOT_LEADER, 0.0),
    "moved leader": lambda state: state.on_leader_moved(NOT_LEADER, 0.0),
    "out of range": lambda state: state.request_offset_reset(NOT_LEADER, 0.0),
    "due": lambda state: state.make_due(0.0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_next_plan_looks_at_each_changed_partition(name: str) -> None:
    scene = Scene(2)
    scene.plan()
    assert not scene.planner.changed
    CHANGES[name](scene.partitions["t", 1])
    assert list(scene.planner.changed) == [("t", 1)]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("fetched", "failed", "succeeded", "pause", "resume", "lead", "epoch", "replica"),
                *(
                    "leader",
                    "reset",
                    "reset done",
                    "rewind",
                    "remove",
                    "add",
                    "time",
                    "plan",
                    "begin",
                ),
            ]
        ),
        st.integers(0, 4),
        st.integers(0, 3),
    ),
    max_size=60,
)


def test_attempt_ends_the_backoff_of_its_partition() -> None:
    scene = Scene(2)
    scene.plan()
    state = scene.partitions["t", 1]
    state.on_failure(NOT_LEADER, 0.0)
    assert scene.fetched() == {1: [0]}
    scene.now = state.attempts.not_before / 2
    state.on_attempt_started(scene.now)
    assert scene.fetched() == {1: [0, 1]}


@given(EVENTS)
def test_plan_of_changes_is_the_plan_of_all_partitions(events: list[tuple[str, int, int]]) -> None:
    scene = Scene(4)
    plan = checked_plan(FetchPlanner.plan)
    draw = random.Random(0)

    def check() -> None:
        plan(
            scene.planner,
            scene.now,
            scene.version,
            lambda topic, partition, since: scene.leaders[topic, partition],
            lambda topic, partition: scene.epochs[topic, partition],
            scene.brokers,
        )

    for name, partition, number in events:
        tp = ("t", partition)
        state = scene.partitions.get(tp)
        if name == "time":
            scene.now += number / 10
        elif name == "plan":
            check()
        elif name == "add" and state is None:
            scene.add(tp)
        elif name in ("lead", "epoch"):
            if name == "lead":
                scene.leaders[tp] = number or None
            else:
                scene.epochs[tp] = number
            scene.version += 1
        elif state is None:
            continue
        elif name == "fetched":
            state.on_fetched(state.position + 1, draw.randint(-1, 3))
        elif name == "failed":
            state.on_failure(NOT_LEADER, scene.now)
        elif name == "succeeded":
            state.on_success()
        elif name == "begin":
            state.on_attempt_started(scene.now)
        elif name == "pause":
            scene.planner.paused.add(tp)
        elif name == "resume":
            scene.planner.paused.discard(tp)
        elif name == "replica":
            state.prefer_replica(number, scene.now + 0.2)
        elif name == "leader":
            state.prefer_leader(scene.now + 0.1)
        elif name == "reset":
            state.await_reset("earliest")
        elif name == "reset done":
            state.reset(state.position + number, after_end="earliest")
        elif name == "rewind":
            state.rewind(max(0, state.position - number))
        elif name == "remove":
            scene.remove(tp)
    check()


@pytest.fixture
def _unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FetchPlanner, "plan", PLAN)
    monkeypatch.setattr(Fetcher, "_fetch_at", FETCH_AT)


def steps_of_a_plan(count: int) -> int:
    """Returns the number of steps of one plan and one fetch.

    The consumer has `count` partitions; only one of them has returned records since
    the previous plan.
    """
    scene = Scene(count)
    session = FetchSession()

    def fetch() -> None:
        for its in scene.plan().fetches.values():
            for tp in its.changed:
                state = its.states[tp]
                session.update(tp, RequestedPartition(ID, state.position, 100))
            its.changed.clear()
            session.build_fetch(18)
            session.handle_response(0, 7, [])

    fetch()
    scene.partitions["t", 0].on_fetched(1, 0)
    steps = Steps()
    with counted_steps(steps):
        fetch()
    return steps.count


@pytest.mark.usefixtures("_unchecked")
def test_idle_partitions_take_no_steps_of_a_plan() -> None:
    assert steps_of_a_plan(MANY) == steps_of_a_plan(1) > 0


@pytest.mark.usefixtures("_unchecked")
@pytest.mark.parametrize("group", [None, "g"])
async def test_idle_partitions_take_no_steps_of_a_consumer(
    monkeypatch: pytest.MonkeyPatch, group: str | None
) -> None:
    """A record takes as many steps with thousands of idle partitions as without idle partitions."""
    found = [await steps_of_a_record(monkeypatch, group, count) for count in (1, MANY)]
    assert found[1] == found[0] > 0


async def steps_of_a_record(monkeypatch: pytest.MonkeyPatch, group: str | None, count: int) -> int:
    """Returns the lowest number of the fetcher's steps that one record of partition 0 takes."""
    steps = Steps()
    monkeypatch.setattr(Fetcher, "start_due", counting(START_DUE, steps))
    monkeypatch.setattr(Fetcher, "take_completed", counting(TAKE_COMPLETED, steps))
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", count)
        options: dict[str, Any] = {} if group is None else {"group": group}
        async with (
            client.consumer("t", start="earliest", **options) as consumer,
            client.producer() as producer,
        ):
            least = []
            records = aiter(consumer)
            for _ in range(12):
                steps.count = 0
                await producer.send("t", b"", partition=0)
                assert (await anext(records)).partition == 0
                least.append(steps.count)
    return min(least)


def counting(function: Any, steps: Steps) -> Any:
    """Returns a function that calls `function` and counts the steps of the call in `steps`."""

    def count(*arguments: Any) -> Any:
        with counted_steps(steps):
            return function(*arguments)

    return count


def test_checks_of_all_client_tests_are_in_place() -> None:
    assert FetchPlanner.plan.__qualname__ == checked_plan(FetchPlanner.plan).__qualname__
    assert Fetcher._fetch_at.__qualname__ == checked_fetch(Fetcher._fetch_at).__qualname__
