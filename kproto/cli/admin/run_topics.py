"""Runs `kproto topics`."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ...client import Client, NewTopic, TopicPartition
from ...client.admin import AdminError, OffsetSpec, TopicDescription
from ...wire.counted import counted, were
from ...wire.errors import BrokerResponseError, ConfigurationError
from ..command_error import CommandError
from ..name_patterns import expanded, has_pattern, topics_of
from ..tables import named
from ..times import moment_of
from .confirming import confirm
from .rows import print_rows
from .run_topic_description import describe
from .running import PartialResults, VerbFunction, run_verb

__all__ = ["named_partition", "named_partitions", "run"]


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit code."""
    return run_verb(options, _VERBS)


async def _list(client: Client, options: argparse.Namespace) -> int:
    listed = await client.admin.list_topics(list_internal=options.internal)
    found = expanded([options.pattern or "*"], listed, what="topic")
    names = [name for name in found if name in listed]
    described = await client.admin.describe_topics(names) if names else {}
    print_rows(options, ("topic", "partitions", "replicas", "id"), map(_row, described.values()))
    return 0


def _row(topic: TopicDescription) -> dict[str, Any]:
    replicas = {len(partition.replicas) for partition in topic.partitions.values()}
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "replicas": max(replicas, default=0),
        "id": topic.topic_id,
    }


async def _named(client: Client, names: list[str]) -> list[str]:
    """Returns the topics that names and patterns name; all but internal topics without names."""
    return await topics_of(client, names or ["*"])


async def _create(client: Client, options: argparse.Namespace) -> int:
    topics = [
        NewTopic(name, options.partitions, options.replication_factor, dict(options.configs))
        for name in dict.fromkeys(options.names)
    ]
    try:
        created = await client.admin.create_topics(topics, validate_only=options.dry_run)
    except AdminError as error:
        created = error.results
        _print_created(options, created.values())
        others = [each for each in error.errors.values() if not _exists(each)]
        if options.if_missing and not others:
            return 0
        raise
    _print_created(options, created.values())
    return 0


def _exists(error: Exception) -> bool:
    return isinstance(error, BrokerResponseError) and error.name == "TOPIC_ALREADY_EXISTS"


def _print_created(options: argparse.Namespace, created: Iterable[Any]) -> None:
    rows = [
        {
            "topic": each.name,
            "partitions": each.partitions,
            "replicas": each.replication_factor,
            "id": None if options.dry_run else each.topic_id,
        }
        for each in created
    ]
    if rows:
        print_rows(options, ("topic", "partitions", "replicas", "id"), rows)


async def _delete(client: Client, options: argparse.Namespace) -> int:
    names = await topics_of(client, dict.fromkeys(options.names), needs_match=True)
    whose = "its" if len(names) == 1 else "their"
    if not confirm(options, f"delete {named(names, 'topic')} with {whose} records"):
        return 1
    await client.admin.delete_topics(names)
    return 0


async def _alter(client: Client, options: argparse.Namespace) -> int:
    names = await topics_of(client, dict.fromkeys(options.names), needs_match=True)
    number = int(options.partitions)
    if has_pattern(options.names) and not options.dry_run:
        action = f"give {named(names, 'topic')} {counted(number, 'partition')}"
        if not confirm(options, f"{action} each" if len(names) > 1 else action):
            return 1
    await client.admin.create_partitions(
        dict.fromkeys(names, number), validate_only=options.dry_run
    )
    return 0


def partitions_of(topics: Iterable[TopicDescription]) -> Iterator[TopicPartition]:
    """Yields the partitions of topics."""
    return ((topic.name, number) for topic in topics for number in topic.partitions)


