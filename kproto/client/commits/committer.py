"""`Committer`: sends commits, one at a time, so that none overtakes another.

A commit continues when its caller is cancelled: the broker may have it already, and the next commit
waits for it. It is not retried then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from ...messages.offset_commit_response import OffsetCommitResponse
from ...wire.errors import (
    BrokerResponseError,
    KprotoError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from ...wire.uuid import ZERO_UUID
from ..core.retry import Attempts, Remedy, remedy_of
from ..core.tasks import retrieve_exception
from ..metadata.cluster import TopicPartition, named
from ..metadata.cluster_view import ClusterView
from .commit_requests import CommitRequest, CommittableOffsets
from .commit_state import judged
from .errors import CommitFailedError
from .incomplete_offsets import is_told
from .membership import GroupMembership, MemberError, member_error
from .requests import Identity, ToCommit, commit_answers, commit_requests
from .topic_labels import labelled

__all__ = ["Committer"]

#: The assignment epochs under which partitions are committed; None if they cannot be committed.
_Epochs: TypeAlias = Mapping[TopicPartition, int | None]

_OUT: Final = (
    "not assigned to this consumer any more, as the group goes on without it; others may read them "
    "by now: their records come again from where was committed last"
)

_ENDED: Final = (
    "the member of the group is at its end, as closing was cut short before: what was not "
    "committed comes again"
)

_MOVED: Final = (
    "not assigned to this consumer any more, or of a topic that was made anew; others may read "
    "them by now: what was not committed comes again"
)


class Committer:
    """Commits `offsets` for `group_id`; without a `membership` for a group that has no members."""

    def __init__(
        self,
        view: ClusterView,
        group_id: str,
        offsets: CommittableOffsets,
        membership: GroupMembership[Any] | None,
    ) -> None:
        self._view = view
        self._group_id = group_id
        self._offsets = offsets
        self._membership = membership
        self._lock = asyncio.Lock()
        self._in_flight: set[asyncio.Task[None]] = set()
        self._is_closed = False
        # Whether a broker that knows topics by name takes a metadata that has the topic id.
        self._labels = True

    async def commit(self, request: CommitRequest, limit_ms: int) -> None:
        """Commits what is requested when the earlier commits are finished; all within `limit_ms`.

        Retriable errors and rebalances are waited out while the partitions stay assigned: under the
        assignment epochs of the request, or under those at its turn. Raises CommitFailedError if
        they are revoked, or if the consumer is closed meanwhile, and BrokerResponseError for the
        first of other refusals; the other partitions are committed.
        """
        given_up = asyncio.Event()
        task = asyncio.create_task(self._commit(request, limit_ms, given_up))
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        task.add_done_callback(retrieve_exception)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            given_up.set()
            raise
        if task.cancelled():
            raise CommitFailedError("the consumer was closed before the broker had answered")
        task.result()

    async def end(self, until: float) -> None:
        """Waits for commits in flight, up to `until` in seconds of the clock."""
        tasks = list(self._in_flight)
        if tasks:
            with suppress(TimeoutError):
                async with self._view.clock.timeout(max(0.0, until - self._view.clock.monotonic())):
                    await asyncio.wait(tasks)

    async def close(self) -> None:
        """Cancels commits in flight.

        Later commits, of a second `close` after a cancelled one, wait for no rebalance, because the
        member has ended.
        """
        self._is_closed = True
        tasks = list(self._in_flight)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _commit(self, request: CommitRequest, limit_ms: int, given_up: asyncio.Event) -> None:
        clock = self._view.clock
        attempts = Attempts(self._view.settings, limit_ms, clock.monotonic())
        try:
            async with clock.timeout(limit_ms / 1000):
                await self._lock.acquire()
        except TimeoutError:
            why = f"the commits before it were not over within {limit_ms} ms"
            raise RequestTimeoutError(why) from None
        try:
            left = dict(self._offsets.offsets_to_commit(request, clock.monotonic()))
            epochs = request.assignment_epochs
            if epochs is None:
                epochs = {tp: self._offsets.assignment_epoch_of(tp) for tp in left}
            if not given_up.is_set():
                await self._send(request, left, epochs, attempts, limit_ms, given_up)
        finally:
            self._lock.release()

    async def _send(
        self,
        request: CommitRequest,
        left: dict[TopicPartition, ToCommit],
        epochs: _Epochs,
        attempts: Attempts,
        limit_ms: int,
        given_up: asyncio.Event,
    ) -> None:
        """Commits until nothing is left, or no retry helps."""
        view = self._view
        soon_ms = view.settings.metadata_wait_ms
        soon = Attempts(view.settings, soon_ms, view.clock.monotonic())
        fault: KprotoError | None = None
        error: KprotoError | None = None
        asks_for_ids = False
        while True:
            if asks_for_ids:
                await self._ask_for_ids({topic for topic, _ in left}, attempts)
            gone = [
                tp
                for tp, its in left.items()
                if not self._is_assigned(tp, epochs) or self._is_of_another_topic(tp, its)
            ]
            if gone:
                fault = fault or _gone(gone, error)
                left = {tp: its for tp, its in left.items() if tp not in gone}
            if not left:
                break
            try:
                identity = self._identity(left)
                ends_at = attempts.ends_at(view.clock.monotonic())
                response = await view.with_deadline(
                    ends_at, self._request(identity, left), limit_ms
                )
                answers = judged(commit_answers(response, left))
            except KprotoError as lost:
                if remedy_of(lost) is Remedy.FAIL and not _may_pass(lost):
                    raise
                error = lost
            else:
                now = view.clock.monotonic()
                ours = [tp for tp in answers.committed if self._is_assigned(tp, epochs)]
                self._offsets.on_committed(request, {tp: left[tp] for tp in ours}, now)
                again: dict[TopicPartition, KprotoError] = dict(answers.again)
                if answers.refused:
                    refused = self._refused(answers.refused, identity)
                    if not refused.retriable:
                        raise refused
                    again |= dict.fromkeys(answers.refused, refused)
                asks_for_ids = bool(answers.soon)
                if answers.soon and soon.failed(_first(answers.soon), now):
                    again |= answers.soon
                elif answers.soon:
                    fault = fault or _first(answers.soon)
                shorter = self._shorter(left, answers.failed)
                failed = {p: its for p, its in answers.failed.items() if p not in shorter}
                if failed:
                    fault = fault or _first(failed)
                again |= {tp: answers.failed[tp] for tp in shorter}
                left = {tp: shorter.get(tp, left[tp]) for tp in again}
                if not left:
                    break
                error = next(iter(again.values()))
            if given_up.is_set() or not attempts.failed(error, view.clock.monotonic()):
                raise fault or error
            view.observer.retried("commit", error, attempts)
            await view.until(attempts.not_before)
        if fault is not None:
            raise fault

    async def _request(
        self, identity: Identity | None, left: Mapping[TopicPartition, ToCommit]
    ) -> OffsetCommitResponse:
        refused: UnsupportedVersionError | None = None
        for request in commit_requests(self._group_id, identity, left, self._label):
            try:
                return await self._view.request(request)
            except UnsupportedVersionError as error:
                refused = error  # nothing was sent; the last request needs the lowest version
        assert refused is not None, "all were refused"
        raise refused

    def _label(self, its: ToCommit) -> str:
        if not self._labels:
            return its.metadata
        return labelled(its.metadata, self._view.cluster.cluster_id, its.topic_id)

    def _shorter(
        self,
        left: Mapping[TopicPartition, ToCommit],
        failed: Mapping[TopicPartition, BrokerResponseError],
    ) -> dict[TopicPartition, ToCommit]:
        """Returns commits whose own metadata the broker finds too long, without it.

        Later commits, explicit ones too, have a shorter one, as `CommittableOffsets` decides.
        """
        found = {}
        labels = self._labels
        for tp, error in failed.items():
            its = left[tp]
            if error.name != "OFFSET_METADATA_TOO_LARGE":
                continue
            if is_told(its.metadata):
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

    async def _ask_for_ids(self, topics: Collection[str], attempts: Attempts) -> None:
        """Asks for the metadata of topics that a coordinator does not know: they may be recreated.

        Up to v9 commits name topics: the next one would be a commit of the recreated topic.
        """
        view = self._view
        with suppress(KprotoError):
            await view.with_deadline(attempts.ends_at(view.clock.monotonic()), view.refresh(topics))

    def _is_of_another_topic(self, tp: TopicPartition, its: ToCommit) -> bool:
        info = self._view.cluster.topics.get(tp[0])
        ids = (its.topic_id, its.topic_id if info is None else info.topic_id)
        return ZERO_UUID not in ids and ids[0] != ids[1]

    def _identity(self, offsets: Mapping[TopicPartition, ToCommit]) -> Identity | None:
        """Returns the member that commits. Raises CommitFailedError while it cannot commit."""
        if self._membership is None:
            return None
        identity = self._membership.identity
        if identity is None and self._is_closed:
            raise CommitFailedError(f"{named(offsets)}: {_ENDED}")
        if identity is None:
            raise CommitFailedError(
                f"{named(offsets)}: the member of group {self._group_id!r} is in no generation: a "
                "rebalance is under way, and was not over in time",
                retriable=True,
            )
        return identity

    def _refused(
        self, errors: Mapping[TopicPartition, BrokerResponseError], identity: Identity | None
    ) -> CommitFailedError:
        """Reports a refused commit to the member; returns the error of the commit.

        If a rebalance has overtaken the commit, the member finds out whether the partitions stay
        assigned: the commit is retriable.
        """
        error = _first(errors)
        is_overtaken = False
        if self._membership is None or identity is None:
            why = (
                "the group has members, and for such a group no partitions that were given by hand "
                "can be committed: read them in a group of their own"
            )
        else:
            self._membership.on_commit_refused(error, identity)
            is_overtaken = member_error(error) is MemberError.OVERTAKEN
            why = "a rebalance is under way, and was not over in time" if is_overtaken else _OUT
            if is_overtaken and self._is_closed:
                is_overtaken, why = False, _ENDED
        refused = CommitFailedError(
            f"{named(errors)}: {why}", name=error.name, retriable=is_overtaken
        )
        refused.__cause__ = error
        return refused


def _may_pass(error: KprotoError) -> bool:
    """Returns True if the commit may succeed after the rebalance."""
    return isinstance(error, CommitFailedError) and error.retriable


def _gone(tps: Collection[TopicPartition], error: KprotoError | None) -> CommitFailedError:
    """Returns the error of a commit whose partitions were lost while it waited; `error` is why."""
    name = error.name if isinstance(error, CommitFailedError | BrokerResponseError) else None
    gone = CommitFailedError(f"{named(tps)}: {_MOVED}", name=name)
    gone.__cause__ = error
    return gone


def _first(errors: Mapping[TopicPartition, BrokerResponseError]) -> BrokerResponseError:
    return next(iter(errors.values()))
