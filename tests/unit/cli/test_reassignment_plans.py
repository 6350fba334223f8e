"""Tests the plans of reassignments, and the configs that throttle them: plain data."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from kproto.cli.admin.planned_log_dirs import log_dir_state
from kproto.cli.admin.reassignment_plans import PlannedReplicas, plan_of_text, text_of_plan
from kproto.cli.admin.reassignment_throttles import (
    log_dir_throttle,
    merged,
    partition_moves,
    throttle,
    throttle_removal,
)
from kproto.cli.admin.replica_proposals import proposed_replicas
from kproto.cli.admin.run_reassignments import status_of
from kproto.cli.command_error import CommandError
from kproto.client import TopicPartition
from kproto.client.admin import PartitionReassignment, ReplicaLogDirInfo

#: A plan that kafka-reassign-partitions.sh --generate of Kafka 4.3 has printed.
KAFKAS = (
    '{"version":1,"partitions":[{"topic":"mv","partition":0,"replicas":[3,1],'
    '"log_dirs":["any","/data"]},{"topic":"mv","partition":1,"replicas":[1,2],'
    '"log_dirs":["any","any"]}]}\n'
)
ANY = ("any", "any")


def test_plan_file_of_kafkas_script_is_read_and_written_alike() -> None:
    plan = plan_of_text(KAFKAS, "plan.json")
    assert plan == {
        ("mv", 0): PlannedReplicas((3, 1), ("any", "/data")),
        ("mv", 1): PlannedReplicas((1, 2), ANY),
    }
    assert text_of_plan(plan) == KAFKAS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[]", "is no plan"),
        ('{"version":2,"partitions":[]}', "is no plan"),
        ('{"version":1,"partitions":[]}', "has no partitions"),
        ('{"partitions":[{"topic":"a","replicas":[1]}]}', 'has no "topic" and "partition"'),
        ('{"partitions":[{"topic":"a","partition":0,"replicas":[]}]}', "has no replicas"),
        ('{"partitions":[{"topic":"a","partition":0,"replicas":[true]}]}', "has no replicas"),
        ('{"partitions":[{"topic":"a","partition":0,"replicas":[1,1]}]}', "a replica twice"),
        (
            '{"partitions":[{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any"]}]}',
            "for each replica",
        ),
        (
            (
                '{"partitions":[{"topic":"a","partition":0,"replicas":[1]},'
                '{"topic":"a","partition":0,"replicas":[2]}]}'
            ),
            "a:0 is there twice",
        ),
    ],
)
def test_faulty_plan_is_refused(text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        plan_of_text(text, "plan.json")


def test_plan_without_log_directories_lets_the_brokers_choose() -> None:
    text = json.dumps({"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]}]})
    assert plan_of_text(text, "f") == {("a", 0): PlannedReplicas((1, 2), ANY)}


def test_balanced_replicas_stay() -> None:
    current = {("a", 0): (1, 2), ("a", 1): (2, 3), ("a", 2): (3, 1)}
    assert proposed_replicas(current, [1, 2, 3], {}) == current


def test_a_new_broker_gets_its_share_with_few_moves() -> None:
    current: dict[TopicPartition, tuple[int, ...]]
    current = {("a", number): ((1, 2), (2, 1))[number % 2] for number in range(6)}
    proposed = proposed_replicas(current, [1, 2, 3], {})
    load = Counter(each for its in proposed.values() for each in its)
    assert load == {1: 4, 2: 4, 3: 4}
    assert Counter(its[0] for its in proposed.values()) == {1: 2, 2: 2, 3: 2}
    moved = sum(len(set(its) - set(current[tp])) for tp, its in proposed.items())
    assert moved == 4


def test_a_removed_broker_keeps_no_replica() -> None:
    current = {("a", 0): (1, 2), ("a", 1): (2, 3), ("a", 2): (3, 1)}
    proposed = proposed_replicas(current, [1, 2], {})
    assert {each for its in proposed.values() for each in its} == {1, 2}
    assert all(len(set(its)) == 2 for its in proposed.values())
    with pytest.raises(CommandError, match="2 replicas of a partition need 2 brokers"):
        proposed_replicas(current, [1], {})


def test_new_replicas_go_to_another_rack() -> None:
    racks = {1: "x", 2: "x", 3: "y", 4: "y"}
    current = {("a", number): (1, 9) for number in range(2)}
    proposed = proposed_replicas(current, [1, 2, 3, 4], racks)
    assert all({racks[each] for each in its} == {"x", "y"} for its in proposed.values())


def test_throttles_are_those_of_kafkas_script() -> None:
    plan = {("mv", 0): PlannedReplicas((1, 3), ANY), ("mv", 1): PlannedReplicas((2, 3), ANY)}
    moves = partition_moves({}, {("mv", 0): (3, 1), ("mv", 1): (1, 2)}, plan)
    changes = throttle(moves, 1000)
    assert {
        (str(resource), op.name): op.value for resource, its in changes.items() for op in its
    } == {
        ("topic 'mv'", "leader.replication.throttled.replicas"): "0:1,0:3,1:1,1:2",
        ("topic 'mv'", "follower.replication.throttled.replicas"): "1:3",
        **{
            (f"broker '{node}'", f"{side}.replication.throttled.rate"): "1000"
            for node in (1, 2, 3)
            for side in ("leader", "follower")
        },
    }


def test_sources_of_a_running_reassignment_are_its_former_replicas() -> None:
    running = {
        ("a", 0): PartitionReassignment((3, 1, 2), (3,), (2,)),
        ("b", 0): PartitionReassignment((1, 2), (2,), ()),
    }
    plan = {("a", 0): PlannedReplicas((4, 1), ANY)}
    moves = partition_moves(running, {("a", 0): (3, 1, 2)}, plan)
    assert moves[("a", 0)] == (frozenset({1, 2}), frozenset({4}))
    assert moves[("b", 0)] == (frozenset({1}), frozenset({2}))


def test_both_throttles_of_a_broker_are_set_and_removed() -> None:
    plan = {("a", 0): PlannedReplicas((1, 2), ("any", "/data"))}
    both = merged(
        throttle(partition_moves({}, {("a", 0): (1,)}, plan), 5), log_dir_throttle(plan, 7)
    )
    by_broker = {each.name: [op.name for op in both[each]] for each in both if each.name != "a"}
    assert by_broker["1"] == [
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
    ]
    assert by_broker["2"][2:] == ["replica.alter.log.dirs.io.max.bytes.per.second"]
    removed = throttle_removal([1, 2], ["a"])
    for resource, changes in both.items():
        assert {each.name for each in changes} <= {each.name for each in removed[resource]}


@pytest.mark.parametrize(
    ("its", "state"),
    [
        (ReplicaLogDirInfo("/a"), None),
        (ReplicaLogDirInfo("/b", 0, "/a", 5), "in progress"),
        (ReplicaLogDirInfo("/a", 0, "/b", 5), "different"),
        (ReplicaLogDirInfo("/b"), "different"),
        (ReplicaLogDirInfo(), "different"),
    ],
)
def test_state_of_a_planned_log_directory(its: ReplicaLogDirInfo, state: str | None) -> None:
    assert log_dir_state(its, "/a") == state


def test_status_of_a_plan_needs_the_order_of_the_replicas() -> None:
    planned = PlannedReplicas((1, 2), ANY)
    running = PartitionReassignment((1, 2), (2,), ())
    assert status_of(planned, (1, 2), None, None) == "complete"
    assert status_of(planned, (2, 1), None, None) == "different"
    assert status_of(planned, (1, 2), running, None) == "in progress"
    assert status_of(planned, (1, 2), None, "in progress") == "in progress"


def test_many_partitions_are_balanced_and_keep_what_they_can() -> None:
    racks = {node: "abc"[node % 3] for node in range(9)}
    current = {("a", n): (n % 6, (n + 1) % 6, (n + 2) % 6) for n in range(300)}
    proposed = proposed_replicas(current, list(range(9)), racks)
    load = Counter(each for its in proposed.values() for each in its)
    leads = Counter(its[0] for its in proposed.values())
    assert set(load.values()) == {100}
    assert max(leads.values()) - min(leads.values()) <= 1
    assert all(len({racks[each] for each in its}) == 3 for its in proposed.values())
    assert sum(len(set(its) - set(current[tp])) for tp, its in proposed.items()) == 300
