"""Sends commits in the newest version that a broker supports; also for groups without members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from ...messages.base import Request, Response
from ...messages.offset_commit_response import OffsetCommitResponse
from ...wire.errors import BrokerResponseError, UnsupportedVersionError
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .offset_requests import Identity, OffsetAndMetadata, commit_answers, commit_requests
from .topic_labels import add_label

__all__ = ["commit_group_offsets", "request_supported", "send_commit"]

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
    offsets: Mapping[TopicPartition, int],
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
            tp: OffsetAndMetadata(offset, topic_id=ids[tp] if tp in ids else topics[tp[0]])
            for tp, offset in sorted(offsets.items())
        }

    def label(its: OffsetAndMetadata) -> str:
        return add_label("", view.cluster.cluster_id, its.topic_id)

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
            errors = await errors_of_commit(left, lambda its: "")
        if errors:
            raise errors[0]

    if offsets:
        await view.retrying(commit)
