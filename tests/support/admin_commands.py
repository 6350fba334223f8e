"""Tests of the commands for administrators, for the embedded broker and for real brokers.

A test module imports them, and provides the fixture `kproto`, which runs a command, and the fixture
`topic`, a new topic with three partitions.
"""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path

import pytest

from .cli_runs import Run

__all__ = [
    "group",
    "rows_of",
    "test_apis_of_brokers_are_listed",
    "test_broker_configs_are_printed",
    "test_brokers_are_listed",
    "test_configs_are_set_and_unset",
    "test_features_are_listed",
    "test_features_keep_their_levels_in_a_dry_run",
    "test_group_is_described",
    "test_group_is_listed_and_deleted",
    "test_lag_is_printed_in_every_form",
    "test_offsets_are_reset",
    "test_offsets_of_a_file_are_committed",
    "test_partitions_are_added",
    "test_quorum_is_described",
    "test_records_are_deleted",
    "test_replicas_have_log_directories",
    "test_topic_is_created_described_and_deleted",
    "test_topics_are_listed_by_a_pattern",
]


#: Maximum time in s in which a broker applies a change of the metadata.
APPLIED_WITHIN_S = 60.0


def rows_of(kproto: Run, *arguments: str) -> list[dict[str, object]]:
    """Returns the rows of a command as JSON data."""
    found = kproto(*arguments, "--json")
    assert (found.code, found.err) == (0, []), found
    return [json.loads(line) for line in found.lines()]


def test_topic_is_created_described_and_deleted(kproto: Run, topic: str) -> None:
    name = f"{topic}.new"
    made = rows_of(kproto, "topics", "create", name, "--partitions", "2", "-c", "retention.ms=9000")
    assert [(row["topic"], row["partitions"], row["replicas"]) for row in made] == [(name, 2, 1)]
    again = kproto("topics", "create", name)
    assert (again.code, len(again.err)) == (1, 1)
    assert "TOPIC_ALREADY_EXISTS" in again.err[0]
    assert kproto("topics", "create", name, "--if-missing").code == 0
    described = rows_of(kproto, "topics", "describe", name)
    assert [(row["partition"], row["in_sync"] == row["replicas"]) for row in described] == [
        (0, True),
        (1, True),
    ]
    (config,) = rows_of(kproto, "configs", "list", f"topic/{name}", "--name", "retention.ms")
    assert (config["value"], config["source"]) == ("9000", "TOPIC")
    refused = kproto("topics", "delete", name)
    (line,) = refused.err
    assert line.startswith(f"kproto: error: this would delete 1 topic ({name})")
    assert line.endswith("--yes is needed without a terminal")
    assert kproto("topics", "delete", name, "--yes").code == 0
    assert rows_of(kproto, "topics", "list", name) == []


def test_topics_are_listed_by_a_pattern(kproto: Run, topic: str) -> None:
    (row,) = rows_of(kproto, "topics", "list", f"{topic[:-1]}?")
    assert (row["topic"], row["partitions"], row["replicas"]) == (topic, 3, 1)
    table = kproto("topics").lines()
    assert table[0].split() == ["TOPIC", "PARTITIONS", "REPLICAS", "ID"]
    assert any(line.split()[:3] == [topic, "3", "1"] for line in table)


def test_partitions_are_added(kproto: Run, topic: str) -> None:
    assert kproto("topics", "alter", topic, "--partitions", "5", "--dry-run").code == 0
    assert len(rows_of(kproto, "topics", "describe", topic)) == 3
    assert kproto("topics", "alter", topic, "--partitions", "5").code == 0
    assert len(rows_of(kproto, "topics", "describe", topic)) == 5
    assert "INVALID_PARTITIONS" in kproto("topics", "alter", topic, "--partitions", "2").err[0]


def test_records_are_deleted(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "1", "--timestamp", "1970-01-01T00:00:05Z", stdin=b"a\nb\nc")
    kproto("produce", topic, "-p", "1", "--timestamp", "1970-01-01T00:00:09Z", stdin=b"d")
    offsets = rows_of(kproto, "topics", "offsets", topic, "--time", "1970-01-01T00:00:09Z")
    assert [row["records"] for row in offsets] == [0, 4, 0]
    assert [row["at_time"] for row in offsets] == [-1, 3, -1]
    command = ["topics", "delete-records", f"{topic}:1", "--before-offset", "2", "-y"]
    assert rows_of(kproto, *command) == [{"topic": topic, "partition": 1, "log_start": 2}]
    assert kproto("consume", topic, "--from-beginning", "-e").lines() == ["c", "d"]
    command = ["topics", "delete-records", topic, "--before", "1970-01-01T00:00:09Z", "-y"]
    assert kproto(*command).code == 0
    assert kproto("consume", topic, "--from-beginning", "-e").lines() == ["d"]


