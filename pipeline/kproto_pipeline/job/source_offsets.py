"""What the cluster has now of what a job reads. Owns the questions; decides nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..spark.client_pool import with_client
from ..spark.planning import offset_reader
from ..spark.planning.offset_ranges import OffsetRange, plan_ranges
from .increment_plan import ReadPlan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.client import Client, TopicPartition

    from ..spark.options.option_table import ReadOptions
    from ..spark.planning.offset_ranges import LogOffsets

__all__ = ["end_offsets_by_topic", "list_log_offsets", "plan_full_read", "starting_offsets"]


def list_log_offsets(options: ReadOptions) -> LogOffsets:
    """The partitions that the options select, with the ends of their logs.

    A topic that they name and that is not there is an error with `failOnDataLoss`, else left out.

    Raises:
        KprotoError: whatever the client raises.
    """
    return with_client(
        options.client,
        lambda client: offset_reader.list_log_offsets(
            client, options, skip_missing=not options.fail_on_data_loss
        ),
    )


def starting_offsets(options: ReadOptions, now: LogOffsets) -> dict[TopicPartition, int]:
    """Where a first run begins.

    Raises:
        ConfigurationError: the options do not name exactly the partitions that are read.
    """
    return with_client(
        options.client, lambda client: offset_reader.starting_offsets(client, options, now)
    )


def plan_full_read(options: ReadOptions) -> ReadPlan:
    """What a batch with these options reads, and where the partitions stand that are empty.

    Raises:
        DataLossError: offsets that the log does not have, with `failOnDataLoss`.
        KprotoError: whatever the client raises, or the options say.
    """
    now = list_log_offsets(options)
    starts, ends = with_client(
        options.client, lambda client: offset_reader.batch_offsets(client, options, now)
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
    return ReadPlan(tuple(planned))


def end_offsets_by_topic(
    options: ReadOptions, parts: Mapping[TopicPartition, object]
) -> dict[str, int]:
    """The next offset of each topic's logs, summed: for the lag while it runs."""

    async def asked(client: Client) -> dict[TopicPartition, int]:
        committed = options.read_committed
        return await client.list_offsets(dict.fromkeys(parts, "latest"), read_committed=committed)

    ends: dict[str, int] = {}
    for (topic, _), offset in with_client(options.client, asked).items():
        ends[topic] = ends.get(topic, 0) + offset
    return ends
