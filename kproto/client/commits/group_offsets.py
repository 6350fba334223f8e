"""Sends commits in the newest version that a broker supports; also for groups without members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from ...messages.base import Request, Response
from ...messages.offset_commit_response import OffsetCommitResponse
from ...wire.errors import BrokerResponseError, UnsupportedVersionError
from ...wire.uuid import ZERO_UUID, Uuid
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .offset_requests import (
    CommittedOffset,
    Identity,
    OffsetAndMetadata,
    all_committed_in,
    commit_answers,
    commit_requests,
    committed_requests,
)
from .topic_labels import add_label, split_label

__all__ = ["all_committed_offsets", "commit_group_offsets", "request_supported", "send_commit"]

R = TypeVar("R", bound=Response)


async def send_commit(
    view: ClusterView,
    group_id: str,
    identity: Identity | None,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    label: Callable[[OffsetAndMetadata], str],
) -> OffsetCommitResponse:
    """Sends `offsets` to the coordinator of the group; `label` returns the metadata of an offset.

    Raises the errors of `request_supported`.
    """
    return await request_supported(view, commit_requests(group_id, identity, offsets, label))


async def request_supported(view: ClusterView, requests: Iterable[Request[R]]) -> R:
    """Sends the first of `requests` that the broker supports; returns the response.

    `requests` begins with the request in the newest version. Raises the UnsupportedVersionError of
    the last request if the broker supports none, and the errors of `ClusterView.request`.
    """
    refused: UnsupportedVersionError | None = None
    for request in requests:
        try:
            return await view.request(request)
        except UnsupportedVersionError as error:
            refused = error  # nothing was sent
    assert refused is not None, "all were refused"
    raise refused


async def commit_group_offsets(
    view: ClusterView,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    topic_ids: Mapping[TopicPartition, Uuid] | None = None,
) -> None:
    """Commits offsets for a group without members; see `Client.commit_offsets`."""
    ids = topic_ids or {}
    names = {topic for topic, partition in offsets if (topic, partition) not in ids}

    async def with_topic_ids() -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets with topic ids.

        Refreshes the metadata of topics for which the caller passes no id: the cached id may be the
        id of a deleted topic.
        """
        if names:
            await view.refresh(names)
        topics = {name: (await view.topic(name)).topic_id for name in sorted(names)}
        return {
            tp: its._replace(topic_id=ids[tp] if tp in ids else topics[tp[0]])
            for tp, its in sorted(offsets.items())
        }

    def label(its: OffsetAndMetadata) -> str:
        return add_label(its.metadata, view.cluster.cluster_id, its.topic_id)

    async def errors_of_commit(
        left: Mapping[TopicPartition, OffsetAndMetadata],
        label: Callable[[OffsetAndMetadata], str],
    ) -> list[BrokerResponseError]:
        response = await send_commit(view, group_id, None, left, label)
        return [error for error in commit_answers(response, left).values() if error]

    async def commit() -> None:
        left = await with_topic_ids()
        errors = await errors_of_commit(left, label)
        if errors and all(error.name == "OFFSET_METADATA_TOO_LARGE" for error in errors):
            errors = await errors_of_commit(left, lambda its: its.metadata)
        if errors:
            raise errors[0]

    if offsets:
        await view.retrying(commit)


async def all_committed_offsets(
    view: ClusterView, group_id: str
) -> dict[TopicPartition, CommittedOffset]:
    """Returns all committed offsets of a group; see `Client.committed_offsets`."""

    async def fetch() -> dict[TopicPartition, CommittedOffset]:
        response = await request_supported(
            view, committed_requests(group_id, None, lambda topic: ZERO_UUID)
        )
        ids = {topic.topic_id for group in response.groups for topic in group.topics}
        names = {each: view.cluster.topic_name(each) for each in ids - {ZERO_UUID}}
        missing = [each for each, name in names.items() if name is None]
        if missing:
            for found in await view.refresh_ids(missing):
                names[found.topic_id] = None if found.error_code else found.name
        offsets = all_committed_in(response, group_id, lambda each: names.get(each) or "")
        return {
            tp: its._replace(metadata=split_label(its.metadata)[1])
            for tp, its in offsets.items()
            if its is not None and tp[0]
        }

    return await view.retrying(fetch)
