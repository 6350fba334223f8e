"""Which partitions are to be read, and from which offset up to which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...wire.errors import ConfigurationError
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .list_offsets import OffsetWanted, list_offsets
from .partition_state import PartitionState
from .start_options import Start, topic_of

__all__ = ["find_places", "resolve_start_positions"]


async def find_places(
    view: ClusterView, wanted: Sequence[str | TopicPartition], as_of: float
) -> list[TopicPartition]:
    """The partitions that are wanted, each once; raises KprotoError where one is not there.

    Metadata older than `as_of`, in seconds of the clock, may lack partitions, or tell of a topic
    that is gone.
    """
    names = set(map(topic_of, wanted))
    old = {name for name in names if not view.heard_since(name, as_of)}
    if old:
        await view.refresh(old)
    await view.know(names)
    found: list[TopicPartition] = []
    for want in wanted:
        if isinstance(want, str):
            info = await view.topic(want)
            found += [(want, partition) for partition in info.partitions]
        else:
            await view.leader(*want)
            found.append(want)
    return list(dict.fromkeys(found))


async def resolve_start_positions(
    view: ClusterView,
    places: Sequence[TopicPartition],
    start: Start,
    *,
    stop_at_end: bool,
    read_committed: bool,
) -> dict[TopicPartition, PartitionState]:
    """Where to begin each partition, and with `stop_at_end` where it ends now.

    Raises ConfigurationError for a partition that `start` has no offset for.
    """

    async def offsets(where: OffsetWanted) -> dict[TopicPartition, int]:
        return await list_offsets(view, dict.fromkeys(places, where), read_committed=read_committed)

    if isinstance(start, Mapping):
        missing = [place for place in places if place not in start]
        if missing:
            raise ConfigurationError(f"start gives no offset for {missing[0]}")
        positions = {place: start[place] for place in places}
    else:
        positions = await offsets(start)
    ends = await offsets("latest") if stop_at_end else {}
    return {
        place: PartitionState(place, positions[place], ends.get(place), view.settings)
        for place in places
    }
