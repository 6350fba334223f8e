"""Tests of `kproto cluster` and `topics describe` on clusters of three brokers, 1 to 3.

A test module imports them with the fixtures `kproto`, which runs a command, and `spread`, a new
topic with the replicas 1,2 and 2,3 of its two partitions; it provides the fixture `cluster`.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from pathlib import Path
from typing import Protocol

import pytest

from kproto.client import Client, NewTopic

from .admin_commands import rows_of
from .cli_runs import Run, runner

__all__ = [
    "create_spread",
    "kproto",
    "planned",
    "spread",
    "test_feature_is_downgraded_disabled_and_upgraded",
    "test_plan_is_carried_out_and_rolled_back",
    "test_plan_of_missing_things_is_refused",
    "test_plan_with_log_directories_is_carried_out",
    "test_quorum_has_a_leader_and_two_followers",
    "test_throttles_are_set_and_removed",
    "test_topic_with_overrides_is_described",
    "wait_for_column",
]

#: Maximum time in s in which a reassignment is complete.
_COMPLETE_WITHIN_S = 60.0


class Cluster(Protocol):
    """An embedded cluster, or one of real brokers."""

    @property
    def bootstrap(self) -> str: ...


@pytest.fixture
def kproto(cluster: Cluster, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Run:
    """Returns the function that runs a command."""
    return runner(cluster.bootstrap, capsysbinary, tmp_path)


@pytest.fixture
def spread(cluster: Cluster) -> str:
    """Returns a new topic with the replicas 1,2 and 2,3."""
    return create_spread(cluster.bootstrap)


def create_spread(bootstrap: str) -> str:
    """Creates a topic with the replicas 1,2 and 2,3; returns its name."""
    name = f"spread-{uuid.uuid4().hex}"

    async def create() -> None:
        async with Client(bootstrap) as client:
            await client.create_topics(NewTopic(name, assignments={0: [1, 2], 1: [2, 3]}))
            await client.topic(name)

    asyncio.run(create())
    return name


def planned(file: Path, topic: str, *replicas: list[int]) -> str:
    """Writes a plan for the partitions of a topic; returns the path."""
    partitions = [
        {"topic": topic, "partition": number, "replicas": its}
        for number, its in enumerate(replicas)
    ]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(file)


def configs_of(kproto: Run, topic: str) -> dict[tuple[object, object], object]:
    """Returns the throttles of a topic and of all brokers, by resource and name."""
    found = rows_of(kproto, "configs", "list", f"topic/{topic}", "broker/1", "broker/2", "broker/3")
    return {
        (row["resource"], row["name"]): row["value"]
        for row in found
        if "thrott" in str(row["name"])
    }


def without_throttles(kproto: Run, topic: str) -> None:
    """Waits until the brokers know that the throttles are removed."""
    end = time.monotonic() + _COMPLETE_WITHIN_S
    while configs_of(kproto, topic):
        assert time.monotonic() < end, configs_of(kproto, topic)


def wait_for_column(kproto: Run, command: list[str], name: str, *values: object) -> None:
    """Waits until the rows of a command have these values.

    The controller ends a reassignment before all brokers know the new replicas.
    """
    end = time.monotonic() + _COMPLETE_WITHIN_S
    while True:
        found = [json.loads(line) for line in kproto(*command, "--json").lines()]
        if [row[name] for row in found] == [*values]:
            return
        assert time.monotonic() < end, found


def test_plan_is_carried_out_and_rolled_back(kproto: Run, spread: str, tmp_path: Path) -> None:
    plan, back = str(tmp_path / "plan.json"), str(tmp_path / "back.json")
    rows = rows_of(kproto, "cluster", "plan", spread, "--brokers", "1,3", "--file", plan)
    assert [row["replicas"] for row in rows] == [[1, 2], [2, 3]]
    assert [sorted(row["new"]) for row in rows] == [[1, 3], [1, 3]]  # type: ignore[call-overload]
    before = kproto("cluster", "reassignments", "--plan", plan, "--json")
    assert before.code == 1
    assert f"{spread}:0, {spread}:1: not as in the plan" in before.err[0]
    refused = kproto("cluster", "reassign", "--plan", plan)
    assert "this would reassign 2 partitions; --yes is needed" in refused.err[0]
    command = ["cluster", "reassign", "--plan", plan, "--rollback", back, "--wait", "--yes"]
    assert kproto(*command).code == 0
    describe = ["topics", "describe", spread]
    wait_for_column(kproto, describe, "replicas", *(row["new"] for row in rows))
    states = ["cluster", "reassignments", "--plan", plan]
    wait_for_column(kproto, states, "status", "complete", "complete")
    assert kproto("cluster", "reassign", "--plan", back, "--wait", "--yes").code == 0
    wait_for_column(kproto, describe, "replicas", [1, 2], [2, 3])


def test_plan_with_log_directories_is_carried_out(kproto: Run, spread: str, tmp_path: Path) -> None:
    def plan(*log_dirs: str) -> str:
        its = {"topic": spread, "partition": 0, "replicas": [1, 2], "log_dirs": log_dirs}
        file = tmp_path / "plan.json"
        file.write_text(json.dumps({"version": 1, "partitions": [its]}))
        return str(file)

    kproto("produce", spread, "-p", "0", stdin=b"1")  # the brokers have created the replicas
    paths = {row["broker"]: str(row["log_dir"]) for row in rows_of(kproto, "cluster", "log-dirs")}
    command = ["cluster", "reassign", "--yes", "--plan"]
    assert kproto(*command, plan(paths[1], paths[2]), "--wait").code == 0
    show = ["cluster", "reassignments", "--plan", plan(paths[1], paths[2])]
    assert [row["status"] for row in rows_of(kproto, *show)] == ["complete"]
    refused = kproto(*command, plan("any", "/missing"), "--throttle", "5000000")
    assert (refused.code, "LOG_DIR_NOT_FOUND" in refused.err[-1]) == (1, True)
    assert "the throttles stay" in refused.err[0]
    shown = kproto(*show[:-1], plan("any", "/missing"), "--remove-throttle", "--json")
    assert (shown.code, f"{spread}:0: not as in the plan" in shown.err[-1]) == (1, True)
    without_throttles(kproto, spread)


def test_throttles_are_set_and_removed(kproto: Run, spread: str, tmp_path: Path) -> None:
    plan = planned(tmp_path / "plan.json", spread, [1, 3])
    command = ["cluster", "reassign", "--plan", plan, "--throttle", "5000000", "--yes"]
    started = kproto(*command)
    assert (started.code, len(started.err)) == (0, 1)
    assert "--remove-throttle` removes them" in started.err[0]
    found: dict[tuple[object, object], object] = {}
    end = time.monotonic() + _COMPLETE_WITHIN_S
    while len(found) < 8 and time.monotonic() < end:
        found = configs_of(kproto, spread)
    assert found == {
        (f"topic/{spread}", "leader.replication.throttled.replicas"): "0:1,0:2",
        (f"topic/{spread}", "follower.replication.throttled.replicas"): "0:3",
        **{
            (f"broker/{node}", f"{side}.replication.throttled.rate"): "5000000"
            for node in (1, 2, 3)
            for side in ("leader", "follower")
        },
    }
    show = ["cluster", "reassignments", "--plan", plan]
    while kproto(*show, "--remove-throttle").code != 0:
        assert time.monotonic() < end
    without_throttles(kproto, spread)
    assert kproto(*show).err == []
    # With --wait, the command removes them.
    back = planned(tmp_path / "back.json", spread, [1, 2])
    command = ["cluster", "reassign", "--plan", back, "--throttle", "5000000", "--wait", "--yes"]
    assert kproto(*command).code == 0
    without_throttles(kproto, spread)


def test_feature_is_downgraded_disabled_and_upgraded(kproto: Run) -> None:
    def level() -> object:
        rows = rows_of(kproto, "cluster", "features")
        return {row["feature"]: row["finalized"] for row in rows}.get("share.version")

    if level() is None:
        pytest.skip("share.version is since Kafka 4.1")
    first = level()
    (row,) = rows_of(kproto, "cluster", "downgrade-features", "share.version=1", "--yes")
    assert (row["feature"], row["finalized"], row["new"]) == ("share.version", first, 1)
    assert level() == 1
    (row,) = rows_of(kproto, "cluster", "disable-features", "share.version", "--dry-run")
    assert (row["finalized"], row["new"], level()) == (1, 0, 1)
    assert kproto("cluster", "disable-features", "share.version", "--yes").code == 0
    assert level() == 0
    command = ["cluster", "upgrade-features", f"share.version={first}"]
    refused = kproto(*command)
    assert f"this would set share.version to {first}; --yes is needed" in refused.err[0]
    assert kproto(*command, "--yes").code == 0
    assert level() == first


def test_plan_of_missing_things_is_refused(kproto: Run, spread: str, tmp_path: Path) -> None:
    plan = planned(tmp_path / "plan.json", spread, [1, 9])
    refused = kproto("cluster", "reassign", "--plan", plan, "--yes")
    assert "names unknown brokers: 9; the cluster has 1, 2, 3" in refused.err[0]
    plan = planned(tmp_path / "plan.json", spread, [1], [2], [3])
    refused = kproto("cluster", "reassign", "--plan", plan, "--yes")
    assert f"partitions that do not exist: {spread}:2" in refused.err[0]
    refused = kproto("cluster", "plan", spread, "--brokers", "3")
    assert "2 replicas of a partition need 2 brokers" in refused.err[0]
    refused = kproto("cluster", "plan", spread, "--brokers", "1,9")
    assert "--brokers names unknown brokers: 9" in refused.err[0]


def test_quorum_has_a_leader_and_two_followers(kproto: Run) -> None:
    rows = rows_of(kproto, "cluster", "quorum")
    assert sorted(str(row["role"]) for row in rows) == ["leader", "voter", "voter"]
    assert all(isinstance(row["fetch_age_ms"], int) for row in rows)
    (status,) = rows_of(kproto, "cluster", "quorum", "--status")
    (leader,) = (row["node"] for row in rows if row["role"] == "leader")
    assert (status["leader"], status["voters"]) == (leader, [1, 2, 3])


@pytest.mark.parametrize("names", [True, False])
def test_topic_with_overrides_is_described(kproto: Run, spread: str, names: bool) -> None:
    assert kproto("configs", "set", f"topic/{spread}", "retention.ms=777000").code == 0
    end = time.monotonic() + _COMPLETE_WITHIN_S
    rows: list[dict[str, object]] = []
    while not rows and time.monotonic() < end:
        command = ["topics", "describe", *([spread] if names else []), "--with-overrides"]
        rows = [row for row in rows_of(kproto, *command) if row["topic"] == spread]
    assert rows == [
        {"topic": spread, "partitions": 2, "replicas": 2, "configs": {"retention.ms": "777000"}}
    ]
