"""Commits the offsets of finished micro-batches for a consumer group, if `commitOffsets` is set.

Spark tells a source that a micro-batch is finished only when it plans the next one. So the planner
of a stream never learns that the last micro-batch is finished, and with the trigger `once` there is
no other. `GroupCommitListener` runs in the driver program: when a query ends, it commits the end of
the last finished micro-batch.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import JStreamingQueryListener, StreamingQueryListener

from kproto.wire.errors import KprotoError

from ..client_pool import with_client
from ..options.option_table import parse_undecided_read
from .micro_batch_offsets import from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from kproto.client import Client, TopicPartition
    from kproto.wire.uuid import Uuid

    from ..options.option_table import ReadOptions
    from .micro_batch_offsets import Offsets

__all__ = ["GroupCommitListener", "commit_for_group", "listen_for_commits"]

logger = logging.getLogger("kproto.pipeline")

#: How long to wait for an offset commit, at most, in seconds; the next micro-batch commits again.
_COMMIT_TIMEOUT_S: Final = 5.0

_LISTENER: Final = "_kproto_commit_listener"


def commit_for_group(
    options: ReadOptions, offsets: Offsets, topic_ids: Mapping[TopicPartition, Uuid] | None = None
) -> bool:
    """Commits offsets for the group; returns False, and logs a warning, if the commit fails.

    With `topic_ids`, leaves out partitions without a topic id.
    """
    group = options.group_id
    assert group is not None, "commitOffsets needs kafka.group.id"

    async def commit(client: Client) -> None:
        async with asyncio.timeout(_COMMIT_TIMEOUT_S):
            if topic_ids is None:
                await client.commit_offsets(group, offsets)
            else:
                existing = {tp: offset for tp, offset in offsets.items() if tp in topic_ids}
                await client.commit_offsets(group, existing, topic_ids=topic_ids)

    try:
        with_client(options.client, commit)
    except (KprotoError, TimeoutError) as error:
        reason = str(error) or f"no response within {_COMMIT_TIMEOUT_S} s"
        logger.warning("offsets of the query were not committed for group %r: %s", group, reason)
        return False
    return True


def listen_for_commits(spark: SparkSession) -> None:
    """Adds a `GroupCommitListener` to a classic session that has none."""
    if getattr(spark, "_sc", None) is None or hasattr(spark, _LISTENER):
        return
    listener = GroupCommitListener(spark)
    spark.streams.addListener(listener)
    setattr(spark, _LISTENER, listener)


class GroupCommitListener(StreamingQueryListener):
    """Commits the end of the last finished micro-batch when a query of the session ends."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        #: By run of a query: the options of each source, None for a source that commits nothing.
        self._sources: dict[str, list[ReadOptions | None]] = {}
        #: By run of a query: the end of the last finished micro-batch, for each source.
        self._ends: dict[str, list[str | None]] = {}

    @property
    def _jlistener(self) -> Any:
        """The object in Java, which PySpark asks for when it adds the listener."""
        if not hasattr(self, "_jlistenerobj"):
            java: Any = self._session._jvm
            self._jlistenerobj = java.PythonStreamingQueryListenerWrapper(_JavaListener(self))
        return self._jlistenerobj

    @property
    def has_commits(self) -> bool:
        """True while a query with `commitOffsets` runs."""
        return bool(self._sources)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Reads the options of the sources from the plan of the query."""
        self.on_started(str(event.id), str(event.runId))

    def on_started(self, query_id: str, run_id: str) -> None:
        """Reads the options of the sources from the plan of a query."""
        try:
            sources = _sources(self._session.streams.get(query_id))
        except Exception as error:  # noqa: BLE001 - the query must start nevertheless
            logger.warning("offsets of a query may not be committed at its end: %s", error)
            return
        if any(sources):
            self._sources[run_id] = sources

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Remembers the end of a finished micro-batch."""
        run = str(event.progress.runId)
        if run in self._sources:
            self._ends[run] = [source.endOffset for source in event.progress.sources]

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Does nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Commits the end of the last finished micro-batch."""
        sources = self._sources.pop(str(event.runId), [])
        ends = self._ends.pop(str(event.runId), [])
        for options, end in zip(sources, ends, strict=False):
            if options is not None and end:
                commit_for_group(options, from_json(json.loads(end)))


class _JavaListener(JStreamingQueryListener):
    """Receives the events from Java; ignores those of queries without `commitOffsets`.

    Converting an event takes many calls to Java, and every micro-batch of every query has events.
    PySpark 4.3.0 cannot convert the start of a query whose thread has job tags.
    """

    pylistener: GroupCommitListener

    def onQueryStarted(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        self.pylistener.on_started(jevent.id().toString(), jevent.runId().toString())

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        if self.pylistener.has_commits:
            super().onQueryProgress(jevent)

    def onQueryIdle(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        """Does nothing."""

    def onQueryTerminated(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        if self.pylistener.has_commits:
            super().onQueryTerminated(jevent)


def _sources(query: Any) -> list[ReadOptions | None]:
    """Returns the options of each streaming source of a query, in the order of its progress.

    None replaces the options of a source that is not kproto's, or that commits nothing.
    """
    leaves = query._jsq.streamingQuery().analyzedPlan().collectLeaves()
    found: list[ReadOptions | None] = []
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if not leaf.isStreaming():
            continue
        options = None
        if leaf.nodeName().startswith("StreamingRelationV2") and leaf.sourceName() == "kproto":
            # Spark adds options of its own, such as the path of a table.
            options = parse_undecided_read(dict(leaf.extraOptions()))
        found.append(options if options is not None and options.commit_offsets else None)
    return found
