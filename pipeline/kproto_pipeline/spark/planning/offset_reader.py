"""What a read consists of: its partitions and offsets, as the brokers have them now.

Owns the questions to the cluster. What the answers mean for offsets is `offset_spec`'s and
`ranges`' to decide. Knows nothing of Spark.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kproto.protocol.error_codes import code_of
from kproto.wire.errors import BrokerResponseError

from ..options.errors import OptionError
from ..options.offset_spec import check_partitions_named, resolve_offsets
from ..options.timestamp_spec import TimestampSpec
from .offset_ranges import DataLossError, LogOffsets, plan_ranges, split_ranges
from .range_filter import ALL

if TYPE_CHECKING:
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

#: How often offsets are asked for, as topics were made anew or partitions added meanwhile.
_MOST_LOOKS: Final = 5

_UNKNOWN_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")

#: ListOffsets by time says this where no record is that late.
_NONE_SO_LATE: Final = -1


async def list_log_offsets(
    client: Client, options: ReadOptions, *, skip_missing: bool = False, retry: bool = True
) -> LogOffsets:
    """The partitions that the options select, with both ends of their logs, asked for anew.

    With `skip_missing`, topics and partitions that are named and not there are left out;
    `retry`, after the time that a new topic has to appear. With `read_committed` a log ends at
    its last stable offset.

    Raises:
        OptionError: a partition that its topic does not have.
        BrokerResponseError: a topic that the cluster does not have.
        KprotoError: whatever the client raises.
    """
    parts = await _selected_partitions(client, options, skip_missing, retry)
    for _ in range(_MOST_LOOKS):
        earliest, latest = await asyncio.gather(
            client.list_offsets(dict.fromkeys(parts, "earliest")),
            client.list_offsets(
                dict.fromkeys(parts, "latest"), read_committed=options.read_committed
            ),
        )
        # Offsets are asked for by the topic's name: they are of that id if it is the same behind.
        again = await _selected_partitions(client, options, skip_missing, retry=False)
        if again == parts:
            break
        parts = again
    else:
        raise DataLossError(
            f"topics and partitions changed {_MOST_LOOKS} times while their offsets were asked for"
        )
    return LogOffsets(parts, earliest, latest)


def check_selection_exists(selection: TopicSelection, now: LogOffsets) -> None:
    """Raise OptionError for a topic or partition that is named and not there."""
    topics = {topic for topic, _ in now.topic_ids}
    missing = [topic for topic in selection.topics if topic not in topics]
    missing += [f"{t}-{p}" for t, p in selection.partitions if (t, p) not in now.topic_ids]
    if missing:
        option = "subscribe" if selection.topics else "assign"
        raise OptionError(f"option {option}: the cluster has no {', '.join(missing)}")


async def starting_offsets(
    client: Client, options: ReadOptions, now: LogOffsets
) -> dict[TopicPartition, int]:
    """Where the options say to begin, for each partition.

    Raises:
        ConfigurationError: they do not name exactly the partitions that are read; or a time that
            no record has reached, unless the options say to begin at the end then.
    """
    wanted = options.starting_offsets
    if not isinstance(wanted, TimestampSpec):
        parts = now.topic_ids
        return resolve_offsets("startingOffsets", wanted, parts, now.earliest, now.latest)
    found = await _by_time(client, options, wanted, now)
    late = sorted(part for part, offset in found.items() if offset == _NONE_SO_LATE)
    if late and not options.latest_without_match:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in late[:10])
        raise OptionError(
            f"option {wanted.option}: no record is that late in {names}"
            f"{' …' if len(late) > 10 else ''}; set startingOffsetsByTimestampStrategy to latest "
            "to begin at the end there"
        )
    return found | {part: now.latest[part] for part in late}


async def ending_offsets(
    client: Client, options: ReadOptions, now: LogOffsets
) -> dict[TopicPartition, int]:
    """Where the options say to end, for each partition; at the end where no record is that late.

    Raises:
        ConfigurationError: they do not name exactly the partitions that are read.
    """
    wanted = options.ending_offsets
    if not isinstance(wanted, TimestampSpec):
        parts = now.topic_ids
        return resolve_offsets("endingOffsets", wanted, parts, now.earliest, now.latest)
    found = await _by_time(client, options, wanted, now)
    # The log may have grown since its end was asked for.
    return {
        part: now.latest[part] if offset == _NONE_SO_LATE else min(offset, now.latest[part])
        for part, offset in found.items()
    }


async def batch_offsets(
    client: Client, options: ReadOptions, now: LogOffsets
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Where the options of a batch say to begin and to end, for each partition.

    Raises:
        ConfigurationError: as `starting_offsets` and `ending_offsets`.
    """
    starts = await starting_offsets(client, options, now)
    ends = await ending_offsets(client, options, now)
    if isinstance(options.starting_offsets, TimestampSpec):
        # Behind the end that was asked for before: the log has grown since, and nothing is wanted.
        starts = {part: min(start, now.latest[part]) for part, start in starts.items()}
    return starts, ends


