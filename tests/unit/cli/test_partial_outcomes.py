"""Tests that commands with several parts print each part that succeeded, and each error."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto.cli.admin import run_topics
from kproto.cli.admin.group_rows import lag_cells
from kproto.cli.admin.run_cluster import log_dir_rows
from kproto.cli.admin.run_topics import first_offset_to_keep, unknown_replicas
from kproto.client import Client, CommittedOffset
from kproto.client.admin import (
    AdminError,
    ListedOffset,
    LogDirDescription,
    PartitionDescription,
    TopicDescription,
)
from kproto.protocol.error_codes import error_of_code
from kproto.wire.uuid import ZERO_UUID
from tests.support.cli_runs import Finished, Run, runner
from tests.support.embedded import ThreadedBroker, ThreadedCluster, threaded_cluster

#: Shortens the attempts for the partition without a leader.
QUICK = ("-X", "default.api.timeout.ms=1000")


@pytest.fixture(scope="module")
def half() -> Iterator[ThreadedCluster]:
    """Yields two brokers, of which one is stopped.

    Partition 0 of the topic `one` has a leader, and partition 1 has lost its leader. The group
    `readers` has committed the offset 1 of both, and each log ends at 2.
    """

    async def commit(bootstrap: str) -> None:
        async with Client(bootstrap) as client:
            offsets = {("one", 0): 1, ("one", 1): 1}
            await client.admin.alter_consumer_group_offsets("readers", offsets)

    with threaded_cluster(2) as cluster:
        cluster.call(lambda it: it.create_topic("one", 2, replication_factor=1))
        for _ in range(2):
            cluster.call(lambda it: it.produce("one", b"x", partition=0))
            cluster.call(lambda it: it.produce("one", b"x", partition=1))
        asyncio.run(commit(cluster.bootstrap))
        stopped = cluster.call(lambda it: it.leader("one", 1))
        cluster.wait_for(lambda it: it.stop_broker(stopped))
        assert cluster.call(lambda it: it.leader("one", 0)) > 0
        yield cluster


@pytest.fixture
def on_half(
    half: ThreadedCluster, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> Run:
    """Returns the function that runs a command on the two brokers."""
    return runner(half.bootstrap, capsysbinary, tmp_path)


def json_rows(found: Finished) -> list[dict[str, object]]:
    """Returns the rows of a command that has failed for partition 1 of `one`."""
    assert found.code == 1
    assert any("one:1: " in line for line in found.err), found.err
    return [json.loads(line) for line in found.lines()]


def test_offsets_of_partitions_with_a_leader_are_printed(on_half: Run) -> None:
    rows = json_rows(on_half("topics", "offsets", "one", "--json", *QUICK))
    assert [(row["partition"], row["log_end"]) for row in rows] == [(0, 2)]


def test_lag_of_partitions_with_a_leader_is_printed(on_half: Run) -> None:
    for words in (["readers"], []):
        rows = json_rows(on_half("groups", "lag", *words, "--json", *QUICK))
        found = [[row[name] for name in ("committed", "log_end", "lag")] for row in rows]
        assert found == [[1, 2, 1], [1, None, None]]


def test_leaders_of_other_partitions_are_elected(on_half: Run) -> None:
    rows = json_rows(on_half("cluster", "elect", "one", "--yes", "--json", *QUICK))
    assert [(row["partition"], row["elected"]) for row in rows] == [(0, False)]


def test_log_dirs_of_other_brokers_are_printed(on_half: Run, half: ThreadedCluster) -> None:
    up = half.call(lambda it: it.leader("one", 0))
    words = ["--broker", "9", "--broker", str(up), "--json"]
    found = on_half("cluster", "log-dirs", *words, *QUICK)
    assert (found.code, len(found.err)) == (1, 1)
    assert {json.loads(line)["broker"] for line in found.lines()} == {up}


def test_replicas_of_unknown_size_are_named(on_half: Run) -> None:
    found = on_half("topics", "sizes", "one", "--json", *QUICK)
    assert found.code == 1
    assert "one: 1 replica was not counted" in found.err[-1]
    assert json.loads(found.lines()[0])["partitions"] == 2


async def test_error_of_lag_has_the_lag_of_other_partitions(half: ThreadedCluster) -> None:
    async with Client(half.bootstrap) as client:
        with pytest.raises(AdminError) as caught:
            await client.admin.consumer_group_lag("readers", timeout_ms=1000)
    assert list(caught.value.errors) == [("one", 1)]
    assert list(caught.value.results) == [("one", 0)]
    assert caught.value.results["one", 0].lag == 1


def test_size_is_unknown_without_an_answer_and_offline() -> None:
    partition = PartitionDescription(0, 1, 0, (1, 2, 3), (1,), (3,))
    topic = TopicDescription("t", ZERO_UUID, False, {0: partition}, None)
    assert unknown_replicas(topic, {1, 3}) == [(0, 2), (0, 3)]
    assert unknown_replicas(topic, {1, 2, 3}) == [(0, 3)]


def test_offline_log_dir_without_replicas_has_a_row() -> None:
    error = error_of_code(56, "describing log directories")
    (row,) = log_dir_rows(1, "/data", LogDirDescription(error, {}, None, None, False))
    assert (row["broker"], row["log_dir"], row["topic"]) == (1, "/data", None)
    assert "KAFKA_STORAGE_ERROR" in row["error"]


@pytest.mark.parametrize(
    ("committed", "ends", "lag"),
    [
        (1, (0, 5), 4),
        (1, (3, 5), 2),
        (7, (3, 5), -2),
        (None, (3, 5), None),
        (1, None, None),
    ],
)
def test_lag_is_counted_inside_the_log(
    committed: int | None, ends: tuple[int, int] | None, lag: int | None
) -> None:
    offset = None if committed is None else CommittedOffset(committed, -1, "")
    start, end = [ListedOffset(each, -1, -1) for each in ends] if ends else (None, None)
    assert lag_cells(offset, start, end)["lag"] == lag


@pytest.mark.parametrize(("at_time", "kept"), [(3, 3), (0, 0), (-1, 8)])
def test_records_from_the_log_end_on_are_never_older(at_time: int, kept: int) -> None:
    assert first_offset_to_keep(at_time, log_end=8) == kept


def test_records_that_arrive_while_the_command_asks_are_kept(
    served: ThreadedBroker, kproto: Run, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def produce_and_confirm(options: argparse.Namespace, action: str) -> bool:
        assert action == f"delete {topic}:0 records before 1"
        served.call(lambda broker: broker.produce(topic, b"new"))
        return True

    monkeypatch.setattr(run_topics, "confirm", produce_and_confirm)
    served.call(lambda broker: broker.produce(topic, b"old", timestamp=1_700_000_000_000))
    found = kproto("topics", "delete-records", f"{topic}:0", "--before", "1h", "--json")
    assert json.loads(found.out)["log_start"] == 1
    assert kproto("consume", topic, "--until-end").lines() == ["new"]
