"""Tests of details of commands, which run on an embedded and on real brokers.

A test file imports all names of this module, and has the fixtures `kproto`, `bootstrap` and
`topic` (a topic with three partitions).
"""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from kproto import Client, Producer
from kproto.cli.record_json import record_line, record_of_line
from kproto.records import Record
from tests.support.admin_commands import rows_of
from tests.support.cli_runs import Run

__all__ = [
    "test_aborted_records_count_only_without_read_committed",
    "test_empty_delimiter_joins_values",
    "test_header_names_of_any_bytes_come_back",
    "test_last_records_of_an_empty_topic_are_none",
    "test_markers_do_not_count_as_last_records",
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
