"""The reader of a stream: on the driver its micro-batches, in each task the rows of one range.

Owns what Spark asks between batches, and what this query has seen of its topics. Which offsets a
batch has is `positions`' to decide. One of these lives on the driver as long as the query; it is
pickled for the tasks, which read alone.

Spark's order: `initialOffset` (before the first batch only, and again when that is replayed),
`latestOffset`, `partitions`, tasks, the next `latestOffset`, `commit`. PySpark 4.0 and 4.1 give
`latestOffset` neither a start nor a limit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kproto.wire.errors import KprotoError

from ..client_pool import with_client
from ..options.offset_spec import LATEST
from ..options.timestamp_spec import TimestampSpec
from ..planning.offset_ranges import DataLossError, coalesce_ranges, split_ranges
from ..planning.offset_reader import check_selection_exists, list_log_offsets, starting_offsets
from ..reading.partition_reader import KprotoInputPartition, PartitionReader
from .group_commit import commit_offsets
from .micro_batch_offsets import (
    available_now_ends,
    batch_ranges,
    batch_starts,
    below_min_offsets,
    from_json,
    lagging_partitions,
    limited,
    recreated_partitions,
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

#: How often, and how long in seconds, a log that is gone, or that ends before where the stream
#: stands, is asked for again: a new leader may not know yet how far its followers are (KIP-207),
#: and a new controller's brokers may not know a topic yet.
_LOOKS: Final = 25
_BETWEEN_LOOKS_S: Final = 0.2

#: So many offsets, of several partitions, are read by one task, unless `minPartitions` is set: to
#: start a task takes longer than to read them.
_FEW: Final = 1_000

#: How long a batch waits for its group to follow, in seconds; the next one tries again.
_COMMIT_PATIENCE_S: Final = 5.0


class KprotoStreamReader(PartitionReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver, and reads one range in each task."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        super().__init__(options, schema)
        self._initial: dict[TopicPartition, int] | None = None
        self._movable: set[TopicPartition] = set()  # begin elsewhere when they are asked for again
        self._from_end: set[TopicPartition] = set()  # of these: with nothing to read at first
        self._is_begun = False
        self._planned: dict[TopicPartition, int] | None = None  # the end of the last batch
        self._until: dict[TopicPartition, int] | None = None  # what is available "now"
        self._now: LogOffsets | None = None
        self._ids: dict[TopicPartition, Uuid] = {}
        self._anew: set[TopicPartition] = set()  # of topics that were made anew since
        self._followed: dict[TopicPartition, int] = {}
        self._last_trigger_s = float("-inf")
        if not HAS_LIMITS and (options.max_offsets_per_trigger or options.min_offsets_per_trigger):
            logger.warning(
                "maxOffsetsPerTrigger and minOffsetsPerTrigger count from PySpark 4.2 on: here "
                "each batch has all that there is"
            )

    def __reduce__(self) -> tuple[type[KprotoStreamReader], tuple[ReadOptions, pa.Schema], Any]:
        # What the query has seen of its topics is the driver's, and large where they are many.
        return KprotoStreamReader, (self._options, self._schema), {}

    # What Spark asks between batches

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where the stream begins; the same, however often it is asked.

        Raises:
            OptionError: a topic or partition that is named and not there.
        """
        if self._initial is None:
            now = self._ask()
            check_selection_exists(self._options.selection, now)
            wanted = self._options.starting_offsets

            async def starts(client: Client) -> dict[TopicPartition, int]:
                return await starting_offsets(client, self._options, now)

            self._initial = with_client(self._options.client, starts)
            self._movable = {part for part in self._initial if _may_move(wanted, part)}
            self._from_end = {
                part
                for part in self._movable
                if not isinstance(wanted, TimestampSpec) or self._initial[part] == now.latest[part]
            }
        return to_json(self._initial)

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Where the next batch ends.

        Raises:
            DataLossError: what lies before it is lost in part, and the options ask to fail then.
        """
        starts = self._initial if start is None else from_json(start)
        # Where no start is told, the stream stands where its last batch ends.
        stands = (starts if start is not None else self._planned or starts) or {}
        until = self._until or {}
        reached = {
            part: max(stands.get(part, 0), until.get(part, 0)) for part in {**stands, **until}
        }
        now = self._ask(reached)
        if starts is not None and starts != self._initial:
            self._follow(starts)
        if starts is None:
            self._planned = dict(now.latest)
            return to_json(now.latest)  # a query that goes on, on a PySpark that tells no start
        ends = dict(now.latest)
        if self._until is not None:
            losses = truncation_losses(self._until, now.latest, self._anew)
            self._until = available_now_ends(self._until, now.latest, starts, self._anew)
            ends = self._until
            self._lost(losses)
        known = batch_starts(starts, ends, now.earliest, self._anew)
        if not is_read_all_available(limit):
            if self._waits(known, ends):
                return to_json(starts)
            if self._options.max_offsets_per_trigger is not None:
                ends = limited(known, ends, self._options.max_offsets_per_trigger)
        if starts == self._initial and self._from_end and not self._is_begun:
            # Batch 0 writes down where the stream began: asked again, the end may be elsewhere.
            ends |= {part: starts[part] for part in self._from_end if part in ends}
        # Spark takes the same offsets for nothing new; of another topic they are not the same.
        ends |= {
            part: ends[part] - 1
            for part in self._anew & ends.keys()
            if known[part] < ends[part] == starts.get(part)
        }
        self._is_begun = True
        self._last_trigger_s = time.monotonic()
        self._planned = ends
        return to_json(ends)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
        """How much a batch may have; both limits of the options count in `latestOffset`."""
        options = self._options
        return default_read_limit(options.min_offsets_per_trigger, options.max_offsets_per_trigger)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The ends of the logs, as last heard of: with `endOffset` the query's lag."""
        return None if self._now is None else to_json(self._now.latest)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Bound the run by what is there now."""
        self._until = dict(self._ask().latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One input partition for each range of a batch, with the offsets that Spark has noted.

        Raises:
            DataLossError: the log does not have them any more, and the options ask to fail then.
        """
        starts, ends = from_json(start), from_json(end)
        now = self._now
        if now is None or ends != self._planned:  # a batch that was planned before a restart
            now = self._ask(ends)
        if starts == self._initial and not self._is_begun:
            # Batch 0 again, after a restart: since then the end of the log has moved, and
            # partitions were added.
            starts = {
                part: min(begin, ends[part]) if part in self._movable else begin
                for part, begin in starts.items()
                if part in ends
            }
        found = batch_ranges(starts, ends, now, recreated=self._anew)
        self._anew -= ends.keys()
        self._lost(found.losses)
        ranges = split_ranges(
            found.ranges,
            min_partitions=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
        )
        is_cut = self._options.min_partitions or self._options.max_records_per_partition
        groups = coalesce_ranges(ranges, 0 if is_cut else _FEW)
        return [KprotoInputPartition(*group) for group in groups] or [KprotoInputPartition()]

    def commit(self, end: dict[str, Any]) -> None:
        """Let the group follow: the batch that ends there is finished."""
        self._follow(from_json(end))

    def stop(self) -> None:
        """Spark need not call this; nothing waits for it."""

    # What is asked of the cluster, and what that means

    def _ask(self, stands: Offsets | None = None) -> LogOffsets:
        """The logs as they are now; one that cannot be is looked at again for a while.

        Raises:
            DataLossError: a topic is another one of its name, and the options ask to fail then.
        """

        async def asked(client: Client) -> LogOffsets:
            return await client.retrying(
                lambda: list_log_offsets(
                    client, self._options, skip_missing=True, retry=self._now is None
                )
            )

        known = {part: at for part, at in (stands or {}).items() if part not in self._anew}
        for look in range(_LOOKS):
            # A broker that is away when a query begins may not be one; later it will come back.
            now = with_client(self._options.client, asked, retry=self._now is not None)
            anew = recreated_partitions(self._ids, now.topic_ids)
            if anew or not lagging_partitions(known, now.latest) or look + 1 == _LOOKS:
                break
            time.sleep(_BETWEEN_LOOKS_S)
        self._lost([f"{topic}-{number}: the topic was made anew" for topic, number in anew])
        self._anew.update(anew)
        self._ids |= now.topic_ids
        self._now = now
        return now

    def _waits(self, starts: Offsets, ends: Offsets) -> bool:
        """Whether the next batch waits for more records, for no longer than the options say."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._until is not None:
            return False
        waited_ms = (time.monotonic() - self._last_trigger_s) * 1000
        return waited_ms < self._options.max_trigger_delay_ms and below_min_offsets(
            starts, ends, least
        )

    def _lost(self, losses: list[str]) -> None:
        """Tell what is lost: as an error, or as a warning."""
        if not losses:
            return
        told = "; ".join(losses)
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"{told}. Set failOnDataLoss to false to go on without what is lost"
            )
        logger.warning("%s; the stream goes on without what is lost", told)

    def _follow(self, offsets: dict[TopicPartition, int]) -> None:
        """Commit the offsets for the group, if that is wanted; no failure of it ends a query."""
        group = self._options.group_id
        if not self._options.commit_offsets or group is None or offsets == self._followed:
            return
        ids = dict(self._ids)

        async def commit(client: Client) -> None:
            async with asyncio.timeout(_COMMIT_PATIENCE_S):
                await commit_offsets(client, group, offsets, ids)

        try:
            with_client(self._options.client, commit)
        except (KprotoError, TimeoutError) as error:
            told = str(error) or f"no answer within {_COMMIT_PATIENCE_S} s"
            logger.warning("the offsets of group %r do not follow the query: %s", group, told)
        else:
            self._followed = offsets


def _may_move(wanted: Any, part: TopicPartition) -> bool:
    """Whether a start that is asked for again may be another: by time, and at the end."""
    if isinstance(wanted, TimestampSpec):
        return True
    return bool((wanted if isinstance(wanted, int) else wanted.get(part)) == LATEST)
