"""Sends commits, one after the other, so that none overtakes another; what they mean says
`committing`.

A commit goes on when who waits for it is cancelled: the broker may have it already, and the next
one waits for that. It is not tried again then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, TypeAlias

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
from .commit_state import CommitState, judged
from .errors import CommitFailedError
from .incomplete_offsets import is_told
from .requests import Identity, ToCommit, commit_answers, commit_requests
from .topic_labels import labelled

__all__ = ["Claims", "Committer", "Made", "Membership", "Offsets"]

#: What to commit, asked for when it is its turn.
Offsets: TypeAlias = Callable[[], Mapping[TopicPartition, ToCommit]]

#: By what a partition is this member's, None where it is not any more: who has it again has another
#: claim, and so has who reads another topic of its name.
Claims: TypeAlias = Mapping[TopicPartition, object]

#: Is told what was committed, as soon as the broker has it.
Made: TypeAlias = Callable[[Iterable[TopicPartition]], None]

#: Refusals that may only say that a rebalance has overtaken the commit.
_OVERTAKEN: Final = ("ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "STALE_MEMBER_EPOCH")

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


class Membership(Protocol):
    """Who commits, as the member of the group knows."""

    @property
    def identity(self) -> Identity | None:
        """None while the member is in no generation that is stable."""

    def on_commit_refused(self, error: BrokerResponseError, identity: Any) -> None:
        """The broker refused the commit of who that was: an `identity` that it has given."""


class Committer:
    """Commits for `group_id`; without a `membership` for a group that has no members.

    `tell_less` is told the length of a text about what is done that a broker finds too long.
    """

    def __init__(
        self,
        view: ClusterView,
        group_id: str,
        committing: CommitState,
        claim: Callable[[TopicPartition], object],
        membership: Membership | None,
        tell_less: Callable[[int], None] = lambda length: None,
    ) -> None:
        self._view = view
        self._tell_less = tell_less
        self._group_id = group_id
        self._committing = committing
        self._claim = claim
        self._membership = membership
        self._in_turn = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()
        self._is_closed = False
        #: Whether brokers that know topics by their names take a metadata that tells the topic.
        self._labels = True

    async def commit(
        self,
        offsets: Offsets,
        limit_ms: int,
        claims: Claims | None = None,
        made: Made | None = None,
    ) -> None:
        """Commit what `offsets` gives once the commits before are over; all within `limit_ms`.

        Errors that time mends are waited out, rebalances too, as long as the partitions stay this
        member's: by the `claims` that are given, else by those it has when its turn comes. Raises
        CommitFailedError where they do not, and where the consumer is closed meanwhile,
        BrokerResponseError for other refusals, the first of them; what others there is, is
        committed.
        """
        given_up = asyncio.Event()
        task = asyncio.create_task(self._commit(offsets, limit_ms, claims, made, given_up))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
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
        """Wait for what is under way, up to `until` in seconds of the clock."""
        tasks = list(self._under_way)
        if tasks:
            with suppress(TimeoutError):
                async with self._view.clock.timeout(max(0.0, until - self._view.clock.monotonic())):
                    await asyncio.wait(tasks)

    async def close(self) -> None:
        """Give up what is under way.

        Who closes again, as the first time was cut short, waits for no rebalance: its member is
        at its end by then.
        """
        self._is_closed = True
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _commit(
        self,
        offsets: Offsets,
        limit_ms: int,
        claims: Claims | None,
        made: Made | None,
        given_up: asyncio.Event,
    ) -> None:
        clock = self._view.clock
        attempts = Attempts(self._view.settings, limit_ms, clock.monotonic())
        try:
            async with clock.timeout(limit_ms / 1000):
                await self._in_turn.acquire()
        except TimeoutError:
            why = f"the commits before it were not over within {limit_ms} ms"
            raise RequestTimeoutError(why) from None
        try:
            left = dict(offsets())
            if claims is None:
                claims = {place: self._claim(place) for place in left}
            if not given_up.is_set():
                await self._carry_out(left, claims, made, attempts, limit_ms, given_up)
        finally:
            self._in_turn.release()

    async def _carry_out(
        self,
        left: dict[TopicPartition, ToCommit],
        claims: Claims,
        made: Made | None,
        attempts: Attempts,
        limit_ms: int,
        given_up: asyncio.Event,
    ) -> None:
        """Commit until nothing is left, or nothing helps."""
        view = self._view
        soon_ms = view.settings.topic_timeout_ms
        soon = Attempts(view.settings, soon_ms, view.clock.monotonic())
        fault: KprotoError | None = None
        error: KprotoError | None = None
        asks_for_ids = False
        while True:
            if asks_for_ids:
                await self._ask_for_ids({topic for topic, _ in left}, attempts)
            gone = [
                place
                for place, its in left.items()
                if not self._is_ours(place, claims) or self._is_of_another_topic(place, its)
            ]
            if gone:
                fault = fault or _gone(gone, error)
                left = {place: its for place, its in left.items() if place not in gone}
            if not left:
                break
            try:
                identity = self._identity(left)
                ends_at = attempts.ends_at(view.clock.monotonic())
                response = await view.by(ends_at, self._ask(identity, left), limit_ms)
                answers = judged(commit_answers(response, left))
            except KprotoError as lost:
                if remedy_of(lost) is Remedy.FAIL and not _may_pass(lost):
                    raise
                error = lost
            else:
                now = view.clock.monotonic()
                ours = [place for place in answers.committed if self._is_ours(place, claims)]
                self._committing.committed({place: left[place] for place in ours}, now)
                if made is not None:
                    made(ours)
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
                again |= {place: answers.failed[place] for place in shorter}
                left = {place: shorter.get(place, left[place]) for place in again}
                if not left:
                    break
                error = next(iter(again.values()))
            if given_up.is_set() or not attempts.failed(error, view.clock.monotonic()):
                raise fault or error
            view.observer.retried("commit", error, attempts)
            await view.until(attempts.not_before)
        if fault is not None:
            raise fault

    async def _ask(
        self, identity: Identity | None, left: Mapping[TopicPartition, ToCommit]
    ) -> OffsetCommitResponse:
        refused: UnsupportedVersionError | None = None
        for request in commit_requests(self._group_id, identity, left, self._label):
            try:
                return await self._view.request(request)
            except UnsupportedVersionError as error:
                refused = error  # nothing was sent; the last asks for the least
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
        """The same without the text of ours that a broker finds too long."""
        found = {}
        labels = self._labels
        for place, error in failed.items():
            its = left[place]
            if error.name != "OFFSET_METADATA_TOO_LARGE":
                continue
            if is_told(its.metadata):
                self._tell_less(len(its.metadata))
                found[place] = its._replace(metadata="")
            elif not its.metadata and self._label(its):
                found[place] = its
                labels = False
        self._labels = labels
        return found

    def _is_ours(self, place: TopicPartition, claims: Claims) -> bool:
        claim = claims[place]
        return claim is not None and self._claim(place) is claim

    async def _ask_for_ids(self, topics: Collection[str], attempts: Attempts) -> None:
        """Ask for topics again that a coordinator does not know: they may be made anew by now.

        Up to v9 commits name topics: the next one would be taken for the topic that is.
        """
        view = self._view
        with suppress(KprotoError):
            await view.by(attempts.ends_at(view.clock.monotonic()), view.refresh(topics))

    def _is_of_another_topic(self, place: TopicPartition, its: ToCommit) -> bool:
        info = self._view.cluster.topics.get(place[0])
        ids = (its.topic_id, its.topic_id if info is None else info.topic_id)
        return ZERO_UUID not in ids and ids[0] != ids[1]

    def _identity(self, offsets: Mapping[TopicPartition, ToCommit]) -> Identity | None:
        """Who commits. Raises CommitFailedError where the member may not now."""
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
        """The error of a commit that was not ours to make; the member is told.

        Where a rebalance has overtaken it, it is for the member to say whether these stay its own.
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
            is_overtaken = error.name in _OVERTAKEN
            why = "a rebalance is under way, and was not over in time" if is_overtaken else _OUT
            if is_overtaken and self._is_closed:
                is_overtaken, why = False, _ENDED
        refused = CommitFailedError(
            f"{named(errors)}: {why}", name=error.name, retriable=is_overtaken
        )
        refused.__cause__ = error
        return refused


def _may_pass(error: KprotoError) -> bool:
    """Whether the end of a rebalance may mend it."""
    return isinstance(error, CommitFailedError) and error.retriable


def _gone(places: Collection[TopicPartition], error: KprotoError | None) -> CommitFailedError:
    """The error of a commit of what was lost while it waited, for its turn or behind `error`."""
    name = error.name if isinstance(error, CommitFailedError | BrokerResponseError) else None
    gone = CommitFailedError(f"{named(places)}: {_MOVED}", name=name)
    gone.__cause__ = error
    return gone


def _first(errors: Mapping[TopicPartition, BrokerResponseError]) -> BrokerResponseError:
    return next(iter(errors.values()))
