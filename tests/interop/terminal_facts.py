"""Lists commands of Kafka's scripts with those of `kproto` that must print the same facts.

A fact is a tuple of texts. The topic `t` has two partitions, a config and records, the group `g`
has committed offsets, `tx` is a transactional id, and `m` a subscription of client metrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

__all__ = ["COMPARISONS", "Comparison", "Fact"]

#: Texts of a row, such as a topic, a partition and an offset.
Fact = tuple[str, ...]

Row = dict[str, Any]


class Comparison(NamedTuple):
    """A command of a script and of `kproto`, and the facts in the text and in the rows of both."""

    script: str
    ours: str
    facts_of_text: Callable[[str], Iterable[Fact]]
    facts_of_rows: Callable[[list[Row]], Iterable[Fact]]


def _columns(*names: str) -> Callable[[list[Row]], list[Fact]]:
    """Returns the function that reads some columns of rows."""
    return lambda rows: [tuple(_text(row[name]) for name in names) for row in rows]


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "None" if value is None else str(value)


def _table(*names: str) -> Callable[[str], list[Fact]]:
    """Returns the function that reads some columns of a table, whose cells have no blanks.

    Other lines have fewer words.
    """

    def read(text: str) -> list[Fact]:
        rows = [line.split() for line in text.splitlines() if line.strip()]
        header = next((row for row in rows if names[0] in row), [])
        at = [header.index(name) for name in names] if header else []
        others = [row for row in rows if row is not header and len(row) > max(at, default=len(row))]
        return [tuple(row[each] for each in at) for row in others]

    return read


def _matches(pattern: str) -> Callable[[str], list[Fact]]:
    """Returns the function that reads the groups of a pattern in each line."""

    def read(text: str) -> list[Fact]:
        found = (re.search(pattern, line) for line in text.splitlines())
        return [tuple(map(str.strip, each.groups(default=""))) for each in found if each]

    return read


def _features(rows: list[Row]) -> list[Fact]:
    """Returns the levels; of metadata.version, the script of Kafka 4.3 knows only the lowest."""
    return [
        (row["feature"], row["lowest_name"], "", "")
        if row["feature"] == "metadata.version"
        else _columns("feature", "lowest", "highest", "finalized")([row])[0]
        for row in rows
    ]


def _features_of_text(text: str) -> list[Fact]:
    pattern = (
        r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (.*?)\s+"
        r"FinalizedVersionLevel: (.*?)\s+Epoch: \d+"
    )
    return [
        (*each[:2], "", "") if each[0] == "metadata.version" else each
        for each in _matches(pattern)(text)
    ]


def _status_of_text(text: str) -> list[Fact]:
    read = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    voters = ",".join(str(each["id"]) for each in json.loads(read["CurrentVoters"]))
    names = ("ClusterId", "LeaderId", "LeaderEpoch", "MaxFollowerLag", "MaxFollowerLagTimeMs")
    return [(*(read[name].strip() for name in names), voters)]


_ROLES: Final = {"Leader": "leader", "Follower": "voter", "Observer": "observer"}


def _replication_of_text(text: str) -> list[Fact]:
    found = _table("NodeId", "DirectoryId", "Lag", "Status")(text)
    return [(*each[:3], _ROLES[each[3]]) for each in found]


def _sizes_of_text(text: str) -> list[Fact]:
    document = json.loads(text.splitlines()[-1])
    return [
        (str(broker["broker"]), log_dir["logDir"], each["partition"], str(each["size"]))
        for broker in document["brokers"]
        for log_dir in broker["logDirs"]
        for each in log_dir["partitions"]
        if each["partition"].startswith("t-")
    ]


def _sizes(rows: list[Row]) -> list[Fact]:
    return [
        (*_columns("broker", "log_dir")([row])[0], f"t-{row['partition']}", str(row["bytes"]))
        for row in rows
        if row["topic"] == "t"
    ]


def _assignment_of_text(text: str) -> list[Fact]:
    """Returns the replicas of now, which `--generate` prints first."""
    line = next(each for each in text.splitlines() if each.startswith("{"))
    return [
        (each["topic"], str(each["partition"]), _text(each["replicas"]))
        for each in json.loads(line)["partitions"]
    ]


def _without(value: str, facts: Callable[[str], list[Fact]]) -> Callable[[str], list[Fact]]:
    """Returns `facts` without those that have the text `value`."""
    return lambda text: [each for each in facts(text) if value not in each]


_PRODUCERS: Final = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)

COMPARISONS: Final = (
    Comparison("features describe", "cluster features", _features_of_text, _features),
    Comparison(
        "metadata-quorum describe --status",
        "cluster quorum --status",
        _status_of_text,
        _columns("cluster", "leader", "epoch", "max_follower_lag", "max_follower_lag_ms", "voters"),
    ),
    Comparison(
        "metadata-quorum describe --replication",
        "cluster quorum",
        _replication_of_text,
        _columns("node", "directory", "lag", "role"),
    ),
    Comparison(
        "cluster list-endpoints",
        "cluster brokers",
        _table("ID", "HOST", "PORT"),
        _columns("broker", "host", "port"),
    ),
    Comparison(
        "broker-api-versions",
        "cluster api-versions",
        _without("UNKNOWN", _matches(r"^\t(\w+)\((\d+)\): (\d+)")),
        lambda rows: [
            (row["api"], str(row["key"]), str(row["lowest"])) for row in rows if row["key"] < 93
        ],
    ),
    Comparison(
        "delete-records --offset-json-file {f}/records.json",
        "topics delete-records t:0 --before-offset 2 --yes",
        _matches(r"partition: (t)-(\d+)\s+low_watermark: (\d+)"),
        _columns("topic", "partition", "log_start"),
    ),
    Comparison(
        "share-groups --group s --topic t --reset-offsets --to-earliest --execute",
        "groups reset s --topic t --to-earliest --dry-run",
        _matches(r"^s\s+(t)\s+(\d+)\s+(\d+)"),
        _columns("topic", "partition", "new"),
    ),
    Comparison(
        "share-groups --describe --group s --offsets",
        "groups lag s",
        _matches(r"^s\s+(t)\s+(\d+)\s+(\d+)\s+(\d+)"),
        _columns("topic", "partition", "start_offset", "lag"),
    ),
    Comparison(
        "groups --list",
        "groups",
        _table("GROUP", "TYPE", "PROTOCOL"),
        _columns("group", "type", "protocol_type"),
    ),
    Comparison(
        "consumer-groups --describe --group g --offsets",
        "groups lag g",
        _table("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
        _columns("topic", "partition", "committed", "log_end", "lag"),
    ),
    Comparison(
        "consumer-groups --describe --group g --state",
        "groups describe g",
        _matches(r"^(g)\s+\S+\s+\((\d+)\)\s+(\S+)\s+(\S+)\s+0"),
        _columns("group", "coordinator", "assignor", "state"),
    ),
    Comparison("share-groups --list", "groups --type share", _matches(r"^(s)$"), _columns("group")),
    Comparison(
        "streams-groups --list", "groups --type streams", _matches(r"(g)"), _columns("group")
    ),
    Comparison(
        "transactions list",
        "transactions",
        _table("TransactionalId", "Coordinator", "ProducerId", "TransactionState"),
        _columns("transactional_id", "coordinator", "producer_id", "state"),
    ),
    Comparison(
        "transactions describe --transactional-id tx",
        "transactions describe tx",
        _table(
            "TransactionalId",
            "CoordinatorId",
            "ProducerId",
            "ProducerEpoch",
            "TransactionState",
            "TransactionTimeoutMs",
        ),
        _columns(
            "transactional_id",
            "coordinator",
            "producer_id",
            "producer_epoch",
            "state",
            "timeout_ms",
        ),
    ),
    Comparison(
        "transactions describe-producers --topic t --partition 0",
        "transactions producers t:0",
        _table(*_PRODUCERS),
        _columns(
            "producer_id",
            "producer_epoch",
            "coordinator_epoch",
            "last_sequence",
            "last_timestamp_ms",
            "transaction_start_offset",
        ),
    ),
    Comparison(
        "transactions find-hanging --broker-id 1",
        "transactions hanging",
        _table("Topic", "Partition", "ProducerId"),
        _columns("topic", "partition", "producer_id"),
    ),
    *(
        Comparison(
            f"get-offsets --topic t --time {time}",
            f"topics offsets t {more}",
            _matches(r"^(t):(\d+):(-?\d*)$"),
            _columns("topic", "partition", column),
        )
        for time, more, column in (
            ("latest", "", "log_end"),
            ("earliest", "", "log_start"),
            ("max-timestamp", "--time max-timestamp", "at_time"),
            ("earliest-local", "--time earliest-local", "at_time"),
        )
    ),
    Comparison(
        "topics --describe --topic t",
        "topics describe t",
        _matches(
            r"Topic: (\S+)\s+Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\S*)\s+Isr: (\S*)\s+"
            r"Elr: (.*?)\s*LastKnownElr: (.*)$"
        ),
        _columns("topic", "partition", "leader", "replicas", "in_sync", "elr", "last_known_elr"),
    ),
    *(
        Comparison(
            f"topics --describe --{option}-partitions",
            f"topics describe --{ours}",
            _matches(r"Topic: (\S+)\s+Partition: (\d+)"),
            _columns("topic", "partition"),
        )
        for option, ours in (
            ("under-replicated", "under-replicated"),
            ("at-min-isr", "at-min-isr"),
            ("under-min-isr", "under-min-isr"),
            ("unavailable", "unavailable"),
        )
    ),
    Comparison(
        "client-metrics --describe --name m",
        "configs list client-metrics/m --all",
        _matches(r"^  ([\w.]+)=(.*)$"),
        _columns("name", "value"),
    ),
    Comparison(
        "client-metrics --list",
        "configs list client-metrics/* --name interval.ms",
        _matches(r"^(\S+)$"),
        lambda rows: [(row["resource"].removeprefix("client-metrics/"),) for row in rows],
    ),
    Comparison(
        "configs --describe --entity-type users",
        "quotas list",
        _matches(r"user-principal '(.*)' are (\w+)=(\S+)"),
        _columns("user", "quota", "value"),
    ),
    Comparison("log-dirs --describe --broker-list 1", "cluster log-dirs", _sizes_of_text, _sizes),
    Comparison(
        "leader-election --election-type preferred --all-topic-partitions",
        "cluster elect --yes",
        _matches(r"Successfully completed leader election \(PREFERRED\) for partitions (.*)"),
        lambda rows: [(row["topic"],) for row in rows if row["elected"]],
    ),
    Comparison(
        "reassign-partitions --topics-to-move-json-file {f}/topics.json --broker-list 1 --generate",
        "cluster plan t --brokers 1",
        _assignment_of_text,
        _columns("topic", "partition", "replicas"),
    ),
    Comparison(
        "reassign-partitions --reassignment-json-file {f}/plan.json --verify",
        "cluster reassignments --plan {f}/plan.json",
        _matches(r"Reassignment of partition (t)-(\d+) is (complete)d"),
        _columns("topic", "partition", "status"),
    ),
    Comparison(
        "reassign-partitions --list",
        "cluster reassignments",
        _matches(r"(\S+)-(\d+): replicas"),
        _columns("topic", "partition"),
    ),
)