@pytest.fixture
def group(kproto: Run, topic: str) -> str:
    """Returns a group without members, which has read 3 of 5 records in partition 0."""
    name = f"{topic}-group"
    kproto("produce", topic, "-p", "0", stdin=b"1\n2\n3\n4\n5")
    found = kproto("consume", topic, "-g", name, "--from-beginning", "-n", "3")
    assert found.lines() == ["1", "2", "3"]
    return name


def test_group_is_listed_and_deleted(kproto: Run, group: str) -> None:
    listed = {row["group"]: row for row in rows_of(kproto, "groups")}
    assert listed[group]["state"] == "Empty"
    refused = kproto("groups", "delete", group)
    assert "--yes is needed" in refused.err[0]
    assert kproto("groups", "delete", group, "--yes").code == 0
    assert group not in {row["group"] for row in rows_of(kproto, "groups")}
    missing = kproto("groups", "delete", group, "--yes")
    assert (missing.code, "GROUP_ID_NOT_FOUND" in missing.err[0]) == (1, True)


def test_group_is_described(kproto: Run, group: str) -> None:
    (row,) = rows_of(kproto, "groups", "describe", group)
    assert (row["group"], row["state"], row["member"]) == (group, "Empty", None)


def test_lag_is_printed_in_every_form(kproto: Run, topic: str, group: str) -> None:
    row = next(each for each in rows_of(kproto, "groups", "lag", group) if each["partition"] == 0)
    assert (row["topic"], row["committed"], row["log_end"], row["lag"]) == (topic, 3, 5, 2)
    table = kproto("groups", "lag", group).lines()
    assert table[0].split()[:6] == ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "LOG", "END"]
    printed = kproto("groups", "lag", group, "--csv").out.decode()
    read = list(csv.DictReader(io.StringIO(printed)))
    assert {each["partition"]: each["lag"] for each in read}["0"] == "2"
    (total,) = rows_of(kproto, "groups", "lag", group, "--sum")
    assert (total["topic"], total["lag"]) == (topic, 2)
    watched = kproto("groups", "watch", group, "--sum", "-n", "2", "--interval", "10ms", "--json")
    assert [json.loads(line)["lag"] for line in watched.lines()] == [2, 2]


