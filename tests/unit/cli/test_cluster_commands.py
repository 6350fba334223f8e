"""Runs the tests of commands for several brokers on an embedded cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto.broker import BrokerSettings
from kproto.client import Client
from tests.support.admin_commands import rows_of
from tests.support.cli_runs import Run, runner
from tests.support.cluster_commands import *  # noqa: F403
from tests.support.cluster_commands import create_spread, planned
from tests.support.embedded import ThreadedCluster, threaded_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCluster]:
    """Yields a cluster of three brokers in a thread."""
    with threaded_cluster() as running:
        yield running


@pytest.fixture
def stopped(cluster: ThreadedCluster, spread: str) -> Iterator[int]:
    """Stops the node 3 after the topic was created; yields its id."""
    cluster.wait_for(lambda it: it.stop_broker(3))
    yield 3
    cluster.wait_for(lambda it: it.start_broker(3))


def test_partitions_are_named_by_their_replicas_in_sync(
    kproto: Run, spread: str, stopped: int
) -> None:
    def numbers(*options: str) -> list[object]:
        return [row["partition"] for row in rows_of(kproto, "topics", "describe", spread, *options)]

    assert numbers("--under-replicated") == [1]
    assert numbers("--under-min-isr") == []
    assert numbers("--at-min-isr") == [1]
    assert numbers("--unavailable") == []
    assert kproto("configs", "set", f"topic/{spread}", "min.insync.replicas=2").code == 0
    assert numbers("--under-min-isr") == [1]
    assert numbers("--at-min-isr") == [0]
    assert numbers("--at-min-isr", "--under-min-isr") == [0, 1]


@pytest.fixture
def grouped(kproto: Run, spread: str) -> str:
    """Returns the topic after a group has committed an offset in it."""
    kproto("produce", spread, stdin=b"a")
    kproto("consume", spread, "-g", f"{spread}-group", "--from-beginning", "-n", "1")
    return spread


def test_internal_topics_are_described_if_something_is_wrong(
    kproto: Run, grouped: str, stopped: int
) -> None:
    def topics(*options: str) -> set[object]:
        return {row["topic"] for row in rows_of(kproto, "topics", "describe", *options)}

    internal = "__consumer_offsets"
    assert internal not in topics()
    assert internal in topics("--internal")
    assert topics("--under-replicated") >= {internal, grouped}
    assert internal not in topics("--under-replicated", "--exclude-internal")
    assert topics(internal) == {internal}
    assert topics(internal, "--exclude-internal") == set()


def test_other_number_of_replicas_is_refused_if_it_is_disallowed(
    kproto: Run, spread: str, tmp_path: Path
) -> None:
    plan = planned(tmp_path / "plan.json", spread, [1])
    for words in (["--plan", plan], [f"{spread}:0", "--replicas", "1"]):
        command = ["cluster", "reassign", *words, "--yes"]
        refused = kproto(*command, "--disallow-replication-factor-change")
        assert (refused.code, "INVALID_REPLICATION_FACTOR" in refused.err[-1]) == (1, True)
        assert kproto(*command).code == 0
        restored = kproto("cluster", "reassign", f"{spread}:0", "--replicas", "1,2", "--yes")
        assert restored.code == 0


def test_brokers_without_reassignments_name_under_replicated_partitions(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    settings = BrokerSettings(release="2.3")
    with threaded_cluster(settings=settings) as older:
        kproto = runner(older.bootstrap, capsysbinary, tmp_path)
        spread = create_spread(older.bootstrap)
        older.wait_for(lambda it: it.stop_broker(3))
        rows = rows_of(kproto, "topics", "describe", spread, "--under-replicated")
        assert [row["partition"] for row in rows] == [1]


def test_controller_is_removed_by_its_id_and_directory(kproto: Run) -> None:
    command = ["cluster", "remove-controller", "--controller-id"]
    directory = ["--controller-directory-id", "AAAAAAAAAAAAAAAAAAAAAQ"]
    (row,) = rows_of(kproto, *command, "2", *directory, "--dry-run")
    assert (row["controller"], row["directory"]) == (2, "AAAAAAAAAAAAAAAAAAAAAQ")
    refused = kproto(*command, "9", "--yes")
    assert (refused.code, len(refused.err)) == (1, 1)
    assert "controller 9 cannot be removed: the voters are 1, 2, 3" in refused.err[0]
    refused = kproto(*command, "2", *directory)
    assert "this would remove controller 2 from the voters" in refused.err[0]


def test_controller_that_observes_can_be_added(kproto: Run) -> None:
    command = ["cluster", "add-controller", "--endpoint", "CONTROLLER://[::1]:9093"]
    directory = ["--controller-directory-id", "AAAAAAAAAAAAAAAAAAAAAQ"]
    (row,) = rows_of(kproto, *command, "--controller-id", "4", *directory, "--dry-run")
    assert (row["controller"], row["endpoints"]) == (4, ["CONTROLLER://[::1]:9093"])
    refused = kproto(*command, "--controller-id", "2", "--yes")
    assert "controller 2 cannot be added: it is a voter already" in refused.err[0]
    refused = kproto(*command, "--controller-id", "4", "--yes")
    assert "start it first, as an observer of the quorum; the observers are none" in refused.err[0]
    refused = kproto("cluster", "add-controller", "--endpoint", "host:9093", "-i", "4", "--yes")
    assert (refused.code, "is no LISTENER://HOST:PORT" in refused.err[0]) == (2, True)


def test_reassignment_in_progress_is_shown_and_cancelled(
    kproto: Run, cluster: ThreadedCluster, spread: str, stopped: int, tmp_path: Path
) -> None:
    async def start() -> None:
        async with Client(cluster.bootstrap) as client:
            await client.admin.alter_partition_reassignments({(spread, 0): [stopped, 1]})

    asyncio.run(start())
    plan = planned(tmp_path / "plan.json", spread, [stopped, 1])
    show = ["cluster", "reassignments", "--plan", plan]
    (row,) = rows_of(kproto, *show)
    assert (row["status"], row["adding"], row["removing"]) == ("in progress", [stopped], [2])
    (proposed, _) = rows_of(kproto, "cluster", "plan", spread, "--brokers", "1,2")
    assert len(proposed["new"]) == 2  # type: ignore[arg-type]
    refused = kproto(*show, "--remove-throttle")
    assert "1 reassignment in progress: the throttles stay" in refused.err[-1]
    # Another plan does not remove the rate of this one.
    rate = ["leader.replication.throttled.rate=5000000"]
    assert kproto("configs", "set", "broker/1", *rate).code == 0
    done = tmp_path / "done.json"
    partition = {"topic": spread, "partition": 1, "replicas": [2, 3]}
    done.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    kept = kproto("cluster", "reassignments", "--plan", str(done), "--remove-throttle")
    assert (kept.code, len(kept.err)) == (0, 1)
    assert "1 other reassignment in progress: the rates of the brokers stay" in kept.err[0]
    assert len(rows_of(kproto, "configs", "list", "broker/1")) == 1
    # The replica that is added need not be in sync.
    short = ["topics", "describe", spread, "--under-replicated"]
    assert [row["partition"] for row in rows_of(kproto, *short)] == [1]
    other = planned(tmp_path / "other.json", spread, [1, 2])
    refused = kproto("cluster", "reassign", "--plan", other, "--yes")
    assert "1 reassignment in progress: --additional" in refused.err[0]
    (cancelled,) = rows_of(kproto, "cluster", "reassign", "--plan", plan, "--cancel", "--yes")
    assert rows_of(kproto, "configs", "list", "broker/1") == []
    assert cancelled == {"topic": spread, "partition": 0, "replicas": [1, 2]}
    (row,) = rows_of(kproto, "topics", "describe", f"{spread}", "--json")[:1]
    assert row["replicas"] == [1, 2]
    again = kproto("cluster", "reassign", "--plan", plan, "--cancel", "--yes")
    assert (again.code, again.err) == (0, ["kproto: no reassignment of the plan is in progress"])
