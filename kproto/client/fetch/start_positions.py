"""`StartPositionLookup`: finds the partitions of a plain consumer, and their starts and ends.

Starts and ends are offsets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from ...protocol.error_codes import code_of, error_of_code
from ...wire.errors import ConfigurationError
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from ..observing.log_lines import log
from .effects import Effect
from .in_flight_fetches import InFlightFetches
from .list_offsets import OffsetSpec, list_offsets
from .partition_state import TopicPartitionState
from .start_options import Start, is_time, start_time_ms, topic_of
from .subscription_state import SubscriptionState

__all__ = ["StartPositionLookup", "check_in_log", "find_partitions", "resolve_start_positions"]

_LONG_AGO: Final = float("-inf")

_OUT_OF_RANGE: Final = code_of("OFFSET_OUT_OF_RANGE")


class StartPositionLookup:
    """Looks up the start positions of `subscriptions`; is the EffectHandler of a plain consumer.

    The fetches use connections of `owner`.
    """

    def __init__(
        self,
        view: ClusterView,
        subscriptions: SubscriptionState,
        start: Start,
        in_flight: InFlightFetches,
        owner: object,
        *,
        read_committed: bool,
    ) -> None:
        self._view = view
        self._subscriptions = subscriptions
        self._start: Start = start
        self._in_flight = in_flight
        self._owner = owner
        self._read_committed = read_committed

    def on_metadata(self) -> None:
        """Applies the client's metadata to the subscription state.

        Looks up start positions again for a topic that was recreated before its first fetch.
        """
        cluster = self._view.cluster
        self.apply(self._subscriptions.on_metadata(cluster.topics, cluster.version))
        for name in self._subscriptions.to_restart:
            self._in_flight.start_lookup(f"start of {name}", self.restart(name))

    def apply(self, effects: Iterable[Effect]) -> None:
        """Does nothing: the effects concern group consumers."""

    async def find(self) -> None:
        """Looks up all subscribed partitions and their start positions."""
        wanted = self._subscriptions.options.subscribed
        self._subscriptions.start(await self._look_up(wanted))

    async def restart(self, name: str) -> None:
        """Looks up the start positions of a topic again.

        The topic was deleted and recreated after the first look-up, and before its first fetch.
        """
        topic_id = self._subscriptions.topics.id_of(name)
        options = self._subscriptions.options
        wanted = [want for want in options.subscribed if topic_of(want) == name]
        found = await self._look_up(wanted)
        self._subscriptions.restart(name, found, topic_id)

    async def _look_up(
        self, wanted: Sequence[str | TopicPartition]
    ) -> dict[TopicPartition, TopicPartitionState]:
        view = self._view
        stop_at_end = self._subscriptions.options.stop_at_end
        # Connection errors are retried here, as they are retried for later fetches.
        needs_new_metadata = stop_at_end or depends_on_time(self._start)
        since = view.clock.monotonic() if needs_new_metadata else _LONG_AGO
        tps = await view.retrying(partial(find_partitions, view, wanted, since), responses=False)
        for name in map(topic_of, wanted):
            info = view.cluster.topics.get(name)
            if info is not None:
                self._subscriptions.topics.set_current(info)  # the positions are of this topic
        self._in_flight.start_lookup("connections", self._connect(tps))
        return await resolve_start_positions(
            view, tps, self._start, stop_at_end=stop_at_end, read_committed=self._read_committed
        )

    async def _connect(self, tps: Iterable[TopicPartition]) -> None:
        """Opens the connections of the fetches while positions are looked up."""
        nodes = {self._view.cluster.leader(*tp) for tp in tps}
        opening = [self._view.connection_to(node, owner=self._owner) for node in nodes]
        await asyncio.gather(*opening, return_exceptions=True)  # the fetch reports the error


def depends_on_time(start: Start) -> bool:
    """Returns True if `start` is "latest" or a time.

    In this case the consumer must look up the partitions in new metadata, because it reads from the
    log start if it finds a partition only later.
    """
    return start == "latest" or is_time(start)


async def find_partitions(
    view: ClusterView, wanted: Sequence[str | TopicPartition], since: float
) -> list[TopicPartition]:
    """Returns the wanted partitions, each once. Raises KprotoError if a partition does not exist.

    Requests the metadata of a topic again if it arrived before `since`, in seconds of the clock:
    old metadata may lack new partitions, or have a deleted topic.
    """
    names = set(map(topic_of, wanted))
    old = {name for name in names if not view.has_metadata_since(name, since)}
    if old:
        await view.refresh(old)
    await view.ensure_metadata(names)
    found: list[TopicPartition] = []
    for want in wanted:
        if isinstance(want, str):
            info = await view.topic(want)
            found += [(want, partition) for partition in info.partitions]
        else:
            await view.leader(*want)
            found.append(want)
    return list(dict.fromkeys(found))


def check_in_log(
    positions: Mapping[TopicPartition, int], log_ends: Mapping[TopicPartition, int]
) -> None:
    """Raises OffsetOutOfRangeError for the first partition whose position is after its log end."""
    for (topic, partition), position in positions.items():
        log_end = log_ends[topic, partition]
        if position > log_end:
            raise error_of_code(
                _OUT_OF_RANGE,
                f"starting {topic}[{partition}] at offset {position}: the log ends at offset "
                f"{log_end}; start at {log_end} or before, or at 'earliest' or 'latest'",
            )


async def resolve_start_positions(
    view: ClusterView,
    tps: Sequence[TopicPartition],
    start: Start,
    *,
    stop_at_end: bool,
    read_committed: bool,
) -> dict[TopicPartition, TopicPartitionState]:
    """Returns the state of each partition: its start position, and its end if `stop_at_end`.

    If `start` is a time, a partition without a record at or after this time starts at its log end.

    If `start` is a mapping, raises ConfigurationError for a partition that the mapping lacks. With
    `stop_at_end` also raises OffsetOutOfRangeError for an offset after the log end. Without
    `stop_at_end`, the first fetch raises this error.
    """

    async def offsets(
        offset_spec: OffsetSpec,
        of: Iterable[TopicPartition] = tps,
        read_committed: bool = read_committed,
    ) -> dict[TopicPartition, int]:
        return await list_offsets(
            view, dict.fromkeys(of, offset_spec), read_committed=read_committed
        )

    if isinstance(start, Mapping):
        missing = [tp for tp in tps if tp not in start]
        if missing:
            raise ConfigurationError(f"start has no offset for {missing[0]}")
        positions = {tp: start[tp] for tp in tps}
    elif isinstance(start, str):
        positions = await offsets(start)
    else:
        positions = await offsets(start_time_ms(start, view.clock.now_ms()))
        without = [tp for tp, offset in positions.items() if offset < 0]
        if without:
            for topic, partition in without:
                text = "%s[%d] has no record at or after %s (start): it starts at its log end"
                log(logging.INFO, text, topic, partition, start)
            positions |= await offsets("latest", without)
    ends = await offsets("latest") if stop_at_end else {}
    is_after_end = any(positions[tp] > end for tp, end in ends.items())
    if is_after_end and isinstance(start, Mapping):
        # Fetches are valid up to the high watermark, also with `read_committed`.
        check_in_log(positions, await offsets("latest", read_committed=False))
    return {
        tp: TopicPartitionState(tp, view.settings, position=positions[tp], end=ends.get(tp))
        for tp in tps
    }
