"""Commits offsets for a group without members, and sends commits in the version of the broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...messages.offset_commit_response import OffsetCommitResponse
from ...wire.errors import BrokerResponseError, UnsupportedVersionError
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from .offset_requests import Identity, OffsetAndMetadata, commit_answers, commit_requests
from .topic_labels import add_label

__all__ = ["commit_group_offsets", "send_commit"]


async def send_commit(
    view: ClusterView,
    group_id: str,
    identity: Identity | None,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    label: Callable[[OffsetAndMetadata], str],
) -> OffsetCommitResponse:
    """Sends `offsets` to the coordinator of the group; `label` returns the metadata of each.

    Tries the requests of `commit_requests` until the coordinator has the version of one. Raises
    UnsupportedVersionError if it has none, and the errors of `ClusterView.request`.
    """
    refused: UnsupportedVersionError | None = None
    for request in commit_requests(group_id, identity, offsets, label):
        try:
            return await view.request(request)
        except UnsupportedVersionError as error:
            refused = error  # nothing was sent; the last request has the lowest version
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
    topics = {name: (await view.topic(name)).topic_id for name in sorted(names)}
    left = {
        tp: OffsetAndMetadata(offset, topic_id=ids[tp] if tp in ids else topics[tp[0]])
        for tp, offset in sorted(offsets.items())
    }

    def label(its: OffsetAndMetadata) -> str:
        return add_label("", view.cluster.cluster_id, its.topic_id)

    async def errors_of_commit(
        label: Callable[[OffsetAndMetadata], str],
    ) -> list[BrokerResponseError]:
        response = await send_commit(view, group_id, None, left, label)
        return [error for error in commit_answers(response, left).values() if error]

    async def commit() -> None:
        errors = await errors_of_commit(label)
        if errors and all(error.name == "OFFSET_METADATA_TOO_LARGE" for error in errors):
            errors = await errors_of_commit(lambda its: "")
        if errors:
            raise errors[0]

    if left:
        await view.retrying(commit)
