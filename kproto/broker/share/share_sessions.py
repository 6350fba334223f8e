"""Holds the share sessions of a broker, and checks session epochs (KIP-932).

A share session belongs to a member of a share group, and holds the partitions that the member
fetches. The first ShareFetch has the epoch 0, and each request of the session has the next epoch.
The epoch -1 ends the session.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from ...wire.uuid import Uuid
from ..api_error import api_error

__all__ = ["FINAL_EPOCH", "INITIAL_EPOCH", "ShareSession", "ShareSessionCache", "TopicIdPartition"]

#: The epoch of a request that creates a session.
INITIAL_EPOCH: Final = 0
#: The epoch of a request that ends its session.
FINAL_EPOCH: Final = -1

_LAST_EPOCH: Final = 2**31 - 1


class TopicIdPartition(NamedTuple):
    """Names a partition by the id of its topic, and its index."""

    topic_id: Uuid
    partition: int


_Key: TypeAlias = tuple[str, str]
"""The group id and the member id of a session."""


@dataclass(slots=True, eq=False)
class ShareSession:
    """Holds a share session; `epoch` is the epoch of its next request.

    `connection_id` names the connection that created the session: the session ends with it. The
    keys of `partitions` are in the order of the response.
    """

    group_id: str
    member_id: str
    connection_id: str
    partitions: dict[TopicIdPartition, None]
    epoch: int = 1

    def update(
        self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]
    ) -> None:
        """Adds and removes partitions, and moves on to the next epoch."""
        self.partitions.update(dict.fromkeys(added))
        for tp in forgotten:
            self.partitions.pop(tp, None)
        self.advance()

    def advance(self) -> None:
        """Moves on to the next epoch; 1 follows the last epoch."""
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1

    def on_records_sent(self, tp: TopicIdPartition) -> None:
        """Moves a partition to the end, so that the other partitions are read first."""
        if tp in self.partitions:
            del self.partitions[tp]
            self.partitions[tp] = None


@dataclass(slots=True)
class ShareSessionCache:
    """Holds the share sessions of one broker; at most `slots` (group.share.max.share.sessions)."""

    slots: int
    _sessions: dict[_Key, ShareSession] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._sessions)

    def create(
        self,
        group_id: str,
        member_id: str,
        connection_id: str,
        partitions: Iterable[TopicIdPartition],
    ) -> ShareSession:
        """Creates a session, in place of an earlier session of the member.

        Raises SHARE_SESSION_LIMIT_REACHED.
        """
        self._sessions.pop((group_id, member_id), None)
        if len(self._sessions) >= self.slots:
            raise api_error("SHARE_SESSION_LIMIT_REACHED", "the broker has no room for a session")
        session = ShareSession(group_id, member_id, connection_id, dict.fromkeys(partitions))
        self._sessions[group_id, member_id] = session
        return session

    def find(self, group_id: str, member_id: str) -> ShareSession:
        """Returns the session of a member. Raises SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise api_error("SHARE_SESSION_NOT_FOUND", "the member has no share session")
        return session

    def at_epoch(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """Returns the session of a member whose next request has `epoch`.

        Raises SHARE_SESSION_NOT_FOUND and INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.find(group_id, member_id)
        if session.epoch != epoch:
            raise api_error(
                "INVALID_SHARE_SESSION_EPOCH",
                f"the next epoch of the session is {session.epoch}, not {epoch}",
            )
        return session

    def remove(self, session: ShareSession) -> None:
        """Removes a session; does nothing if its member has another session by now."""
        key = session.group_id, session.member_id
        if self._sessions.get(key) is session:
            del self._sessions[key]

    def has_group(self, group_id: str) -> bool:
        """Returns True if a member of the group has a session."""
        return any(each == group_id for each, _ in self._sessions)

    def of_connection(self, connection_id: str) -> list[ShareSession]:
        """Returns the sessions that a connection has created."""
        return [it for it in self._sessions.values() if it.connection_id == connection_id]
