"""Lists the log offsets of a job's topics, and plans a full read.

A full read has the same offset ranges as a batch query of Spark with the same options.
"""

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
    """Lists the earliest and latest offsets of the selected partitions.

    Without `failOnDataLoss`, skips selected topics and partitions that do not exist.

    Raises:
        KprotoError: any error of the client.
    """
    return with_client(
        options.client,
        lambda client: offset_reader.list_log_offsets(
            client, options, skip_missing=not options.fail_on_data_loss
        ),
    )


def starting_offsets(options: ReadOptions, log_offsets: LogOffsets) -> dict[TopicPartition, int]:
    """Returns the starting offset of each partition for the first run.

    Raises:
        OptionError: the options do not name exactly the partitions that are read; or all records of
        a partition are before its starting timestamp, and `latest_without_match` is not set.
    """
    return with_client(
        options.client, lambda client: offset_reader.starting_offsets(client, options, log_offsets)
    )


def plan_full_read(options: ReadOptions) -> ReadPlan:
    """Plans a read of all offsets that the options select; a range without offsets is empty.

    Raises:
        DataLossError: with `failOnDataLoss`, the log lacks requested offsets.
        KprotoError: an option is wrong, or any error of the client.
    """
    log_offsets = list_log_offsets(options)
    starts, ends = with_client(
        options.client, lambda client: offset_reader.batch_offsets(client, options, log_offsets)
    )
    ranges = {
        (each.topic, each.partition): each
        for each in plan_ranges(
            starts,
            ends,
            log_offsets.earliest,
            log_offsets.latest,
            fail_on_data_loss=options.fail_on_data_loss,
        )
    }
    planned = []
    for part in sorted(log_offsets.topic_ids):
        here = ranges.get(part) or OffsetRange(*part, starts[part], starts[part])
        planned.append(replace(here, topic_id=log_offsets.topic_ids[part]))
    return ReadPlan(tuple(planned))


def end_offsets_by_topic(
    options: ReadOptions, parts: Mapping[TopicPartition, object]
) -> dict[str, int]:
    """Returns the sum of the latest offsets of each topic's partitions, for the lag of a run."""

    async def list_offsets(client: Client) -> dict[TopicPartition, int]:
        committed = options.read_committed
        return await client.list_offsets(dict.fromkeys(parts, "latest"), read_committed=committed)

    ends: dict[str, int] = {}
    for (topic, _), offset in with_client(options.client, list_offsets).items():
        ends[topic] = ends.get(topic, 0) + offset
    return ends
