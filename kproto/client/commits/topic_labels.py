"""Of which topic a commit is, in its metadata, where brokers keep commits by the names of topics.

Up to v9 OffsetCommit names topics. One that was deleted and made anew has the same name, and a
commit of the one before would be taken for a commit of it: so the metadata that this client gives
says which topic is meant. Plain functions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...wire.uuid import ZERO_UUID, Uuid
from .incomplete_offsets import MOST_BYTES, is_told

__all__ = ["Label", "labelled", "unlabelled"]

#: What such a metadata begins with, and the version of what follows.
_PREFIX: Final = "kproto.topic/1 "


class Label(NamedTuple):
    """The topic of a commit. Tools copy commits, with their metadata, from cluster to cluster."""

    cluster_id: str
    topic_id: str

    def is_of_another(self, cluster_id: str | None, topic_id: Uuid) -> bool:
        """Whether another topic of this cluster is meant than the one of this id."""
        known = topic_id != ZERO_UUID and self.cluster_id == cluster_id
        return known and self.topic_id != str(topic_id)


def labelled(text: str, cluster_id: str | None, topic_id: Uuid) -> str:
    """A metadata with the topic in front; as it is where the user wrote it, where it has no room
    for that, or where the topic is not known."""
    is_ours = not text or is_told(text)
    if not is_ours or not cluster_id or " " in cluster_id or topic_id == ZERO_UUID:
        return text
    found = f"{_PREFIX}{cluster_id} {topic_id} {text}".rstrip()
    return found if len(found) <= MOST_BYTES else text


def unlabelled(text: str) -> tuple[Label | None, str]:
    """The topic that a metadata names, if any, and the metadata without it."""
    if not text.startswith(_PREFIX):
        return None, text
    cluster_id, _, rest = text[len(_PREFIX) :].partition(" ")
    topic_id, _, rest = rest.partition(" ")
    return Label(cluster_id, topic_id), rest