async def _by_time(
    client: Client, options: ReadOptions, wanted: TimestampSpec, now: LogOffsets
) -> dict[TopicPartition, int]:
    """The first offset of each partition since its time; -1 where no record is that late."""
    if isinstance(wanted.timestamps, Mapping):
        check_partitions_named(f"option {wanted.option}", wanted.timestamps, now.topic_ids)
        times = dict(wanted.timestamps)
    else:
        times = dict.fromkeys(now.topic_ids, wanted.timestamps)
    return await client.list_offsets(times, read_committed=options.read_committed)


async def plan_batch(
    client: Client, options: ReadOptions, range_filter: RangeFilter = ALL
) -> list[OffsetRange]:
    """What the options of a batch ask for, made concrete by what the brokers have.

    Of that, what `range_filter` leaves: filters of the query need no more.

    Raises:
        OptionError: a partition that its topic does not have.
        ConfigurationError: offsets for other partitions than those that are read, or a start
            behind its end.
        DataLossError: offsets that the log does not have, and the options ask to fail then.
        KprotoError: whatever the client raises.
    """
    now = await list_log_offsets(client, options)
    starts, ends = await batch_offsets(client, options, now)
    if range_filter is not ALL:
        starts, ends = range_filter.cut(starts, ends)
        starts = await _since(client, options, range_filter, starts, ends)
    ranges = plan_ranges(
        starts, ends, now.earliest, now.latest, fail_on_data_loss=options.fail_on_data_loss
    )
    return split_ranges(
        [replace(each, topic_id=now.topic_ids[each.topic, each.partition]) for each in ranges],
        min_partitions=options.min_partitions,
        max_records=options.max_records_per_partition,
    )


async def _since(
    client: Client,
    options: ReadOptions,
    range_filter: RangeFilter,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Starts that pass over records before a time, where that is wanted."""
    if range_filter.since_ms is None or not starts:
        return dict(starts)
    times = dict.fromkeys(starts, range_filter.since_ms)
    found = await client.list_offsets(times, read_committed=options.read_committed)
    return {
        part: min(
            max(start, ends[part] if found[part] == _NONE_SO_LATE else found[part]),
            max(start, ends[part]),
        )
        for part, start in starts.items()
    }


async def _selected_partitions(
    client: Client, options: ReadOptions, skip_missing: bool, retry: bool
) -> dict[TopicPartition, Uuid]:
    """The partitions that `subscribe`, `assign` or `subscribePattern` mean, and their topics' ids.

    What the client knows of topics may be old, as it is kept: they are asked for anew.
    """
    selection = options.selection
    if selection.pattern is not None:
        # Anywhere in the name, and no internal topic, as the connector does.
        matching = re.compile(selection.pattern)
        found = [
            info
            for info in await client.refresh()
            if matching.search(info.name) and not info.internal
        ]
    else:
        names = selection.topics or tuple({topic: None for topic, _ in selection.partitions})
        told = {info.name: info.error_code for info in await client.refresh(names)}
        if skip_missing and not retry:
            names = tuple(name for name in names if told.get(name) != _UNKNOWN_TOPIC)
        # Side by side: each may wait for its topic to appear.
        looks = await asyncio.gather(*map(client.topic, names), return_exceptions=True)
        found = []
        for look in looks:
            if isinstance(look, BrokerResponseError) and look.code == _UNKNOWN_TOPIC:
                if not skip_missing:
                    raise look
            elif isinstance(look, BaseException):
                raise look
            else:
                found.append(look)
    existing = {
        (info.name, partition): info.topic_id
        for info in found
        for partition in sorted(info.partitions)
    }
    if not selection.partitions:
        return existing
    for topic, partition in selection.partitions:
        if (topic, partition) not in existing and not skip_missing:
            raise OptionError(f"option assign: topic {topic} has no partition {partition}")
    return {part: existing[part] for part in selection.partitions if part in existing}
