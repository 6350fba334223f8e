"""Plans the micro-batches of a stream on the driver; tracks the stream's offsets and topics.

`micro_batch_offsets` computes the offsets of a micro-batch; `partition_reader` reads its records in
the tasks. The driver keeps a reader as long as the query runs; the tasks get a pickled copy.

Spark calls `initialOffset` before the first micro-batch, and before each replay of this
micro-batch. For each micro-batch, Spark calls `latestOffset` and `partitions`, runs the tasks,
calls the next `latestOffset`, and then `commit`. PySpark 4.0 and 4.1 call `latestOffset` without a
start and without a limit.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ..client_pool import with_client
from ..options.offset_spec import LATEST
from ..options.timestamp_spec import TimestampSpec
from ..planning.offset_ranges import DataLossError, coalesce_ranges, split_ranges
from ..planning.offset_reader import check_selection_exists, list_log_offsets, starting_offsets
from ..reading.partition_reader import KprotoInputPartition, PartitionReader
from .group_commits import commit_for_group
from .micro_batch_offsets import (
    available_now_ends,
    batch_ranges,
    batch_starts,
    below_min_offsets,
    from_json,
    lagging_partitions,
    rate_limited,
    recreated_partitions,
    restart_offsets,
    to_json,
    truncation_losses,
)
from .read_limits import (
    HAS_LIMITS,
    SupportsTriggerAvailableNow,
    default_read_limit,
    is_read_all_available,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from kproto.client import Client, TopicPartition
    from kproto.wire.uuid import Uuid

    from ..options.option_table import ReadOptions
    from ..planning.offset_ranges import LogOffsets
    from .micro_batch_offsets import Offsets

__all__ = ["KprotoStreamReader"]

logger = logging.getLogger("kproto.pipeline")

#: If a log is missing or ends before the stream's offset: the maximum number of attempts to list
#: offsets, and the seconds between two attempts. The high watermark of a new leader may lag
#: (KIP-207), and after the election of a controller, brokers may not know a topic yet.
_MAX_ATTEMPTS: Final = 25
_RETRY_INTERVAL_S: Final = 0.2

#: The maximum number of offsets that one task reads from several partitions, because starting a
#: task takes longer than reading so few offsets. If `minPartitions` or `maxRecordsPerPartition` is
#: set, each task reads a single range.
_MAX_COALESCED_OFFSETS: Final = 1_000


class KprotoStreamReader(PartitionReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a stream: plans micro-batches on the driver, and reads ranges in the tasks."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        super().__init__(options, schema)
        self._initial_offsets: dict[TopicPartition, int] | None = None
        #: The partitions whose initial offset may change at a restart.
        self._unstable_starts: set[TopicPartition] = set()
        #: The partitions of `_unstable_starts` that start at the latest offset.
        self._starts_at_latest: set[TopicPartition] = set()
        self._is_started = False
        #: The ends of the last planned micro-batch.
        self._planned_ends: dict[TopicPartition, int] | None = None
        #: The ends of an AvailableNow run; None for other triggers.
        self._available_now_ends: dict[TopicPartition, int] | None = None
        self._log_offsets: LogOffsets | None = None
        self._topic_ids: dict[TopicPartition, Uuid] = {}
        #: The partitions of recreated topics that no micro-batch has read from the earliest offset.
        self._recreated: set[TopicPartition] = set()
        self._committed: dict[TopicPartition, int] = {}
        self._last_trigger_s = float("-inf")
        if not HAS_LIMITS and (options.max_offsets_per_trigger or options.min_offsets_per_trigger):
            logger.warning(
                "maxOffsetsPerTrigger and minOffsetsPerTrigger need PySpark 4.2; with this "
                "release, each micro-batch reads all available offsets"
            )

    def __reduce__(self) -> tuple[type[KprotoStreamReader], tuple[ReadOptions, pa.Schema], Any]:
        # The state of the query stays on the driver, because it is large with many partitions.
        return KprotoStreamReader, (self._options, self._schema), {}

    # Called by Spark between micro-batches

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Returns the offsets at which the stream starts; every call returns the same offsets.

        Raises:
            OptionError: the cluster lacks a selected topic or partition.
        """
        if self._initial_offsets is None:
            now = self._list_log_offsets()
            check_selection_exists(self._options.selection, now)
            spec = self._options.starting_offsets

            async def starts(client: Client) -> dict[TopicPartition, int]:
                return await starting_offsets(client, self._options, now)

            self._initial_offsets = with_client(self._options.client, starts)
            self._unstable_starts = {
                part for part in self._initial_offsets if _is_unstable_start(spec, part)
            }
            self._starts_at_latest = {
                part
                for part in self._unstable_starts
                if not isinstance(spec, TimestampSpec)
                or self._initial_offsets[part] == now.latest[part]
            }
        return to_json(self._initial_offsets)

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Returns the end offsets of the next micro-batch; `start` if the micro-batch must wait.

        Raises:
            DataLossError: with `fail_on_data_loss`, offsets before the end are lost.
        """
        starts = self._initial_offsets if start is None else from_json(start)
        # If Spark passes no start, the stream's offset is the end of its last micro-batch.
        current = (starts if start is not None else self._planned_ends or starts) or {}
        until = self._available_now_ends or {}
        reached = {
            part: max(current.get(part, 0), until.get(part, 0)) for part in {**current, **until}
        }
        now = self._list_log_offsets(reached)
        if starts is not None and starts != self._initial_offsets:
            self._commit_for_group(starts)
        restarts = restart_offsets(current, now.earliest, self._recreated)
        ends = dict(now.latest)
        if starts is None:  # a restarted query, without a start from Spark
            self._planned_ends = ends | restarts
            return to_json(self._planned_ends)
        if self._available_now_ends is not None:
            losses = truncation_losses(self._available_now_ends, now.latest, self._recreated)
            self._available_now_ends = available_now_ends(
                self._available_now_ends, now.latest, starts, self._recreated
            )
            ends = self._available_now_ends
            self._report_loss(losses)
        known = batch_starts(starts, ends, now.earliest, self._recreated)
        if not is_read_all_available(limit):
            if not restarts and self._waits_for_min_offsets(known, ends):
                return to_json(starts)
            if self._options.max_offsets_per_trigger is not None:
                ends = rate_limited(known, ends, self._options.max_offsets_per_trigger)
        if starts == self._initial_offsets and self._starts_at_latest and not self._is_started:
            # Leave micro-batch 0 empty, so that the checkpoint has the start. If a restarted query
            # replayed a micro-batch 0 with records, "latest" would be a later offset.
            ends |= {part: starts[part] for part in self._starts_at_latest if part in ends}
        ends |= restarts
        self._is_started = True
        self._last_trigger_s = time.monotonic()
        self._planned_ends = ends
        return to_json(ends)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
        """Returns the limit that Spark passes to `latestOffset`.

        The limit has only one of `minOffsetsPerTrigger` and `maxOffsetsPerTrigger`; `latestOffset`
        itself applies both options.
        """
        options = self._options
        return default_read_limit(options.min_offsets_per_trigger, options.max_offsets_per_trigger)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Returns the latest offsets of the last listing, from which Spark computes the lag.

        Returns None before the first listing.
        """
        return None if self._log_offsets is None else to_json(self._log_offsets.latest)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Limits an AvailableNow run to the present latest offsets."""
        self._available_now_ends = dict(self._list_log_offsets().latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Returns the input partitions of a micro-batch, after Spark has checkpointed its offsets.

        Raises:
            DataLossError: with `fail_on_data_loss`, the log no longer has the offsets.
        """
        starts, ends = from_json(start), from_json(end)
        now = self._log_offsets
        if (
            now is None or ends != self._planned_ends
        ):  # a micro-batch that was planned before a restart
            now = self._list_log_offsets(ends)
        if starts == self._initial_offsets and not self._is_started:
            # A replay of micro-batch 0 after a restart: the logs may have grown, and partitions may
            # have been added since the checkpoint.
            starts = {
                part: min(begin, ends[part]) if part in self._unstable_starts else begin
                for part, begin in starts.items()
                if part in ends
            }
        found = batch_ranges(starts, ends, now, recreated=self._recreated)
        self._recreated -= ends.keys()
        self._report_loss(found.losses)
        ranges = split_ranges(
            found.ranges,
            min_partitions=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
        )
        is_cut = self._options.min_partitions or self._options.max_records_per_partition
        groups = coalesce_ranges(ranges, 0 if is_cut else _MAX_COALESCED_OFFSETS)
        return [KprotoInputPartition(*group) for group in groups] or [KprotoInputPartition()]

    def commit(self, end: dict[str, Any]) -> None:
        """Commits the end of a finished micro-batch for the group, if `commitOffsets` is set."""
        self._commit_for_group(from_json(end))

    def stop(self) -> None:
        """Does nothing, because the reader has no open resources.

        Spark may also never call this method.
        """

    # Requests to the cluster

    def _list_log_offsets(self, current: Offsets | None = None) -> LogOffsets:
        """Lists the log offsets; retries for 5 s while a log is missing or ends before `current`.

        Raises:
            DataLossError: with `fail_on_data_loss`, a topic was deleted and recreated.
        """

        async def list_offsets(client: Client) -> LogOffsets:
            return await client.retrying(
                lambda: list_log_offsets(
                    client, self._options, skip_missing=True, await_topics=self._log_offsets is None
                )
            )

        known = {part: at for part, at in (current or {}).items() if part not in self._recreated}
        for attempt in range(_MAX_ATTEMPTS):
            # At the start of a query, an unreachable broker is an error; later it is retried.
            now = with_client(
                self._options.client, list_offsets, retry=self._log_offsets is not None
            )
            recreated = recreated_partitions(self._topic_ids, now.topic_ids)
            if (
                recreated
                or not lagging_partitions(known, now.latest)
                or attempt + 1 == _MAX_ATTEMPTS
            ):
                break
            time.sleep(_RETRY_INTERVAL_S)
        self._report_loss(
            [f"{topic}-{number}: the topic was recreated" for topic, number in recreated]
        )
        self._recreated.update(recreated)
        self._topic_ids |= now.topic_ids
        self._log_offsets = now
        return now

    def _waits_for_min_offsets(self, starts: Offsets, ends: Offsets) -> bool:
        """Returns True if the next micro-batch must still wait for `minOffsetsPerTrigger`."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._available_now_ends is not None:
            return False
        waited_ms = (time.monotonic() - self._last_trigger_s) * 1000
        return waited_ms < self._options.max_trigger_delay_ms and below_min_offsets(
            starts, ends, least
        )

    def _report_loss(self, losses: list[str]) -> None:
        """Raises DataLossError for data loss; without `fail_on_data_loss`, logs a warning."""
        if not losses:
            return
        description = "; ".join(losses)
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"{description}. Set failOnDataLoss to false to continue without the lost records"
            )
        logger.warning("%s; the stream continues without the lost records", description)

    def _commit_for_group(self, offsets: dict[TopicPartition, int]) -> None:
        """Commits offsets for the group if `commitOffsets` is set; logs an error as a warning."""
        if not self._options.commit_offsets or offsets == self._committed:
            return
        if commit_for_group(self._options, offsets, dict(self._topic_ids)):
            self._committed = offsets


def _is_unstable_start(spec: Any, part: TopicPartition) -> bool:
    """Returns True if the start is a timestamp or `latest`.

    A second ListOffsets may then return a different offset.
    """
    if isinstance(spec, TimestampSpec):
        return True
    return bool((spec if isinstance(spec, int) else spec.get(part)) == LATEST)
