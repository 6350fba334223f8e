"""Tests of details of commands, which run on an embedded and on real brokers.

A test file imports all names of this module, and has the fixtures `kproto`, `bootstrap` and
`topic` (a topic with three partitions).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time

import pytest

from kproto import Client, Producer
from kproto.cli.record_json import record_line, record_of_line
from kproto.records import Record
from tests.support.admin_commands import rows_of
from tests.support.cli_process import complaints, started
from tests.support.cli_runs import Run

__all__ = [
    "test_aborted_records_count_only_without_read_committed",
    "test_added_partitions_and_topics_are_read",
    "test_empty_delimiter_joins_values",
    "test_group_reads_topics_of_a_pattern",
    "test_header_names_of_any_bytes_come_back",
    "test_last_records_of_an_empty_topic_are_none",
    "test_markers_do_not_count_as_last_records",
    "test_patterns_name_topics_to_alter_and_delete",
    "test_patterns_name_topics_to_read",
    "test_sums_of_offsets_and_sizes_have_a_total",
]


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


def test_markers_do_not_count_as_last_records(kproto: Run, bootstrap: str, topic: str) -> None:
    in_transaction(bootstrap, topic, [b"1", b"2", b"3"], is_commit=True)
    for count, expected in ((0, []), (1, ["3"]), (2, ["2", "3"]), (9, ["1", "2", "3"])):
        found = kproto("consume", topic, "-p", "0", "--last", str(count), "--until-end")
        assert found.lines() == expected, count


def test_aborted_records_count_only_without_read_committed(
    kproto: Run, bootstrap: str, topic: str
) -> None:
    in_transaction(bootstrap, topic, [b"1", b"2"], is_commit=True)
    in_transaction(bootstrap, topic, [b"x", b"y", b"z"], is_commit=False)
    last = ["consume", topic, "--last", "2", "--until-end", "-p", "0"]
    assert kproto(*last).lines() == ["y", "z"]
    assert kproto(*last, "--isolation", "read_committed").lines() == ["1", "2"]


def test_last_records_of_an_empty_topic_are_none(kproto: Run, topic: str) -> None:
    found = kproto("consume", topic, "--last", "3", "--until-end")
    assert (found.code, found.out) == (0, b"")


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


def produce_when_known(kproto: Run, topic: str, partition: str, value: bytes) -> None:
    """Sends a record as soon as the broker knows the new partition."""
    end = time.monotonic() + 60
    while kproto("produce", topic, "-p", partition, stdin=value).code:
        assert time.monotonic() < end


@pytest.mark.parametrize("options", [[], ["-n", "3"], ["--timeout", "1m"]], ids=" ".join)
def test_added_partitions_and_topics_are_read(
    kproto: Run, bootstrap: str, topic: str, options: list[str]
) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"first")
    often = ["-X", "metadata.max.age.ms=100"]
    command = ["consume", f"{topic}*", "--from-beginning", "-b", bootstrap, *often, *options]
    with started(*command) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        assert kproto("topics", "alter", topic, "--partitions", "5").code == 0
        produce_when_known(kproto, topic, "4", b"added")
        assert process.stdout.readline() == "added\n"
        assert kproto("topics", "create", f"{topic}.new", "--partitions", "1").code == 0
        produce_when_known(kproto, f"{topic}.new", "0", b"new")
        assert process.stdout.readline() == "new\n"
        if "-n" not in options:
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, complaints(err)) == (0 if "-n" in options else 130, [])


def test_patterns_name_topics_to_read(kproto: Run, topic: str) -> None:
    for name in ("a", "b", "x"):
        kproto("topics", "create", f"{topic}.{name}", "--partitions", "1")
        kproto("produce", f"{topic}.{name}", stdin=name.encode())
    found = kproto("consume", f"{topic}.[ab]", f"{topic}.x", "--from-beginning", "-e")
    assert sorted(found.lines()) == ["a", "b", "x"]
    assert len(kproto("tail", f"{topic}.?", "-e").lines()) == 3
    refused = kproto("consume", f"{topic}.no*", "-e")
    assert (refused.code, refused.err) == (1, [f"kproto: error: no topic matches '{topic}.no*'"])
    offsets = rows_of(kproto, "topics", "offsets", f"{topic}.*")
    assert [row["records"] for row in offsets] == [1, 1, 1]
    producers = rows_of(kproto, "transactions", "producers", f"{topic}.[ab]:0")
    assert [row["topic"] for row in producers] == [f"{topic}.a", f"{topic}.b"]


def test_group_reads_topics_of_a_pattern(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"a")
    kproto("topics", "create", f"{topic}.b", "--partitions", "1")
    kproto("produce", f"{topic}.b", stdin=b"b")
    group = f"{topic}-by-pattern"
    found = kproto("consume", f"{topic}*", "--group", group, "--from-beginning", "-n", "2")
    assert sorted(found.lines()) == ["a", "b"]
    lags = rows_of(kproto, "groups", "lag", f"{topic}-by-*", "--sum")
    assert {row["topic"]: row["lag"] for row in lags} == {topic: 0, f"{topic}.b": 0}
    (described,) = rows_of(kproto, "groups", "describe", f"{topic}-by-*")
    assert described["group"] == group
    refused = kproto("groups", "delete", f"{topic}-by-*")
    assert f"delete 1 group ({group}) with its offsets" in refused.err[0]
    assert kproto("groups", "delete", f"{topic}-by-*", "--yes").code == 0
    refused = kproto("groups", "delete", f"{topic}-by-*", "--yes")
    assert (refused.code, "no group matches" in refused.err[0]) == (1, True)


def test_patterns_name_topics_to_alter_and_delete(kproto: Run, topic: str) -> None:
    names = [f"{topic}.{each}" for each in "ab"]
    for name in names:
        kproto("topics", "create", name, "--partitions", "1")
    pattern = f"{topic}.*"
    refused = kproto("topics", "alter", pattern, "--partitions", "2")
    words = f"this would give 2 topics ({', '.join(names)}) 2 partitions each"
    assert (refused.code, words in refused.err[0]) == (1, True)
    assert kproto("topics", "alter", pattern, "--partitions", "2", "--yes").code == 0
    assert len(rows_of(kproto, "topics", "describe", pattern)) == 4
    command = ["configs", "set", f"topic/{pattern}", "retention.ms=9000"]
    refused = kproto(*command)
    assert f"set retention.ms=9000 of topic/{names[0]}, topic/{names[1]}" in refused.err[0]
    assert kproto(*command, "--yes").code == 0
    assert kproto("configs", "set", f"topic/{names[0]}", "retention.ms=8000").code == 0
    configs = rows_of(kproto, "configs", "list", f"topic/{pattern}")
    assert [row["value"] for row in configs] == ["8000", "9000"]
    refused = kproto("topics", "delete", pattern)
    assert f"delete 2 topics ({', '.join(names)}) with their records" in refused.err[0]
    assert kproto("topics", "delete", pattern, "--yes").code == 0
    assert rows_of(kproto, "topics", "list", pattern) == []
    refused = kproto("topics", "delete", pattern, "--yes")
    assert (refused.code, "no topic matches" in refused.err[0]) == (1, True)
    assert [row["topic"] for row in rows_of(kproto, "topics", "list", f"{topic}*")] == [topic]
