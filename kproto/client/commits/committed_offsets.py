"""`CommittedOffsetFetcher`: fetches the committed offsets of a group (OffsetFetch)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from ...wire.errors import BrokerResponseError
from ...wire.uuid import ZERO_UUID, Uuid
from ..core.group_errors import commit_refusal
from ..core.retry import Attempts, Remedy, remedy_of
from ..metadata.cluster import TopicPartition, format_partitions
from ..metadata.cluster_view import ClusterView
from .group_offsets import request_supported
from .membership import GroupMembership
from .offset_requests import CommittedOffset, Identity, committed_in, committed_requests
from .topic_labels import CommittedTopicId, split_label

__all__ = ["CommittedOffsetFetcher", "FetchedCommits"]

logger = logging.getLogger("kproto.client")


class FetchedCommits(NamedTuple):
    """The committed offset of each partition; None if there is none.

    `of_deleted_topics` are partitions whose commit belongs to a deleted topic of the same name; the
    offset of such a partition is also None.
    """

    offsets: dict[TopicPartition, CommittedOffset | None]
    of_deleted_topics: frozenset[TopicPartition]


class CommittedOffsetFetcher:
    """Fetches the committed offsets of the group `group_id`.

    `member` is the consumer's membership in the group; None if the consumer is no member. A member
    of the consumer protocol sends its member epoch.
    """

    def __init__(self, view: ClusterView, group_id: str) -> None:
        self._view = view
        self._group_id = group_id
        self.member: GroupMembership[Any] | None = None

    async def fetch(self, tps: Iterable[TopicPartition]) -> FetchedCommits:
        """Returns the committed offsets of `tps`.

        If the coordinator refuses the member epoch, because the group has rebalanced or because the
        coordinator has removed the member, the request is retried for `api_timeout_ms`, with the
        epoch that the member has at that time. Raises BrokerResponseError.
        """
        tps = list(tps)
        if not tps:
            return FetchedCommits({}, frozenset())
        view = self._view
        attempts = Attempts(view.settings, started_at=view.clock.monotonic())
        while True:
            identity = self._identity()
            try:
                return await view.retrying(partial(self._fetch, tps, identity))
            except BrokerResponseError as error:
                if self.member is None or identity is None or commit_refusal(error) is None:
                    raise
                self.member.on_commit_refused(error, identity)
                if not attempts.failed(error, view.clock.monotonic()):
                    raise
                view.observer.retried("call", error, attempts)
            await view.sleep_until(attempts.not_before)

    def _identity(self) -> Identity | None:
        """Returns the identity of a consumer-protocol member, for OffsetFetch (KIP-848).

        Returns None if the consumer is no such member; the request then has no member id.
        """
        identity = None if self.member is None else self.member.identity
        return identity if identity is not None and identity.has_epoch else None

    async def _fetch(self, tps: list[TopicPartition], identity: Identity | None) -> FetchedCommits:
        names = {topic for topic, _ in tps}
        await self._view.ensure_metadata(names)
        topics = dict(self._view.cluster.topics)

        def id_of(name: str) -> Uuid:
            info = topics.get(name)
            return ZERO_UUID if info is None else info.topic_id

        requests = committed_requests(self._group_id, tps, id_of, identity)
        response = await request_supported(self._view, requests)
        try:
            found = committed_in(response, self._group_id, tps, id_of)
            return await self._without_deleted_topics(found)
        except BrokerResponseError as error:
            if remedy_of(error) is Remedy.REFRESH:
                self._view.cluster.forget(names)  # the topics may have other ids by now
            raise

    async def _without_deleted_topics(
        self, found: dict[TopicPartition, CommittedOffset | None]
    ) -> FetchedCommits:
        """Replaces commits of deleted topics by None, and removes labels from the metadata.

        A label in the metadata of a commit has the ids of the cluster and of the topic. If the
        label has the id of this cluster, but its topic id differs from the id of the present topic
        with the same name, the topic of the commit was deleted.
        """
        labels: dict[TopicPartition, CommittedTopicId] = {}
        offsets: dict[TopicPartition, CommittedOffset | None] = {}
        for tp, its in found.items():
            if its is not None:
                label, metadata = split_label(its.metadata)
                its = its._replace(metadata=metadata)
                if label is not None:
                    labels[tp] = label
            offsets[tp] = its
        if labels:  # known metadata may be of an older topic of that name
            await self._view.refresh({topic for topic, _ in labels})
        cluster = self._view.cluster
        deleted = [
            tp
            for tp, label in labels.items()
            if (info := cluster.topics.get(tp[0])) is not None
            and label.is_of_another(cluster.cluster_id, info.topic_id)
        ]
        if deleted:
            logger.warning(
                "%s: the committed offset belongs to a deleted topic; the present topic of that "
                "name is read from its start",
                format_partitions(deleted),
            )
        return FetchedCommits(offsets | dict.fromkeys(deleted), frozenset(deleted))
