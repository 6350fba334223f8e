"""The calls of `Admin` for the offsets of partitions, by time and kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...messages.list_offsets_request import ListOffsetsRequest
from ...wire.errors import KprotoError
from ..core.gather import gather_all
from ..metadata.cluster import TopicInfo, TopicPartition, no_leader_error
from .area import AdminArea
from .arguments import checked_map, checked_partitions
from .calls import PartCall
from .offsets import (
    ListedOffset,
    OffsetSpec,
    check_offsets_version,
    checked_specs,
    list_offsets_request,
    listed_offsets,
)

__all__ = ["OffsetAdmin"]


class OffsetAdmin(AdminArea):
    """Looks up offsets of partitions."""

    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, OffsetSpec],
        *,
        read_committed: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Returns an offset of each partition, with its timestamp.

        `partitions` maps a partition to "earliest" (its log start), "latest" (its high watermark;
        its last stable offset with `read_committed`), a time in ms since 1970 (the first record
        with a timestamp at or after it), "max_timestamp" (the record with the largest timestamp,
        KIP-734), "earliest_local" (the local log start of tiered storage, KIP-405), "latest_tiered"
        (the last offset in the remote storage, KIP-1005) or "earliest_pending_upload" (KIP-1023).
        Raises AdminError by partition.
        """
        checked_partitions("partitions", checked_map("partitions", partitions))
        timestamps = checked_specs(partitions)
        view = self._requester.view

        async def at_leader(
            leader: int, tps: Sequence[TopicPartition], limit_ms: int
        ) -> dict[TopicPartition, ListedOffset | KprotoError]:
            epochs = {tp: view.cluster.leader_epoch(*tp) for tp in tps}
            request = list_offsets_request(
                {tp: timestamps[tp] for tp in tps}, epochs, limit_ms, read_committed=read_committed
            )
            try:
                connection = await view.connection_to(leader)
                version = connection.version_of(ListOffsetsRequest)
                check_offsets_version(request, version)
                response = await connection.request(request, version=version, timeout_ms=limit_ms)
            except KprotoError as error:
                view.cluster.forget(topic for topic, _ in tps)
                return dict.fromkeys(tps, error)
            found = listed_offsets(response, tps)
            moved = {tp[0] for tp, each in found.items() if isinstance(each, KprotoError)}
            view.cluster.forget(moved)
            return found

        async def send(
            tps: Sequence[TopicPartition], left_ms: int
        ) -> dict[TopicPartition, ListedOffset | KprotoError]:
            limit_ms = min(left_ms, view.settings.request_timeout_ms)
            found: dict[TopicPartition, ListedOffset | KprotoError] = {}
            by_leader: dict[int, list[TopicPartition]] = {}
            for tp, leader in (await self._leaders(tps)).items():
                if isinstance(leader, KprotoError):
                    found[tp] = leader
                else:
                    by_leader.setdefault(leader, []).append(tp)
            for each in await gather_all(
                at_leader(leader, its, limit_ms) for leader, its in by_leader.items()
            ):
                found |= each
            return found

        call: PartCall[TopicPartition, ListedOffset] = PartCall(
            "listing offsets",
            build=lambda tps, left_ms: ListOffsetsRequest(),
            read=listed_offsets,
            awaits_topics=True,
        )
        return await self._requester.run(call, send, partitions, timeout_ms)

    async def _leaders(
        self, tps: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | KprotoError]:
        """Returns the leader of each partition, or the error of a partition without one.

        Requests metadata once, and waits for no leader: the offsets of other partitions are listed
        meanwhile, and the call is repeated for this one.
        """
        view = self._requester.view
        cluster = view.cluster

        def is_unknown(tp: TopicPartition) -> bool:
            return cluster.leader(*tp) not in cluster.brokers

        topics = {tp[0] for tp in tps if is_unknown(tp) or not view.has_current_metadata(tp[0])}
        described: list[TopicInfo] = []
        failure: KprotoError | None = None
        if topics:
            try:
                described = await view.refresh(topics)
            except KprotoError as error:
                failure = error
        return {
            tp: failure or no_leader_error(described, *tp)
            if is_unknown(tp)
            else cluster.leader(*tp)
            for tp in tps
        }
