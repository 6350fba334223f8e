"""The offsets of a group that a producer commits in its transaction (KIP-447). Plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from ...wire.errors import KprotoError
from ..metadata.cluster import TopicPartition
from .offset_requests import Identity, OffsetAndMetadata

__all__ = ["TransactionalCommit", "TransactionalOffsetSource"]


def _ignore() -> None:
    """Does nothing."""


def _ignore_error(error: KprotoError) -> None:
    """Does nothing."""


class TransactionalCommit(NamedTuple):
    """Offsets of the group `group_id`, and the member that has processed the records before them.

    If `member` is None, the coordinator commits the offsets without a check of the member.
    `on_committed` is called once the transaction is committed, and `on_refused` is called with the
    error of a coordinator that has refused the offsets.
    """

    group_id: str
    member: Identity | None
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    on_committed: Callable[[], None] = _ignore
    on_refused: Callable[[KprotoError], None] = _ignore_error


class TransactionalOffsetSource(Protocol):
    """A consumer whose offsets a transaction commits; `GroupConsumer` implements it."""

    async def _transactional_commit(self) -> TransactionalCommit:
        """Returns the offsets after the last returned records; the consumer itself commits no more.

        Raises ConfigurationError if the consumer cannot commit now, and CommitFailedError if its
        member is in no generation.
        """
        ...
