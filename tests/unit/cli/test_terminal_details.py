"""Tests details of commands on an embedded broker: created topics, closed pipes, quotas."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kproto.broker import BrokerSettings
from tests.support.admin_commands import rows_of
from tests.support.cli_runs import Run, runner
from tests.support.embedded import ThreadedBroker, threaded_broker, threaded_cluster
from tests.support.environment import ROOT
from tests.support.terminal_details import *  # noqa: F403


@pytest.fixture
def bootstrap(served: ThreadedBroker) -> str:
    """Returns the address of the broker."""
    return served.bootstrap


def test_broker_creates_topic_of_produce_by_property(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    with threaded_broker(BrokerSettings(auto_create_topics=True)) as broker:
        kproto = runner(broker.bootstrap, capsysbinary, tmp_path)
        assert kproto("produce", "new", stdin=b"a").code == 1
        allowed = ["-X", "allow.auto.create.topics=true"]
        assert kproto("produce", "new", *allowed, stdin=b"a\nb").code == 0
        assert sorted(kproto("consume", "new", "--from-beginning", "-e").lines()) == ["a", "b"]
        line = b'{"topic": "other", "value": "c"}'
        assert kproto("produce", "--json", *allowed, stdin=line).code == 0
        assert kproto("consume", "other", "--from-beginning", "-e").lines() == ["c"]


def test_idle_consumer_ends_when_its_pipe_is_closed(served: ThreadedBroker, topic: str) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "kproto", "consume", topic, "-b", served.bootstrap],
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    os.close(writing)
    os.close(reading)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


def test_named_reassignments_are_complete(kproto: Run, topic: str) -> None:
    assert rows_of(kproto, "cluster", "reassignments") == []
    rows = rows_of(kproto, "cluster", "reassignments", f"{topic}:1")
    assert [(row["topic"], row["partition"], row["status"]) for row in rows] == [
        (topic, 1, "complete")
    ]


def test_quota_of_user_default_is_not_the_default_of_users(kproto: Run) -> None:
    set_quota = ["quotas", "set", "producer_byte_rate=100"]
    assert kproto(*set_quota, "--user", "default").code == 0
    assert kproto(*set_quota, "--user-default").code == 0

    def users(*options: str) -> list[Any]:
        return [row["user"] for row in rows_of(kproto, "quotas", "list", *options)]

    assert users() == ["<default>", "default"]
    assert users("--user", "default") == ["default"]
    assert users("--user-default") == ["<default>"]
    unset = ["quotas", "unset", "producer_byte_rate"]
    assert kproto(*unset, "--user-default").code == 0
    assert users() == ["default"]
    missing = kproto(*set_quota)
    assert (missing.code, "name the clients" in missing.err[0]) == (2, True)


def test_reset_of_a_group_with_members_is_refused_first(
    kproto: Run, served: ThreadedBroker, topic: str
) -> None:
    group = f"{topic}-active"
    kproto("produce", topic, "-p", "0", stdin=b"a")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "kproto", "consume", topic, "-b", served.bootstrap),
            *("-g", group, "--from-beginning"),
        ],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"a\n"
        for options in (["--yes"], ["--dry-run"]):
            found = kproto("groups", "reset", group, "--to-earliest", "--topic", topic, *options)
            assert (found.code, found.out) == (1, b"")
            assert "has 1 member" in found.err[0]
            assert "kproto-cli" in found.err[0]
    finally:
        process.kill()
        process.communicate()


def test_static_configs_are_listed_only_with_all(kproto: Run) -> None:
    """As kafka-configs does: without --all, it lists only dynamic configs of a broker."""
    assert rows_of(kproto, "configs", "list", "broker/1") == []
    (row,) = rows_of(kproto, "configs", "list", "broker/")
    assert (row["name"], row["source"]) == ("min.insync.replicas", "DYNAMIC_DEFAULT_BROKER")
    every = rows_of(kproto, "configs", "list", "broker/1", "--all")
    assert "STATIC_BROKER" in {row["source"] for row in every}


def test_reassignment_to_a_stopped_broker_is_in_progress(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    with threaded_cluster(2) as cluster:
        cluster.call(lambda it: it.create_topic("t", replication_factor=1))
        kproto = runner(cluster.bootstrap, capsysbinary, tmp_path)
        leader = cluster.call(lambda it: it.leader("t"))
        other = 3 - leader
        cluster.wait_for(lambda it: it.stop_broker(other))
        both = f"{leader},{other}"
        assert kproto("cluster", "reassign", "t:0", "--replicas", both, "-y").code == 0
        (row,) = rows_of(kproto, "cluster", "reassignments")
        assert (row["status"], row["adding"], row["copied_bytes"]) == ("in progress", [other], 0)
        cluster.wait_for(lambda it: it.start_broker(other))
        assert rows_of(kproto, "cluster", "reassignments") == []
        (row,) = rows_of(kproto, "cluster", "reassignments", "t")
        assert (row["status"], row["replicas"]) == ("complete", [leader, other])