@pytest.mark.parametrize(
    ("to", "new"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 5),
        (["--to-offset", "4"], 4),
        (["--to-offset", "99"], 5),
        (["--shift", "-2"], 1),
        (["--shift", "9"], 5),
        (["--to-time", "1971-01-01"], 0),
        (["--to-time", "2100-01-01"], 5),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_offsets_are_reset(kproto: Run, topic: str, group: str, to: list[str], new: int) -> None:
    command = ["groups", "reset", group, "--topic", f"{topic}:0", *to]
    row = {"topic": topic, "partition": 0, "committed": 3, "new": new, "log_end": 5}
    planned = kproto(*command, "--dry-run", "--json")
    assert [json.loads(line) for line in planned.lines()] == [row]
    assert "--yes is needed" in kproto(*command).err[-1]
    planned = kproto(*command, "--dry-run", "--json")
    assert [json.loads(line) for line in planned.lines()] == [row]  # nothing was committed
    done = kproto(*command, "--yes", "--json")
    assert [json.loads(line) for line in done.lines()] == [row]
    after = kproto("consume", topic, "-g", group, "--timeout", "1s").lines()
    assert after == [str(number) for number in range(new + 1, 6)]


def test_offsets_of_a_file_are_committed(
    kproto: Run, topic: str, group: str, tmp_path: Path
) -> None:
    saved = tmp_path / "saved.csv"
    saved.write_bytes(kproto("groups", "lag", group, "--csv").out)
    assert kproto("groups", "reset", group, "--to-latest", "-y").code == 0
    assert kproto("groups", "reset", group, "--from-file", str(saved), "-y").code == 0
    (total,) = rows_of(kproto, "groups", "lag", group, "--sum")
    assert total["lag"] == 2
    saved.write_text(f"{topic},0,1\n")
    assert kproto("groups", "reset", group, "--from-file", str(saved), "-y").code == 0
    row = next(each for each in rows_of(kproto, "groups", "lag", group) if each["partition"] == 0)
    assert row["committed"] == 1
    saved.write_text("topic;0;1\n")
    refused = kproto("groups", "reset", group, "--from-file", str(saved), "-y")
    assert "line 1 of the file" in refused.err[0]


def test_configs_are_set_and_unset(kproto: Run, topic: str) -> None:
    resource = f"topic/{topic}"
    assert rows_of(kproto, "configs", "list", resource) == []
    command = ["configs", "set", resource, "retention.ms=1000", "cleanup.policy=compact"]
    assert kproto(*command, "--dry-run").code == 0
    assert rows_of(kproto, "configs", "list", resource) == []
    assert kproto(*command).code == 0
    assert kproto("configs", "append", resource, "cleanup.policy=delete").code == 0
    found = {row["name"]: row["value"] for row in rows_of(kproto, "configs", "list", resource)}
    assert found == {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
    assert kproto("configs", "subtract", resource, "cleanup.policy=compact").code == 0
    assert kproto("configs", "unset", resource, "retention.ms").code == 0
    (row,) = rows_of(kproto, "configs", "list", resource)
    assert (row["name"], row["value"], row["source"]) == ("cleanup.policy", "delete", "TOPIC")
    everything = rows_of(kproto, "configs", "list", resource, "--all")
    assert len(everything) > 20
    refused = kproto("configs", "set", resource, "no.such.config=1")
    assert (refused.code, "INVALID_CONFIG" in refused.err[0]) == (1, True)


def test_broker_configs_are_printed(kproto: Run) -> None:
    (broker, *_) = rows_of(kproto, "cluster")
    resource = f"broker/{broker['broker']}"
    (row,) = rows_of(kproto, "configs", "list", resource, "--name", "num.partitions")
    assert (row["resource"], row["type"]) == (resource, "INT")


def test_brokers_are_listed(kproto: Run) -> None:
    rows = rows_of(kproto, "cluster", "brokers")
    assert sum(row["controller"] is True for row in rows) <= 1
    assert all(row["port"] for row in rows)
    assert kproto("cluster").lines()[0].split()[:3] == ["BROKER", "HOST", "PORT"]


def test_features_are_listed(kproto: Run) -> None:
    rows = rows_of(kproto, "cluster", "features")
    assert None not in [row["finalized"] for row in rows]
    (row,) = (row for row in rows if row["feature"] == "metadata.version")
    level, name = row["finalized"], row["finalized_name"]
    table = kproto("cluster", "features").lines()
    (line,) = (line for line in table if line.startswith("metadata.version"))
    assert f"{level} ({name})" in line


def test_features_keep_their_levels_in_a_dry_run(kproto: Run) -> None:
    def level() -> object:
        rows = rows_of(kproto, "cluster", "features")
        return next(row["finalized_name"] for row in rows if row["feature"] == "metadata.version")

    name = level()
    command = ["cluster", "upgrade-features", f"metadata.version={name}", "--dry-run"]
    assert kproto(*command).code == 0
    lower = ["cluster", "downgrade-features", "metadata.version=3.3-IV3"]
    refused = kproto(*lower)
    assert "set metadata.version to 7 (3.3-IV3); --yes is needed" in refused.err[-1]
    refused = kproto(*lower, "--dry-run")
    assert (refused.code, len(refused.err)) == (1, 1)
    assert "no feature was changed: INVALID_UPDATE_VERSION" in refused.err[0]
    assert level() == name


def test_apis_of_brokers_are_listed(kproto: Run) -> None:
    rows = rows_of(kproto, "cluster", "api-versions")
    (fetch,) = (row for row in rows if row["api"] == "Fetch")
    assert fetch["key"] == 1
    versions = [int(str(fetch[name])) for name in ("lowest", "usable", "highest")]
    assert versions == sorted(versions)
    assert rows == rows_of(kproto, "cluster", "api-versions", "--broker", str(fetch["broker"]))


def test_quorum_is_described(kproto: Run) -> None:
    rows = rows_of(kproto, "cluster", "quorum")
    assert [row["role"] for row in rows].count("leader") == 1
    (status,) = rows_of(kproto, "cluster", "quorum", "--status")
    assert status["voters"] == [row["node"] for row in rows if row["role"] != "observer"]


def test_replicas_have_log_directories(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "2", stdin=b"x")
    end = time.monotonic() + APPLIED_WITHIN_S
    while True:  # a broker makes the logs of a new topic one after the other
        found = [row for row in rows_of(kproto, "cluster", "log-dirs") if row["topic"] == topic]
        if len(found) == 3 or time.monotonic() > end:
            break
    assert {row["partition"] for row in found} == {0, 1, 2}
    assert all(row["error"] is None for row in found)
