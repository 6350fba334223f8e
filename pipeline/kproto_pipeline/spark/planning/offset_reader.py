"""Resolves the options of a read against the cluster: partitions, log offsets, offset ranges.

Sends Metadata and ListOffsets requests; `offset_ranges` computes from the results.
Imports no Spark.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kproto.protocol.error_codes import code_of
from kproto.wire.errors import BrokerResponseError

from ..options.errors import OptionError
from ..options.timestamp_spec import TimestampSpec
from .offset_ranges import (
    DataLossError,
    LogOffsets,
    check_partitions_named,
    plan_ranges,
    resolve_offsets,
    split_ranges,
)
from .range_filter import ALL

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto.client import Client, TopicPartition
    from kproto.wire.uuid import Uuid

    from ..options.option_table import ReadOptions
    from ..options.topic_selection import TopicSelection
    from .offset_ranges import OffsetRange
    from .range_filter import RangeFilter

__all__ = [
    "batch_offsets",
    "check_selection_exists",
    "list_log_offsets",
    "plan_batch",
    "starting_offsets",
]

logger = logging.getLogger("kproto.pipeline")

#: The maximum number of attempts to list offsets while topics are recreated or partitions added.
_MAX_ATTEMPTS: Final = 5

_UNKNOWN_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")

#: ListOffsets returns this offset if no record has the timestamp or a later one.
_NO_OFFSET: Final = -1


async def list_log_offsets(
    client: Client, options: ReadOptions, *, skip_missing: bool = False, await_topics: bool = True
) -> LogOffsets:
    """Lists the earliest and latest offsets of the selected partitions.

    If `await_topics` is True, waits for topics that are missing in the metadata, for at most
    `metadata_wait_ms` of the client. Leaves out assigned partitions that do not exist, as Spark's
    connector does; without `skip_missing`, logs a warning. If `skip_missing` is True, also leaves
    out topics that do not exist. With the option `read_committed`, the latest offset is the last
    stable offset.

    Raises:
        BrokerResponseError: without `skip_missing`, a selected topic does not exist.
        DataLossError: topics or partitions changed at every attempt.
        KprotoError: any error of the client.
    """
    parts = await _selected_partitions(client, options, skip_missing, await_topics)
    for _ in range(_MAX_ATTEMPTS):
        earliest, latest = await asyncio.gather(
            client.list_offsets(dict.fromkeys(parts, "earliest")),
            client.list_offsets(
                dict.fromkeys(parts, "latest"), read_committed=options.read_committed
            ),
        )
        # ListOffsets addresses topics by name: the offsets belong to the topic id only if the id is
        # still the same afterwards.
        current = await _selected_partitions(client, options, skip_missing, await_topics=False)
        if current == parts:
            break
        parts = current
    else:
        raise DataLossError(
            f"topics and partitions changed {_MAX_ATTEMPTS} times while their offsets were listed"
        )
    if not skip_missing:
        _warn_of_missing_partitions(options.selection, parts)
    return LogOffsets(parts, earliest, latest)


def check_selection_exists(selection: TopicSelection, log_offsets: LogOffsets) -> None:
    """Raises OptionError if the cluster lacks a selected topic, or all its assigned partitions.

    Logs a warning if the cluster lacks some of the assigned partitions.
    """
    topics = {topic for topic, _ in log_offsets.topic_ids}
    missing = [topic for topic in selection.topics if topic not in topics]
    missing += [f"{t}-{p}" for t, p in selection.partitions if t not in topics]
    if missing:
        option = "subscribe" if selection.topics else "assign"
        raise OptionError(f"option {option}: the cluster has no {', '.join(missing)}")
    _warn_of_missing_partitions(selection, log_offsets.topic_ids)


def _warn_of_missing_partitions(
    selection: TopicSelection, existing: Collection[TopicPartition]
) -> None:
    missing = [
        f"{topic}-{number}"
        for topic, number in selection.partitions
        if (topic, number) not in existing
    ]
    if missing:
        logger.warning(
            "option assign: the cluster has no %s; the query reads the other partitions",
            ", ".join(missing),
        )


async def starting_offsets(
    client: Client, options: ReadOptions, log_offsets: LogOffsets
) -> dict[TopicPartition, int]:
    """Returns the starting offset of each partition.

    Raises:
        OptionError: the options do not name exactly the partitions that are read; or a partition
        has no record at or after its starting timestamp, and `latest_without_match` is not set.
    """
    spec = options.starting_offsets
    if not isinstance(spec, TimestampSpec):
        parts = log_offsets.topic_ids
        return resolve_offsets(
            "startingOffsets", spec, parts, log_offsets.earliest, log_offsets.latest
        )
    found = await _offsets_by_timestamp(client, options, spec, log_offsets)
    late = sorted(part for part, offset in found.items() if offset == _NO_OFFSET)
    if late and not options.latest_without_match:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in late[:10])
        raise OptionError(
            f"option {spec.option}: no record has the timestamp or a later one in {names}"
            f"{' …' if len(late) > 10 else ''}; set startingOffsetsByTimestampStrategy to latest "
            "to start at the latest offset of these partitions"
        )
    return found | {part: log_offsets.latest[part] for part in late}


async def ending_offsets(
    client: Client, options: ReadOptions, log_offsets: LogOffsets
) -> dict[TopicPartition, int]:
    """Returns the ending offset (exclusive) of each partition.

    If the option is a timestamp, a partition ends before its first record at or after that
    timestamp. A partition without such a record ends at its latest offset.

    Raises:
        OptionError: the option names offsets or timestamps by partition, but not for exactly the
            partitions that are read.
    """
    spec = options.ending_offsets
    if not isinstance(spec, TimestampSpec):
        parts = log_offsets.topic_ids
        return resolve_offsets(
            "endingOffsets", spec, parts, log_offsets.earliest, log_offsets.latest
        )
    found = await _offsets_by_timestamp(client, options, spec, log_offsets)
    # The log may have grown after its latest offset was listed.
    return {
        part: log_offsets.latest[part]
        if offset == _NO_OFFSET
        else min(offset, log_offsets.latest[part])
        for part, offset in found.items()
    }


async def batch_offsets(
    client: Client, options: ReadOptions, log_offsets: LogOffsets
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Returns the starting and ending offsets of each partition of a batch.

    Raises:
        OptionError: as in `starting_offsets` and `ending_offsets`.
    """
    starts = await starting_offsets(client, options, log_offsets)
    ends = await ending_offsets(client, options, log_offsets)
    if isinstance(options.starting_offsets, TimestampSpec):
        # If the log has grown since its offsets were listed, a start may be after the latest one.
        starts = {part: min(start, log_offsets.latest[part]) for part, start in starts.items()}
    return starts, ends


