"""`Committer`: sends commits one after the other, so that no commit overtakes an earlier commit.

If a caller is cancelled, its commit in flight continues without retries, because the broker may
have received the commit. The next commit waits until this commit has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from ...tasks import start_task
from ...wire.errors import (
    BrokerResponseError,
    KprotoError,
    RequestTimeoutError,
)
from ...wire.uuid import ZERO_UUID
from ..core.group_errors import CommitRefusal, commit_refusal
from ..core.retry import Attempts, Remedy, remedy_of
from ..core.tasks import retrieve_exception
from ..metadata.cluster import TopicPartition, format_partitions
from ..metadata.cluster_view import ClusterView
from .commit_requests import CommitOffsetSource, CommitRequest
from .commit_state import classify_results
from .errors import CommitFailedError
from .group_offsets import send_commit
from .membership import GroupMembership
from .offset_requests import Identity, OffsetAndMetadata, commit_answers
from .processed_bitmap import has_bitmap
from .topic_labels import add_label

__all__ = ["Committer"]

#: The assignment epoch of each partition; None if the partition cannot be committed.
_Epochs: TypeAlias = Mapping[TopicPartition, int | None]

_REMOVED_FROM_GROUP: Final = (
    "not assigned to this consumer any more, because the group removed it; their next owner reads "
    "them from the last committed offset"
)

_HAS_MEMBERS: Final = (
    "the group has members, so it accepts no commits for manually assigned partitions: use another "
    "group id"
)

_NO_CONSUMERS: Final = "the group is no group of consumers: use another group id"

_MEMBER_CLOSED: Final = (
    "the member has ended, because an earlier close() was cancelled; uncommitted records are "
    "redelivered"
)

_REASSIGNED: Final = (
    "not assigned to this consumer any more, or of a topic that was recreated; uncommitted records "
    "are redelivered"
)


class Committer:
    """Commits the offsets of a consumer to the group `group_id`.

    `offsets` returns the offsets to commit. `membership` is the consumer's membership in the group;
    None if the consumer commits without being a member.
    """

    def __init__(
        self,
        view: ClusterView,
        group_id: str,
        offsets: CommitOffsetSource,
        membership: GroupMembership[Any] | None,
    ) -> None:
        self._view = view
        self._group_id = group_id
        self._offsets = offsets
        self._membership = membership
        self._lock = asyncio.Lock()
        self._in_flight: set[asyncio.Task[None]] = set()
        self._is_closed = False
        # False once a broker has refused metadata with a topic id as too long.
        self._labels = True

    async def commit(self, request: CommitRequest, limit_ms: int) -> None:
        """Sends the commit after earlier commits; the wait and the commit share `limit_ms`.

        The commit is retried after retriable errors and rebalances, for the partitions that keep
        their assignment epoch. These are the epochs in `request`; if `request` has none, the epochs
        at the time when the commit was first sent. Raises RequestTimeoutError if earlier commits
        last too long. Raises CommitFailedError if the partitions are revoked, or the consumer is
        closed, before the commit succeeds, or if this member may not commit. Raises
        BrokerResponseError for the first other error; the partitions without an error are committed
        even after such an error.
        """
        is_abandoned = asyncio.Event()
        task = start_task(self._commit(request, limit_ms, is_abandoned))
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        task.add_done_callback(retrieve_exception)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            is_abandoned.set()
            raise
        if task.cancelled():
            raise CommitFailedError("the consumer was closed before the broker had answered")
        task.result()

    @property
    def has_commits(self) -> bool:
        """True while a commit is in flight, or waits for an earlier commit."""
        return bool(self._in_flight)

    async def end(self, until: float) -> None:
        """Waits for commits in flight, at most until the time `until` (seconds of the clock)."""
        tasks = list(self._in_flight)
        if tasks:
            with suppress(TimeoutError):
                async with self._view.clock.timeout(max(0.0, until - self._view.clock.monotonic())):
                    await asyncio.wait(tasks)

    async def close(self) -> None:
        """Cancels commits in flight.

        Later commits are possible: if `close` of the consumer is cancelled, a second `close` may
        commit. Such a commit does not wait for the end of a rebalance, because the member has left
        the group.
        """
        self._is_closed = True
        tasks = list(self._in_flight)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _commit(
        self, request: CommitRequest, limit_ms: int, is_abandoned: asyncio.Event
    ) -> None:
        clock = self._view.clock
        attempts = Attempts(self._view.settings, limit_ms, clock.monotonic())
        try:
            async with clock.timeout(limit_ms / 1000):
                await self._lock.acquire()
        except TimeoutError:
            why = f"the commit was not sent: earlier commits were not over within {limit_ms} ms"
            raise RequestTimeoutError(why) from None
        try:
            left = dict(self._offsets.offsets_to_commit(request, clock.monotonic()))
            epochs = request.assignment_epochs
            if epochs is None:
                epochs = {tp: self._offsets.assignment_epoch_of(tp) for tp in left}
            if not is_abandoned.is_set():
                await self._send(request, left, epochs, attempts, limit_ms, is_abandoned)
        finally:
            self._lock.release()

    async def _send(
        self,
        request: CommitRequest,
        left: dict[TopicPartition, OffsetAndMetadata],
        epochs: _Epochs,
        attempts: Attempts,
        limit_ms: int,
        is_abandoned: asyncio.Event,
    ) -> None:
        """Sends commits until each partition is committed or has an error that no retry solves.

        Raises the last error if the time of `attempts` is over first.
        """
        view = self._view
        topic_wait_ms = view.settings.metadata_wait_ms
        topic_attempts = Attempts(view.settings, topic_wait_ms, view.clock.monotonic())
        fault: KprotoError | None = None
        error: KprotoError | None = None
        refreshes_topic_ids = False
        while True:
            if refreshes_topic_ids:
                await self._refresh_topic_ids({topic for topic, _ in left}, attempts)
            gone = [
                tp
                for tp, its in left.items()
                if not self._is_assigned(tp, epochs) or self._is_of_another_topic(tp, its)
            ]
            if gone:
                fault = fault or _partitions_lost_error(gone, error)
                left = {tp: its for tp, its in left.items() if tp not in gone}
            if not left:
                break
            try:
                identity = self._identity(left)
                ends_at = attempts.ends_at(view.clock.monotonic())
                response = await view.with_deadline(
                    ends_at,
                    send_commit(view, self._group_id, identity, left, self._label),
                    limit_ms,
                )
                answers = classify_results(commit_answers(response, left))
            except KprotoError as lost:
                if remedy_of(lost) is Remedy.FAIL and not _may_be_transient(lost):
                    raise
                error = lost
            else:
                now = view.clock.monotonic()
                still_assigned = [tp for tp in answers.committed if self._is_assigned(tp, epochs)]
                self._offsets.on_committed(request, {tp: left[tp] for tp in still_assigned}, now)
                to_retry: dict[TopicPartition, KprotoError] = dict(answers.to_retry)
                if answers.refused:
                    refused = self._refused(answers.refused, identity)
                    if not refused.retriable:
                        raise refused
                    to_retry |= dict.fromkeys(answers.refused, refused)
                refreshes_topic_ids = bool(answers.unknown_topics)
                if answers.unknown_topics and topic_attempts.failed(
                    _first(answers.unknown_topics), now
                ):
                    to_retry |= answers.unknown_topics
                elif answers.unknown_topics:
                    fault = fault or _first(answers.unknown_topics)
                shorter = self._without_metadata(left, answers.failed)
                failed = {p: its for p, its in answers.failed.items() if p not in shorter}
                if failed:
                    fault = fault or _first(failed)
                to_retry |= {tp: answers.failed[tp] for tp in shorter}
                left = {tp: shorter.get(tp, left[tp]) for tp in to_retry}
                if not left:
                    break
                error = next(iter(to_retry.values()))
            if is_abandoned.is_set() or not attempts.failed(error, view.clock.monotonic()):
                raise fault or error
            view.observer.retried("commit", error, attempts)
            await view.sleep_until(attempts.not_before)
        if fault is not None:
            raise fault

    def _label(self, its: OffsetAndMetadata) -> str:
        if not self._labels:
            return its.metadata
        return add_label(its.metadata, self._view.cluster.cluster_id, its.topic_id)

    def _without_metadata(
        self,
        left: Mapping[TopicPartition, OffsetAndMetadata],
        failed: Mapping[TopicPartition, BrokerResponseError],
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets whose metadata was too long for the broker, with less metadata.

        `left` has the offsets of the request, and `failed` has the errors. A commit with a bitmap
        is retried without the bitmap. A commit without metadata of the user is retried without the
        label. Metadata of the user is never removed. For later commits, `CommitOffsetSource` builds
        shorter bitmaps after a bitmap was refused, and the committer adds no labels after a label
        was refused.
        """
        found = {}
        labels = self._labels
        for tp, error in failed.items():
            its = left[tp]
            if error.name != "OFFSET_METADATA_TOO_LARGE":
                continue
            if has_bitmap(its.metadata):
                self._offsets.on_metadata_too_large(len(its.metadata))
                found[tp] = its._replace(metadata="")
            elif not its.metadata and self._label(its):
                found[tp] = its
                labels = False
        self._labels = labels
        return found

    def _is_assigned(self, tp: TopicPartition, epochs: _Epochs) -> bool:
        epoch = epochs[tp]
        return epoch is not None and self._offsets.assignment_epoch_of(tp) == epoch

    async def _refresh_topic_ids(self, topics: Collection[str], attempts: Attempts) -> None:
        """Refreshes the topic ids of `topics`, because the coordinator did not know one of them.

        That topic may have been recreated. A commit up to v9 names the topic, so a retry would
        commit the old offset for the new topic. The caller drops partitions whose topic id changed.
        """
        view = self._view
        with suppress(KprotoError):
            await view.with_deadline(attempts.ends_at(view.clock.monotonic()), view.refresh(topics))

    def _is_of_another_topic(self, tp: TopicPartition, its: OffsetAndMetadata) -> bool:
        info = self._view.cluster.topics.get(tp[0])
        ids = (its.topic_id, its.topic_id if info is None else info.topic_id)
        return ZERO_UUID not in ids and ids[0] != ids[1]

    def _identity(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Identity | None:
        """Returns the identity of the member that commits; None if the committer has no member.

        Raises CommitFailedError if the member cannot commit now.
        """
        if self._membership is None:
            return None
        identity = self._membership.identity
        if identity is None and self._is_closed:
            raise CommitFailedError(f"{format_partitions(offsets)}: {_MEMBER_CLOSED}")
        if identity is None:
            raise CommitFailedError(
                f"{format_partitions(offsets)}: the member of group {self._group_id!r} is in no "
                "generation: a rebalance is in progress, and did not end in time",
                retriable=True,
            )
        return identity

    def _refused(
        self, errors: Mapping[TopicPartition, BrokerResponseError], identity: Identity | None
    ) -> CommitFailedError:
        """Reports a refused commit to the member, and returns the error of the commit.

        The error is retriable if a rebalance has overtaken the commit, because the partitions may
        stay assigned to the member.
        """
        error = _first(errors)
        is_overtaken = False
        if self._membership is None or identity is None:
            why = _NO_CONSUMERS if error.name == "GROUP_ID_NOT_FOUND" else _HAS_MEMBERS
        else:
            self._membership.on_commit_refused(error, identity)
            is_overtaken = commit_refusal(error) is CommitRefusal.OVERTAKEN
            why = (
                "a rebalance is in progress, and did not end in time"
                if is_overtaken
                else _REMOVED_FROM_GROUP
            )
            if is_overtaken and self._is_closed:
                is_overtaken, why = False, _MEMBER_CLOSED
        refused = CommitFailedError(
            f"{format_partitions(errors)}: {why}", name=error.name, retriable=is_overtaken
        )
        refused.__cause__ = error
        return refused


def _may_be_transient(error: KprotoError) -> bool:
    """Returns True if a commit that failed with `error` may succeed after a rebalance."""
    return isinstance(error, CommitFailedError) and error.retriable


def _partitions_lost_error(
    tps: Collection[TopicPartition], error: KprotoError | None
) -> CommitFailedError:
    """Returns the error of a commit if its partitions were lost while the commit waited.

    `error` is the error after which the commit waited for its retry; None if the commit had no
    error.
    """
    name = error.name if isinstance(error, CommitFailedError | BrokerResponseError) else None
    gone = CommitFailedError(f"{format_partitions(tps)}: {_REASSIGNED}", name=name)
    gone.__cause__ = error
    return gone


def _first(errors: Mapping[TopicPartition, BrokerResponseError]) -> BrokerResponseError:
    return next(iter(errors.values()))
