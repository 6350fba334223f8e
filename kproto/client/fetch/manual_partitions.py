"""The partitions that a consumer reads: found, begun with, and looked at anew with metadata."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from ...protocol.error_codes import code_of, error_of_code
from ..metadata.cluster import TopicInfo, TopicPartition
from ..metadata.cluster_view import ClusterView
from .in_flight_fetches import InFlightFetches
from .partition_state import PartitionState, new_partitions
from .start_options import Start, topic_of
from .start_positions import find_places, resolve_start_positions

__all__ = ["FetchablePartitions", "ManualPartitions", "ReadOptions"]

logger = logging.getLogger("kproto.client")

_LONG_AGO: Final = float("-inf")

_REMADE: Final = code_of("UNKNOWN_TOPIC_ID")


class ReadOptions(NamedTuple):
    """Where a consumer begins and ends."""

    start: Start
    stop_at_end: bool
    read_committed: bool


class FetchablePartitions(Protocol):
    """What may be read now, for who fetches it.

    `by_place` are all partitions, in the order in which they are asked for; `unbegun` topics of
    which nothing may be asked for before `begin_again`.
    """

    by_place: dict[TopicPartition, PartitionState]
    unbegun: set[str]

    def ones_begun(self) -> list[PartitionState]:
        """Those that may be asked for."""
        ...

    def move_behind(self, place: TopicPartition) -> None:
        """Ask for all others before this one."""

    async def begin_again(self, name: str) -> None:
        """Begin with a topic as if it had not been begun with yet."""

    def add_new(self) -> None:
        """Look at what metadata shows anew. Raises KprotoError where what was wanted is gone."""


class ManualPartitions:
    """Those that are read, `by_place`, in the order in which they are asked for.

    `unbegun` are topics that were made anew before anything of them was fetched. `owner` has the
    connections.
    """

    def __init__(
        self,
        view: ClusterView,
        wanted: Sequence[str | TopicPartition],
        options: ReadOptions,
        under_way: InFlightFetches,
        owner: object,
    ) -> None:
        self._view = view
        self._wanted = wanted
        self._options = options
        self._under_way = under_way
        self._owner = owner
        self.by_place: dict[TopicPartition, PartitionState] = {}
        self.unbegun: set[str] = set()
        self._names = list(dict.fromkeys(map(topic_of, wanted)))
        self._known: dict[str, TopicInfo] = {}  # whole topics as they were looked at last

    def ones_begun(self) -> list[PartitionState]:
        """Those that may be asked for."""
        if not self.unbegun:
            return list(self.by_place.values())
        return [state for state in self.by_place.values() if state.topic not in self.unbegun]

    def move_behind(self, place: TopicPartition) -> None:
        """Ask for all others before this one."""
        self.by_place[place] = self.by_place.pop(place)

    async def find(self) -> None:
        """Look for all that are wanted, and where to begin them."""
        self.by_place = await self._beginnings(self._wanted)

    async def begin_again(self, name: str) -> None:
        """Begin with a topic as if it had not been begun with yet."""
        topic_id = self._known[name].topic_id
        wanted = [want for want in self._wanted if topic_of(want) == name]
        found = await self._beginnings(wanted)
        for place in self._places_of(name):
            del self.by_place[place]
        self.by_place |= found
        if self._known[name].topic_id == topic_id:
            self.unbegun.discard(name)

    async def _beginnings(
        self, wanted: Sequence[str | TopicPartition]
    ) -> dict[TopicPartition, PartitionState]:
        view = self._view
        # A broker that is away for a moment is no reason to fail: it is none later either.
        counts_from_now = self._options.stop_at_end or self._options.start == "latest"
        as_of = view.clock.monotonic() if counts_from_now else _LONG_AGO
        places = await view.retrying(partial(find_places, view, wanted, as_of), responses=False)
        for name in map(topic_of, wanted):
            info = view.cluster.topics.get(name)
            if info is not None:
                self._known[name] = info  # what is found out is about this one
        self._under_way.look("connections", self._connect(places))
        return await resolve_start_positions(
            view,
            places,
            self._options.start,
            stop_at_end=self._options.stop_at_end,
            read_committed=self._options.read_committed,
        )

    def _places_of(self, name: str) -> list[TopicPartition]:
        return [place for place in self.by_place if place[0] == name]

    async def _connect(self, places: Iterable[TopicPartition]) -> None:
        """Open the connections that the fetches will want, while positions are asked for."""
        nodes = {self._view.cluster.leader(*place) for place in places}
        opening = [self._view.connection_to(node, owner=self._owner) for node in nodes]
        await asyncio.gather(*opening, return_exceptions=True)  # a fetch tells what is wrong

    def add_new(self) -> None:
        """Look at topics that metadata shows anew: at one made anew, and at partitions added.

        Partitions that a whole topic has got are read from their start: nothing is missed. Not with
        `stop_at_end`, which reads what there was when it began. Raises BrokerResponseError where
        that is gone.
        """
        topics = self._view.cluster.topics
        for name in self._names:
            info = topics.get(name)
            if info is None or info is self._known.get(name):
                continue
            before = self._known.get(name)
            if info.is_another_than(before):
                self._begin_anew(info)
            self._known[name] = info
            if name not in self._wanted or self._options.stop_at_end:
                continue
            for place in new_partitions(info.partitions, name, self.by_place):
                state = PartitionState(place, None, None, self._view.settings)
                self.by_place[place] = state

    def _begin_anew(self, info: TopicInfo) -> None:
        """Read from the start what was deleted and made anew under the same name (KIP-516).

        If nothing of the old one has been fetched, it was known from old metadata alone: then it is
        begun with as if it had been known rightly. Not at a later "latest": that may be behind
        records that came since.
        """
        places = self._places_of(info.name)
        was_fetched = any(self.by_place[place].was_fetched for place in places)
        if not was_fetched and self._options.start != "latest":
            self.unbegun.add(info.name)
        elif self._options.stop_at_end:
            raise error_of_code(
                _REMADE,
                f"topic {info.name!r} was deleted and made anew; what was to be read of it is gone",
            )
        else:
            logger.warning("topic %s was made anew; it is read from its start", info.name)
        for place in places:
            self.by_place[place] = PartitionState(place, None, None, self._view.settings)
