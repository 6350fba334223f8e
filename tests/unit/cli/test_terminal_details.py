"""Tests details of commands on an embedded broker: created topics, closed pipes, quotas."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kproto import Client
from kproto.broker import BrokerSettings, ErrorCode
from kproto.messages import DescribeTransactionsRequest
from tests.support.admin_commands import rows_of
from tests.support.cli_runs import Run, runner
from tests.support.embedded import ThreadedBroker, threaded_broker, threaded_cluster
from tests.support.environment import ROOT
from tests.support.terminal_details import *  # noqa: F403

ALL = ("--from-beginning", "--until-end")


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


def test_user_named_as_the_default_differs_from_it(kproto: Run) -> None:
    change = ["quotas", "set", "producer_byte_rate=5"]
    refused = kproto(*change, "--user", "<default>")
    assert refused.code == 2
    assert "--user-default is the default" in refused.err[0]
    assert kproto(*change, "--user", r"\<default>").code == 0
    assert kproto(*change, "--client-id-default").code == 0
    rows = [(row["user"], row["client_id"]) for row in rows_of(kproto, "quotas", "list")]
    assert [row for row in rows if row[0] != "default"] == [
        (None, "<default>"),
        (r"\<default>", None),
    ]
    (row,) = rows_of(kproto, "quotas", "list", "--user", r"\<default>")
    assert row["value"] == 5
    assert kproto("quotas", "unset", "producer_byte_rate", "--user", r"\<default>").code == 0
    assert kproto("quotas", "unset", "producer_byte_rate", "--client-id-default").code == 0


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


def test_question_shows_no_value_that_may_be_a_secret(kproto: Run, topic: str) -> None:
    secret = "sasl.jaas.config=hunter2"
    found = kproto("configs", "set", f"topic/{topic}*", secret, "retention.ms=9000")
    assert (found.code, len(found.err)) == (1, 1)
    said = f"set sasl.jaas.config=[hidden], retention.ms=9000 of topic/{topic}"
    assert said in found.err[0]
    found = kproto("configs", "unset", f"topic/{topic}", secret)
    assert (found.code, "'sasl.jaas.config' is followed by a value" in found.err[0]) == (2, True)


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


def test_aborted_transaction_names_the_line_to_continue_at(kproto: Run, topic: str) -> None:
    text = b"".join(b'{"value": "%d"}\n' % number for number in range(1, 8)) + b"{"
    options = ("--json", "--transactional-id", f"tx-{topic}")
    ended = kproto("produce", topic, *options, stdin=text)
    assert ended.code == 1
    said = "a transaction was aborted: no line is committed; send the input again from line 1"
    assert f"kproto: {said}" in ended.err
    ended = kproto("produce", topic, *options, "--transaction-records", "3", stdin=text)
    said = "a transaction was aborted: lines 1 to 6 are committed; send the input again from line 7"
    assert f"kproto: {said}" in ended.err
    found = kproto("consume", topic, *ALL, "--isolation", "read_committed")
    assert sorted(found.lines()) == ["1", "2", "3", "4", "5", "6"]
    refused = kproto("produce", topic, *options, "--undelivered", "file", stdin=b"")
    assert refused.code == 2


def test_null_is_printed_by_a_format(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "--json", stdin=b'{"value": null, "key": "a"}\n{"value": ""}')
    found = kproto("consume", topic, *ALL, "-f", r"%k=%s\n", "--null", "NULL").lines()
    assert sorted(found) == ["NULL=", "a=NULL"]
    assert kproto("consume", topic, *ALL, "--json", "--null", "x").code == 2


@pytest.mark.parametrize("words", [("describe",), ("offsets",), ("offsets", "--sum"), ("sizes",)])
def test_missing_topic_hides_no_other(kproto: Run, topic: str, words: tuple[str, ...]) -> None:
    verb, *more = words
    found = kproto("topics", verb, topic, "missing", "--csv", *more)
    assert found.code == 1
    assert any(line.startswith(topic) for line in found.lines())
    assert "UNKNOWN_TOPIC_OR_PARTITION" in found.err[-1]


def test_missing_group_hides_no_other(kproto: Run, topic: str) -> None:
    kproto("produce", topic, stdin=b"a")
    kproto("consume", topic, "--group", f"g-{topic}", "--from-beginning", "--until-end")
    for verb in ("lag", "describe"):
        found = kproto("groups", verb, f"g-{topic}", "missing", "--csv")
        assert found.code == 1
        assert any(line.startswith(f"g-{topic}") for line in found.lines())
    found = kproto(
        "groups", "watch", f"g-{topic}", "missing", "--csv", "-n", "2", "--interval", "1ms"
    )
    assert found.code == 0
    assert sum(line.startswith(f"g-{topic}") for line in found.lines()) >= 2


def test_unknown_type_of_groups_is_refused(kproto: Run) -> None:
    assert kproto("groups", "list", "--type", "foo").code == 2
    assert kproto("groups", "list", "--type", "classic", "--type", "Share").code == 0


def test_warnings_of_later_clients_are_not_printed(kproto: Run, topic: str) -> None:
    kproto("topics", "describe", topic)
    assert not [each for each in logging.getLogger("kproto").handlers if "cli" in str(type(each))]


def test_missing_resource_hides_no_configs(kproto: Run, topic: str) -> None:
    found = kproto("configs", "list", f"topic/{topic}", "topic/missing", "--all", "--csv")
    assert found.code == 1
    assert any("retention.ms" in line for line in found.lines())
    assert "UNKNOWN_TOPIC_OR_PARTITION" in found.err[-1]


@pytest.mark.parametrize("verb", ["producers", "hanging"])
def test_missing_topic_hides_no_producers(kproto: Run, topic: str, verb: str) -> None:
    kproto("produce", topic, "-p", "1", stdin=b"a")
    found = kproto("transactions", verb, topic, "missing", f"{topic}:7", "--json")
    producers = [json.loads(line) for line in found.lines()]
    assert [(row["topic"], row["partition"]) for row in producers] == (
        [(topic, 1)] if verb == "producers" else []
    )
    assert (found.code, len(found.err)) == (1, 2)
    assert "'missing': UNKNOWN_TOPIC_OR_PARTITION" in found.err[0]
    assert "has no partition 7" in found.err[1]
    found = kproto("transactions", verb, f"{topic}:1", f"{topic}:7")
    assert (found.code, found.err) == (
        1,
        [f"kproto: error: {topic} has no partition 7; it has 3 partitions"],
    )


def test_open_transaction_is_found_beside_a_missing_topic(
    kproto: Run, bootstrap: str, topic: str
) -> None:
    async def leave_open() -> None:
        async with (
            Client(bootstrap) as client,
            client.producer(transactional_id=f"open-{topic}") as producer,
            producer.transaction() as transaction,
        ):
            await producer.send(topic, b"x", partition=1)
            await transaction.leave_open()

    asyncio.run(leave_open())
    found = kproto("transactions", "describe", f"open-{topic}", "no-such-id", "--json")
    (described,) = [json.loads(line) for line in found.lines()]
    assert (found.code, described["transactional_id"]) == (1, f"open-{topic}")


def test_transaction_that_was_not_described_is_no_hanging_one(
    served: ThreadedBroker, kproto: Run, bootstrap: str, topic: str
) -> None:
    transactional_id = f"unknown-{topic}"

    async def leave_open() -> None:
        async with (
            Client(bootstrap) as client,
            client.producer(transactional_id=transactional_id) as producer,
            producer.transaction() as transaction,
        ):
            await producer.send(topic, b"x", partition=1)
            await transaction.leave_open()

    asyncio.run(leave_open())
    fault = ErrorCode("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", times=None)
    control = served.call(lambda it: it.control(fault, request=DescribeTransactionsRequest))
    try:
        found = kproto("transactions", "hanging", topic, "--longer-than", "0s")
    finally:
        served.call(lambda it: it.remove_control(control))
    assert (found.code, found.out) == (1, b"")
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in found.err[0]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["groups", "list", "--state", "foo"], "--state foo: use one of Empty, Stable, "),
        (["groups", "list", "--type", "foo"], "--type foo: use one of Classic, Consumer, "),
        (["transactions", "list", "--state", "foo"], "--state foo: use one of Empty, Ongoing, "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_unknown_state_lists_the_known_ones(kproto: Run, command: list[str], words: str) -> None:
    found = kproto(*command)
    assert (found.code, found.out) == (2, b"")
    assert words in found.err[0]


def test_empty_table_prints_nothing(kproto: Run, topic: str) -> None:
    for command in (["topics", "list", "no-such-*"], ["configs", "list", f"topic/{topic}"]):
        assert kproto(*command) == (0, b"", [])
        assert kproto(*command, "--json") == (0, b"", [])
        assert len(kproto(*command, "--csv").lines()) == 1


def test_single_things_are_counted_in_the_singular(kproto: Run, topic: str) -> None:
    kproto("topics", "create", f"{topic}.one", "--partitions", "1")
    found = kproto("consume", f"{topic}.one", "-p", "1")
    assert found.err == [f"kproto: error: {topic}.one has no partition 1: it has 1 partition"]
    reset = ["groups", "reset", f"{topic}-one", "--topic", f"{topic}:0", "--to-latest"]
    assert "commit 1 offset for the group" in kproto(*reset).err[0]


def test_unset_of_a_name_that_is_not_set_is_an_error(kproto: Run, topic: str) -> None:
    user = ["--user", f"user-{topic}"]
    assert kproto("quotas", "set", *user, "producer_byte_rate=100").code == 0
    found = kproto("quotas", "unset", *user, "prodcer_byte_rate")
    assert (found.code, len(found.err)) == (1, 1)
    assert "has no quota prodcer_byte_rate; it has producer_byte_rate" in found.err[0]
    assert kproto("quotas", "unset", "--user", "nobody", "producer_byte_rate").code == 1
    assert kproto("quotas", "unset", *user, "producer_byte_rate").code == 0
    assert kproto("configs", "set", f"topic/{topic}", "retention.ms=9000").code == 0
    found = kproto("configs", "unset", f"topic/{topic}", "retenton.ms")
    assert (found.code, len(found.err)) == (1, 1)
    said = f"topic/{topic} has no config retenton.ms of its own; it has retention.ms"
    assert said in found.err[0]
    assert kproto("configs", "unset", f"topic/{topic}", "retention.ms").code == 0


def test_lag_of_an_offset_outside_the_log_is_told(kproto: Run, topic: str) -> None:
    group = f"{topic}-sick"
    kproto("produce", topic, "-p", "0", stdin=b"1\n2\n3\n4\n5")
    kproto("produce", topic, "-p", "1", stdin=b"1\n2\n3\n4\n5")
    for partition, offset in (("0", "5"), ("1", "1")):
        words = ["--topic", f"{topic}:{partition}", "--to-offset", offset, "--yes"]
        assert kproto("groups", "reset", group, *words).code == 0
    assert (
        kproto("topics", "delete-records", f"{topic}:1", "--before-offset", "3", "--yes").code == 0
    )
    found = kproto("groups", "lag", group, "--json")
    assert [json.loads(line)["lag"] for line in found.lines()] == [0, 2]
    (said,) = found.err
    assert f"{topic}:1: the committed offset 1 is before the log start 3" in said


def test_committed_offset_beyond_the_log_end_has_a_negative_lag(
    kproto: Run, bootstrap: str, topic: str
) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"1\n2")

    async def commit() -> None:
        async with Client(bootstrap) as client:
            await client.commit_offsets(f"{topic}-beyond", {(topic, 0): 1000})

    asyncio.run(commit())
    found = kproto("groups", "lag", f"{topic}-beyond", "--json")
    assert [json.loads(line)["lag"] for line in found.lines()] == [-998]
    (said,) = found.err
    assert f"{topic}:0: the committed offset 1000 is beyond the log end 2" in said


def test_ids_of_groups_cannot_act_on_the_terminal(kproto: Run, bootstrap: str, topic: str) -> None:
    group = f"{topic}\x1b[31m\nrow"

    async def commit() -> None:
        async with Client(bootstrap) as client:
            await client.commit_offsets(group, {(topic, 0): 0})

    asyncio.run(commit())
    shown = kproto("groups", "list").out.decode()
    assert f"{topic}\\x1b[31m\\nrow" in shown
    assert "\x1b" not in shown
    assert group in [row["group"] for row in rows_of(kproto, "groups", "list")]