async def _offsets(client: Client, options: argparse.Namespace) -> int:
    partial = PartialResults()
    names = await topics_of(client, options.names)
    described = await partial.of(client.admin.describe_topics(names)) if names else {}
    tps = list(partitions_of(described.values()))
    first = await partial.each_of(client.admin.list_offsets(dict.fromkeys(tps, "earliest")))
    last = await partial.each_of(client.admin.list_offsets(dict.fromkeys(first, "latest")))
    tps = [tp for tp in tps if tp in last]
    columns = ["topic", "partition", "log_start", "log_end", "records"]
    rows = [
        {
            "topic": tp[0],
            "partition": tp[1],
            "log_start": first[tp].offset,
            "log_end": last[tp].offset,
            "records": last[tp].offset - first[tp].offset,
        }
        for tp in tps
    ]
    if options.time is not None:
        spec = _offset_spec(options.time)
        found = await partial.each_of(client.admin.list_offsets(dict.fromkeys(tps, spec)))
        columns.append("at_time")
        for tp, row in zip(tps, rows, strict=True):
            row["at_time"] = found[tp].offset if tp in found else None
    if options.sum:
        columns, rows = ["topic", "partitions", "records"], _sums(rows)
    print_rows(options, columns, rows)
    partial.raise_error()
    return 0


def _offset_spec(text: str) -> OffsetSpec:
    """Returns the offset that `--time` names: one of a kind, or the first of a time in ms."""
    kinds: dict[str, OffsetSpec] = {
        "max-timestamp": "max_timestamp",
        "earliest-local": "earliest_local",
        "latest-tiered": "latest_tiered",
        "earliest-pending-upload": "earliest_pending_upload",
    }
    return kinds.get(text) or moment_of("--time", text)


