"""Tests details of commands: last records, created topics, closed pipes, headers, sums, quotas."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kproto import Client, Producer
from kproto.broker import BrokerSettings
from kproto.cli.record_json import record_line, record_of_line
from kproto.records import Record
from tests.support.admin_commands import rows_of
from tests.support.cli_runs import Run, runner
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.environment import ROOT


def in_transaction(bootstrap: str, topic: str, values: list[bytes], *, is_commit: bool) -> None:
    """Writes each value in a transaction of its own."""

    async def write(producer: Producer, value: bytes) -> None:
        async with producer.transaction():
            await producer.send(topic, value, partition=0)
            if not is_commit:
                raise InterruptedError

    async def write_all() -> None:
        async with (
            Client(bootstrap) as client,
            client.producer(transactional_id=f"{topic}-{is_commit}") as producer,
        ):
            for value in values:
                with contextlib.suppress(InterruptedError):
                    await write(producer, value)

    asyncio.run(write_all())


def test_markers_do_not_count_as_last_records(
    kproto: Run, served: ThreadedBroker, topic: str
) -> None:
    in_transaction(served.bootstrap, topic, [b"1", b"2", b"3"], is_commit=True)
    for count, expected in ((0, []), (1, ["3"]), (2, ["2", "3"]), (9, ["1", "2", "3"])):
        found = kproto("consume", topic, "-p", "0", "--last", str(count), "--until-end")
        assert found.lines() == expected, count


def test_aborted_records_count_only_without_read_committed(
    kproto: Run, served: ThreadedBroker, topic: str
) -> None:
    in_transaction(served.bootstrap, topic, [b"1", b"2"], is_commit=True)
    in_transaction(served.bootstrap, topic, [b"x", b"y", b"z"], is_commit=False)
    last = ["consume", topic, "--last", "2", "--until-end", "-p", "0"]
    assert kproto(*last).lines() == ["y", "z"]
    assert kproto(*last, "--isolation", "read_committed").lines() == ["1", "2"]


def test_last_records_of_an_empty_topic_are_none(kproto: Run, topic: str) -> None:
    found = kproto("consume", topic, "--last", "3", "--until-end")
    assert (found.code, found.out) == (0, b"")


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


def test_header_names_of_any_bytes_come_back(kproto: Run, topic: str) -> None:
    name = b"\xff\x00a".decode("utf-8", "surrogateescape")
    record = Record(0, 5, None, b"v", [(name, b"1"), ("ü", None)], topic=topic, partition=0)
    line = record_line(record)
    assert json.loads(line)["headers"] == [[{"base64": "/wBh"}, "1"], ["ü", None]]
    assert record_of_line(line)[0].headers == [(name, b"1"), ("ü", None)]
    assert kproto("produce", topic, "--json", stdin=line).code == 0
    found = kproto("consume", topic, "--from-beginning", "-e", "--json")
    assert json.loads(found.out)["headers"] == json.loads(line)["headers"]


def test_empty_delimiter_joins_values(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"a\nb")
    assert kproto("consume", topic, "--from-beginning", "-e", "-D", "").out == b"ab"
    with pytest.raises(SystemExit, match="2"):
        kproto("produce", topic, "-D", "", stdin=b"a")


def test_sums_of_offsets_and_sizes_have_a_total(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"a\nb")
    sums = rows_of(kproto, "topics", "offsets", topic, "--sum")
    assert sums == [
        {"topic": topic, "partitions": 3, "records": 2},
        {"topic": None, "partitions": 3, "records": 2},
    ]
    own, total = rows_of(kproto, "topics", "sizes", topic)
    size = own["bytes"]
    assert isinstance(size, int)
    assert own["bytes_of_all_replicas"] == size > 0
    assert (own["topic"], own["partitions"]) == (topic, 3)
    assert total == {**own, "topic": None}


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
    sources = {row["source"] for row in rows_of(kproto, "configs", "list", "broker/1")}
    assert "STATIC_BROKER" not in sources
    every = rows_of(kproto, "configs", "list", "broker/1", "--all")
    assert "STATIC_BROKER" in {row["source"] for row in every}