async def _offsets_by_timestamp(
    client: Client, options: ReadOptions, spec: TimestampSpec, log_offsets: LogOffsets
) -> dict[TopicPartition, int]:
    """Returns the offset of each partition's first record at or after the timestamp of `spec`.

    The offset is -1 if a partition has no such record.
    """
    if isinstance(spec.timestamps, Mapping):
        check_partitions_named(f"option {spec.option}", spec.timestamps, log_offsets.topic_ids)
        times = dict(spec.timestamps)
    else:
        times = dict.fromkeys(log_offsets.topic_ids, spec.timestamps)
    return await client.list_offsets(times, read_committed=options.read_committed)


async def plan_batch(
    client: Client, options: ReadOptions, range_filter: RangeFilter = ALL
) -> list[OffsetRange]:
    """Returns the offset ranges of a batch read, reduced by the filters of the query.

    Raises:
        OptionError: a selected partition does not exist, the options do not name exactly the
        partitions that are read, or a partition has no record at or after its starting timestamp.
        ConfigurationError: a start is after its end.
        DataLossError: with `fail_on_data_loss`, the log lacks requested offsets.
        KprotoError: any error of the client.
    """
    log_offsets = await list_log_offsets(client, options)
    starts, ends = await batch_offsets(client, options, log_offsets)
    if range_filter is not ALL:
        starts, ends = range_filter.clip(starts, ends)
        starts = await _skip_before_timestamp(client, options, range_filter, starts, ends)
    ranges = plan_ranges(
        starts,
        ends,
        log_offsets.earliest,
        log_offsets.latest,
        fail_on_data_loss=options.fail_on_data_loss,
    )
    return split_ranges(
        [
            replace(each, topic_id=log_offsets.topic_ids[each.topic, each.partition])
            for each in ranges
        ],
        min_partitions=options.min_partitions,
        max_records=options.max_records_per_partition,
    )


async def _skip_before_timestamp(
    client: Client,
    options: ReadOptions,
    range_filter: RangeFilter,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Moves each start forward to the first record at or after `min_timestamp_ms`.

    If a partition has no such record, its start becomes its end.
    """
    if range_filter.min_timestamp_ms is None or not starts:
        return dict(starts)
    times = dict.fromkeys(starts, range_filter.min_timestamp_ms)
    found = await client.list_offsets(times, read_committed=options.read_committed)
    return {
        part: min(
            max(start, ends[part] if found[part] == _NO_OFFSET else found[part]),
            max(start, ends[part]),
        )
        for part, start in starts.items()
    }


async def _selected_partitions(
    client: Client, options: ReadOptions, skip_missing: bool, await_topics: bool
) -> dict[TopicPartition, Uuid]:
    """Returns the partitions that the options select, with their topic ids.

    Refreshes metadata first, because a shared client may have old metadata.
    """
    selection = options.selection
    if selection.pattern is not None:
        # As in the connector, the pattern matches anywhere in the name, and internal topics are
        # excluded.
        matching = re.compile(selection.pattern)
        found = [
            info
            for info in await client.refresh()
            if matching.search(info.name) and not info.internal
        ]
    else:
        names = selection.topics or tuple({topic: None for topic, _ in selection.partitions})
        errors = {info.name: info.error_code for info in await client.refresh(names)}
        if skip_missing and not await_topics:
            names = tuple(name for name in names if errors.get(name) != _UNKNOWN_TOPIC)
        # Concurrently, because each call may wait until its topic appears.
        results = await asyncio.gather(*map(client.topic, names), return_exceptions=True)
        found = []
        for result in results:
            if isinstance(result, BrokerResponseError) and result.code == _UNKNOWN_TOPIC:
                if not skip_missing:
                    raise result
            elif isinstance(result, BaseException):
                raise result
            else:
                found.append(result)
    existing = {
        (info.name, partition): info.topic_id
        for info in found
        for partition in sorted(info.partitions)
    }
    if not selection.partitions:
        return existing
    return {part: existing[part] for part in selection.partitions if part in existing}
