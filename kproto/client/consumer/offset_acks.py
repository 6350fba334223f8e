"""`OffsetAckSink`: acknowledges processed records by commits of their offsets."""

from __future__ import annotations

import logging
from collections.abc import Collection

from ...wire.errors import KprotoError
from ..commits.commit_requests import CommitKind, CommitRequest
from ..commits.committer import Committer
from .auto_commit import AutoCommit
from .poll_status import PollStatus

__all__ = ["OffsetAckSink"]

logger = logging.getLogger("kproto.client")


class OffsetAckSink:
    """The `AckSink` of a group consumer. Without auto-commit only the user commits.

    `is_auto` is the setting `auto_commit`.
    """

    def __init__(
        self,
        committer: Committer,
        auto_commit: AutoCommit,
        status: PollStatus,
        *,
        is_auto: bool,
    ) -> None:
        self._committer = committer
        self._auto_commit = auto_commit
        self._status = status
        self._is_auto = is_auto

    def acknowledge_soon(self) -> None:
        """Makes auto-commit commit processed offsets soon, before its interval is over."""
        self._auto_commit.commit_soon()

    def on_lost(self, epochs: Collection[object]) -> None:
        """Does nothing: the committer refuses offsets of partitions that are not assigned."""

    async def acknowledge(self, limit_ms: int) -> None:
        """Commits processed offsets within `limit_ms`.

        Does nothing without `auto_commit`, or if the consumer is closed. Logs a failure; `close()`
        of the consumer commits again.
        """
        if not self._is_auto or self._status.is_closed:
            return
        try:
            await self._committer.commit(CommitRequest(CommitKind.DUE), limit_ms)
        except KprotoError as error:
            logger.warning("processed offsets were not committed at the end of run(): %s", error)
