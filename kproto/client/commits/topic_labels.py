"""Labels: the topic id of a commit, written into its metadata.

Up to v9 OffsetCommit has topic names, without ids. A recreated topic has the name of the deleted
topic, and would inherit its committed offsets. The topic id in the label prevents this. Plain
functions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...wire.uuid import ZERO_UUID, Uuid
from .processed_bitmap import MAX_METADATA_BYTES, has_bitmap

__all__ = ["CommittedTopicId", "add_label", "split_label"]

#: The prefix of a label, with the version of the format.
_PREFIX: Final = "kproto.topic/1 "


class CommittedTopicId(NamedTuple):
    """The topic id of a committed partition, and the id of the cluster that has the topic.

    The cluster id shows whether a tool has copied the commit from another cluster.
    """

    cluster_id: str
    topic_id: str

    def is_of_another(self, cluster_id: str | None, topic_id: Uuid) -> bool:
        """Returns True if the label has the id `cluster_id`, but a topic id other than `topic_id`.

        Returns False if `topic_id` is all zeros, which means that the id is unknown.
        """
        known = topic_id != ZERO_UUID and self.cluster_id == cluster_id
        return known and self.topic_id != str(topic_id)


def add_label(text: str, cluster_id: str | None, topic_id: Uuid) -> str:
    """Returns the metadata of a commit with a label in front: the ids of the cluster and the topic.

    Returns the metadata unchanged if the user wrote it, if it would get too long, or if the topic
    id or the cluster id is unknown.
    """
    is_ours = not text or has_bitmap(text)
    if not is_ours or not cluster_id or " " in cluster_id or topic_id == ZERO_UUID:
        return text
    found = f"{_PREFIX}{cluster_id} {topic_id} {text}".rstrip()
    return found if len(found) <= MAX_METADATA_BYTES else text


def split_label(text: str) -> tuple[CommittedTopicId | None, str]:
    """Returns the label at the start of the metadata, or None, and the metadata after the label."""
    if not text.startswith(_PREFIX):
        return None, text
    cluster_id, _, rest = text[len(_PREFIX) :].partition(" ")
    topic_id, _, rest = rest.partition(" ")
    return CommittedTopicId(cluster_id, topic_id), rest