def _sums(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row for each topic, and a row with the total, whose topic is None."""
    sums: dict[str | None, dict[str, Any]] = {}
    for row in rows:
        for topic in (row["topic"], None):
            total = sums.setdefault(topic, {"topic": topic, "partitions": 0, "records": 0})
            total["partitions"] += 1
            total["records"] += row["records"]
    total_row = sums.pop(None, None)
    return [*sums.values(), *([total_row] if total_row else [])]


async def _sizes(client: Client, options: argparse.Namespace) -> int:
    names = await _named(client, options.names)
    partial = PartialResults()
    described = await partial.of(client.admin.describe_topics(names)) if names else {}
    sizes: dict[TopicPartition, list[int]] = {}
    answers = await partial.each_of(client.admin.describe_log_dirs())
    for log_dirs in answers.values():
        for log_dir in log_dirs.values():
            for tp, replica in log_dir.replicas.items():
                sizes.setdefault(tp, []).append(replica.size_bytes)
    rows: list[dict[str, Any]] = []
    for topic in described.values():
        its = [sizes.get((topic.name, number), [0]) for number in topic.partitions]
        unknown = unknown_replicas(topic, answers)
        if unknown:
            partial.errors.append(CommandError(_unknown_size_words(topic.name, unknown)))
        rows.append(
            {
                "topic": topic.name,
                "partitions": len(its),
                "bytes": sum(map(max, its)),
                "bytes_of_all_replicas": sum(map(sum, its)),
            }
        )
    columns = ("topic", "partitions", "bytes", "bytes_of_all_replicas")
    total = {name: sum(row[name] for row in rows) for name in columns[1:]}
    print_rows(options, columns, [*rows, {"topic": None, **total}])
    partial.raise_error()
    return 0


def unknown_replicas(topic: TopicDescription, answered: Collection[int]) -> list[tuple[int, int]]:
    """Returns the partition and the broker of each replica whose size no broker has told.

    `answered` are the brokers that have described their log directories. A broker that answers may
    have a log directory that is offline.
    """
    return [
        (number, broker)
        for number, each in sorted(topic.partitions.items())
        for broker in each.replicas
        if broker not in answered or broker in each.offline
    ]


def _unknown_size_words(topic: str, unknown: Sequence[tuple[int, int]]) -> str:
    brokers = ", ".join(map(str, sorted({broker for _, broker in unknown})))
    count = len(unknown)
    return (
        f"{topic}: {counted(count, 'replica')} {were(count)} not counted, because the broker or "
        f"its log directory is offline: broker {brokers}"
    )


async def _delete_records(client: Client, options: argparse.Namespace) -> int:
    tps = await named_partitions(client, options.names)
    if options.before_offset is not None:
        wanted = {tp: int(options.before_offset) for tp in tps}
    else:
        moment = moment_of("--before", options.before)
        # The log ends come first: a record that arrives after them is never deleted.
        ends = await client.admin.list_offsets(dict.fromkeys(tps, "latest"))
        found = await client.admin.list_offsets(dict.fromkeys(tps, moment))
        wanted = {
            tp: first_offset_to_keep(each.offset, ends[tp].offset) for tp, each in found.items()
        }
    records = {tp: "all records" if to < 0 else f"records before {to}" for tp, to in wanted.items()}
    text = ", ".join(f"{topic}:{number} {records[topic, number]}" for topic, number in tps)
    if not confirm(options, f"delete {text}"):
        return 1
    partial = PartialResults()
    starts = await partial.of(client.admin.delete_records(wanted))
    rows = ({"topic": t, "partition": p, "log_start": at} for (t, p), at in starts.items())
    print_rows(options, ("topic", "partition", "log_start"), rows)
    partial.raise_error()
    return 0


def first_offset_to_keep(at_time: int, log_end: int) -> int:
    """Returns the offset before which `delete-records --before` deletes the records.

    `at_time` is the first offset of the time or later, -1 without one; `log_end` was listed before
    it. All records before `log_end` are then older, and records that arrive later are not.
    """
    return log_end if at_time < 0 else at_time


async def named_partitions(
    client: Client, names: Iterable[str], partial: PartialResults | None = None
) -> list[TopicPartition]:
    """Returns the partitions that `TOPIC` or `TOPIC:PARTITION` name, each once.

    `TOPIC` may be a pattern. Raises CommandError for a pattern that matches no topic and for a
    missing partition, and AdminError for a missing topic. With `partial` keeps the errors of
    missing topics and partitions there, if some partition was found.
    """
    parsed = [_parsed(name) for name in names]
    known = sorted(await client.admin.list_topics()) if has_pattern(t for t, _ in parsed) else []
    wanted = [
        (topic, number)
        for name, number in parsed
        for topic in expanded([name], known, what="topic", needs_match=True)
    ]
    describing = client.admin.describe_topics(dict.fromkeys(topic for topic, _ in wanted))
    described = await (describing if partial is None else partial.of(describing))
    found: dict[TopicPartition, None] = {}
    missing: list[CommandError] = []
    for topic, number in wanted:
        if topic not in described:
            continue
        there = described[topic].partitions
        if number is not None and number not in there:
            fault = f"{topic} has no partition {number}; it has {counted(len(there), 'partition')}"
            missing.append(CommandError(fault))
            continue
        found |= dict.fromkeys((topic, each) for each in (there if number is None else [number]))
    if missing and (partial is None or not found):
        raise missing[0]
    if partial is not None:
        partial.errors += missing
    return list(found)


async def named_partition(client: Client, name: str) -> TopicPartition:
    """Returns the partition that `TOPIC:PARTITION` names; raises as `named_partitions`."""
    tps = await named_partitions(client, [name])
    if len(tps) != 1 or not name.endswith(f":{tps[0][1]}"):
        raise ConfigurationError(f"{name!r} is no TOPIC:PARTITION")
    return tps[0]


def _parsed(name: str) -> tuple[str, int | None]:
    topic, colon, number = name.rpartition(":")
    if not colon:
        return name, None
    if not (number.isascii() and number.isdigit()):
        raise ConfigurationError(f"{name!r} is neither TOPIC nor TOPIC:PARTITION")
    return topic, int(number)


_VERBS: Final[dict[str, VerbFunction]] = {
    "list": _list,
    "describe": describe,
    "create": _create,
    "delete": _delete,
    "alter": _alter,
    "offsets": _offsets,
    "sizes": _sizes,
    "delete-records": _delete_records,
}
