"""What a batch read consists of: its partitions and offsets, as the brokers have them now.

Owns the questions to the cluster. What the answers mean for offsets is `offset_spec`'s and
`offset_ranges`' to decide. Knows nothing of Spark.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from kproto.client import Client

from ..options.errors import OptionError
from ..options.offset_spec import concrete_offsets
from .ranges import plan_ranges, split_ranges

if TYPE_CHECKING:
    from kproto.client import Client, TopicPartition
    from kproto.wire.uuid import Uuid

    from ..options.read_options import ReadOptions
    from .ranges import OffsetRange

__all__ = ["ranges_to_read"]


async def ranges_to_read(client: Client, options: ReadOptions) -> list[OffsetRange]:
    """What the options ask for, made concrete by what the brokers have.

    Raises:
        OptionError: a partition that its topic does not have.
        ConfigurationError: offsets for other partitions than those that are read, or a start
            behind its end.
        DataLossError: offsets that the log does not have, and the options ask to fail then.
        KprotoError: whatever the client raises.
    """
    # Before the offsets: if a topic is made anew in between, its tasks do not find the id.
    parts = await _selected_partitions(client, options)
    earliest = await client.list_offsets(dict.fromkeys(parts, "earliest"))
    latest = await client.list_offsets(dict.fromkeys(parts, "latest"))
    starts = concrete_offsets("startingOffsets", options.starting, parts, earliest, latest)
    ends = concrete_offsets("endingOffsets", options.ending, parts, earliest, latest)
    ranges = plan_ranges(
        starts, ends, earliest, latest, fail_on_data_loss=options.fail_on_data_loss
    )
    return split_ranges(
        [replace(each, topic_id=parts[each.topic, each.partition]) for each in ranges],
        min_partitions=options.min_partitions,
        max_records=options.max_records_per_partition,
    )


async def _selected_partitions(client: Client, options: ReadOptions) -> dict[TopicPartition, Uuid]:
    """The partitions that `subscribe`, `assign` or `subscribePattern` mean, and their topics' ids.

    Raises:
        OptionError: a partition that its topic does not have.
        BrokerResponseError: a topic that the cluster does not have.
    """
    selection = options.selection
    if selection.pattern is not None:
        # Java's Matcher.matches(): the whole name.
        matching = re.compile(selection.pattern)
        found = [info for info in await client.refresh() if matching.fullmatch(info.name)]
    else:
        named = selection.topics or tuple({topic: None for topic, _ in selection.partitions})
        # The client is an old one: what it knows may be of a topic that was deleted since.
        await client.refresh(named)
        found = [await client.topic(topic) for topic in named]
    existing = {
        (info.name, partition): info.topic_id
        for info in found
        for partition in sorted(info.partitions)
    }
    for topic, partition in selection.partitions:
        if (topic, partition) not in existing:
            raise OptionError(f"option assign: topic {topic} has no partition {partition}")
    return {part: existing[part] for part in selection.partitions} or existing
