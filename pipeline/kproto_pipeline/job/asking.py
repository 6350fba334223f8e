"""What the cluster has now of what a job reads. Owns the questions; decides nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kproto.protocol.error_codes import code_of
from kproto.wire.errors import BrokerResponseError

from ..spark.clients import with_client
from ..spark.options.offset_spec import concrete_offsets
from ..spark.planning.ranges import OffsetRange, plan_ranges
from .positions import LogState, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.client import Client, TopicPartition

    from ..spark.options.read_options import ReadOptions

__all__ = ["ends_now", "log_state", "planned_once", "starting_offsets"]

_UNKNOWN_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")


def log_state(options: ReadOptions) -> LogState:
    """The partitions that the options select, with the ends of their logs.

    A topic that they name and that is not there is an error with `failOnDataLoss`, else left out.

    Raises:
        KprotoError: whatever the client raises.
    """

    async def asked(client: Client) -> LogState:
        selection = options.selection
        if selection.pattern is not None:
            # Java's Matcher.matches(): the whole name.
            matching = re.compile(selection.pattern)
            found = [info for info in await client.refresh() if matching.fullmatch(info.name)]
        else:
            names = selection.topics or tuple({topic: None for topic, _ in selection.partitions})
            found = []
            await client.refresh(names)  # what is kept may lack new partitions
            for name in names:
                try:
                    found.append(await client.topic(name))
                except BrokerResponseError as error:
                    if error.code != _UNKNOWN_TOPIC or options.fail_on_data_loss:
                        raise
        ids = {
            (info.name, partition): info.topic_id for info in found for partition in info.partitions
        }
        if selection.partitions:
            ids = {part: ids[part] for part in selection.partitions if part in ids}
        earliest = await client.list_offsets(dict.fromkeys(ids, "earliest"))
        latest = await client.list_offsets(dict.fromkeys(ids, "latest"))
        return LogState(ids, earliest, latest)

    return with_client(options.client, asked)


def starting_offsets(options: ReadOptions, now: LogState) -> dict[TopicPartition, int]:
    """Where a first run begins.

    Raises:
        ConfigurationError: `startingOffsets` does not name exactly the partitions that are read.
    """
    return concrete_offsets(
        "startingOffsets", options.starting, now.topic_ids, now.earliest, now.latest
    )


def planned_once(options: ReadOptions) -> Plan:
    """What a batch with these options reads, and where the partitions stand that are empty.

    Raises:
        DataLossError: offsets that the log does not have, with `failOnDataLoss`.
        KprotoError: whatever the client raises, or the options say.
    """
    now = log_state(options)
    starts = starting_offsets(options, now)
    ends = concrete_offsets(
        "endingOffsets", options.ending, now.topic_ids, now.earliest, now.latest
    )
    ranges = {
        (each.topic, each.partition): each
        for each in plan_ranges(
            starts, ends, now.earliest, now.latest, fail_on_data_loss=options.fail_on_data_loss
        )
    }
    planned = []
    for part in sorted(now.topic_ids):
        here = ranges.get(part) or OffsetRange(*part, starts[part], starts[part])
        planned.append(replace(here, topic_id=now.topic_ids[part]))
    return Plan(tuple(planned))


def ends_now(options: ReadOptions, parts: Mapping[TopicPartition, object]) -> dict[str, int]:
    """The next offset of each topic's logs, summed: for the lag while it runs."""

    async def asked(client: Client) -> dict[TopicPartition, int]:
        return await client.list_offsets(dict.fromkeys(parts, "latest"))

    ends: dict[str, int] = {}
    for (topic, _), offset in with_client(options.client, asked).items():
        ends[topic] = ends.get(topic, 0) + offset
    return ends
