"""`GroupConsumer`: reads what its group gives it, or partitions by hand with commits of a group.

Ties together who reads (`reader`, `running_reader`), what comes and goes (`ownership`, `assigned`),
commits (`committer`, `auto_commits`), and the member of the group, who knows no records.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self, TypeAlias, TypeVar

from ...wire.checks import check_whole_number
from ...wire.errors import BrokerResponseError, ConfigurationError, KprotoError
from ...wire.uuid import Uuid
from ..commits.commit_state import CommitState
from ..commits.committer import Committer, Offsets
from ..commits.errors import CommitFailedError
from ..commits.requests import CommittedOffset, Identity, ToCommit
from ..core.retry import LAST_ATTEMPT_S
from ..fetch.assigned_partition import AssignedPartition
from ..fetch.fetch_buffer import (
    RawBatchIteration,
    RecordIteration,
    RecordListIteration,
    ValueIteration,
)
from ..fetch.fetcher import FetchOptions
from ..fetch.in_flight_fetches import InFlightFetches
from ..fetch.in_flight_records import InFlightRecords
from ..fetch.list_offsets import OffsetWanted, is_no_such, list_offsets, those_there
from ..fetch.partition_state import NOT_FOUND
from ..fetch.start_options import LAST_OFFSET, GroupStart, checked_group_start
from ..fetch.start_positions import find_places
from ..fetch.subscription_state import SubscriptionState
from ..groups.effects import MemberIdentity
from ..groups.ignored_settings import BY_HAND, unused
from ..groups.settings import GroupSettings
from ..groups.subscription import Subscription, TopicPattern
from ..metadata.cluster import TopicPartition, named
from ..metadata.cluster_view import ClusterView
from .auto_commit import AutoCommits
from .group_topics import wanted_by_a_group, with_topics
from .processing_stream import MakeOutlet, ProcessingStream
from .rebalance_listener import Callbacks, RebalanceListenerInvoker
from .user_offsets import HandedOut, checked_place, commits_of

__all__ = ["GroupConsumer", "MakeMember", "Member"]

T = TypeVar("T")

logger = logging.getLogger("kproto.client")

_LONG_AGO: Final = float("-inf")

#: Handlers that may have held up the event loop for so long, in seconds, are followed by some turns
#: of it: a heartbeat and its answer take that many.
_LONG_S: Final = 0.02
_TURNS: Final = 10

#: The member is waited for in steps of so many seconds, where it has to have its turn.
_TURN_S: Final = 0.001


class Member(Protocol):
    """The member of the group, as reading sees it: `groups.member` has it."""

    @property
    def identity(self) -> Identity | None: ...
    @property
    def holds_until(self) -> float: ...
    def start(self) -> None: ...
    async def leave(self, leave: bool, reason: str) -> None: ...
    async def close(self) -> None: ...
    def subscribe(self, subscription: Subscription) -> None: ...
    def unsubscribe(self) -> None: ...
    def rejoin(self, reason: str) -> None: ...
    def topics_changed(self) -> None: ...
    def asked(self) -> None: ...
    def holds(self, place: TopicPartition, topic_id: Uuid) -> bool: ...
    def commit_refused(self, error: BrokerResponseError, identity: Any) -> None: ...


#: Makes the member of a group with these settings, and of this owner.
MakeMember: TypeAlias = Callable[[ClusterView, GroupSettings, RebalanceListenerInvoker], Member]


class GroupConsumer(ProcessingStream):
    """Yields the records that are this member's to read; made by `Client.consumer`.

    To be used with `async with`: iterations as those of `Consumer`, and without an end. A record is
    done when the next is asked for, or when the block ends without an exception; so is a list or a
    batch as a whole. What is done is committed: by itself with `auto_commit`, else by `commit`.

    Where partitions come and go, `on_assigned`, `on_revoked` and `on_lost` are told; what they
    raise is raised to who asks for records. Raises what `Consumer` raises, and what makes the
    member fail.
    """

    def __init__(
        self,
        view: ClusterView,
        topics: str | Iterable[str] | re.Pattern[str] | TopicPattern | Iterable[TopicPartition],
        settings: GroupSettings,
        make_member: MakeMember,
        *,
        start: GroupStart,
        callbacks: Callbacks,
        max_bytes: int,
        max_wait_ms: int,
        read_committed: bool,
        make_outlet: MakeOutlet | None = None,
    ) -> None:
        checked_group_start(start)
        callbacks.check()
        fetch_options = FetchOptions(
            max_bytes,
            max_wait_ms,
            read_committed,
            prefers_end=start == "latest",
            is_exact=start == "none",
        )
        fetch_options.check()
        self._subscription, self._by_hand = wanted_by_a_group(topics)
        self._too: frozenset[str] = frozenset()  # topics that `run` has records come by, too
        self._settings = settings
        self._group_id = settings.group_id
        self._is_auto = settings.auto_commit
        self._make_outlet = make_outlet
        self._read_committed = read_committed
        self._failure: KprotoError | None = None
        self._has_begun = False
        self._has_left = False
        owner = object()
        under_way = InFlightFetches()
        handing_out = InFlightRecords(view.observer.calls.on_records)
        assigned = SubscriptionState(
            view, settings.group_id, start, read_committed, under_way, handing_out
        )
        super().__init__(view, fetch_options, assigned, under_way, handing_out, owner)
        assigned.is_shared = self._subscription is not None
        self._assigned = assigned
        self._in_hand = handing_out
        self._committing = CommitState(settings.auto_commit_interval_ms)
        self._ownership = RebalanceListenerInvoker(
            view,
            assigned,
            handing_out,
            self._committing,
            callbacks,
            auto_commit=settings.auto_commit,
            max_poll_interval_ms=settings.max_poll_interval_ms,
            is_asking=lambda: self._is_asked,
            tell=self._tell,
            fail=self._fail,
            hurry=self._fetching.hurry,
            forget=self._fetching.forget,
        )
        assigned.on_committed = lambda found: self._committing.known(found, view.clock.monotonic())
        assigned.on_anew = lambda place: self._committing.forget([place])
        self._held_up_s = 0.0
        self._member: Member | None = None
        if self._subscription is not None:
            self._member = make_member(view, settings, self._ownership)
            self._member.subscribe(self._subscription)
            assigned.on_new_partitions = self._member.topics_changed
            assigned.identity = self._asks_as
            assigned.begins_anew = lambda: self._asks_as() is None
            assigned.holds = self._member.holds
            assigned.on_refused = self._member.commit_refused
        self._committer = Committer(
            view,
            settings.group_id,
            self._committing,
            self._ownership.claim_on,
            self._member,
            assigned.tell_less,
        )
        self._ownership.committer = self._committer
        self._auto_commits = AutoCommits(
            view,
            self._committing,
            self._ownership,
            self._committer,
            self._member,
            auto_commit=settings.auto_commit,
            interval_ms=settings.auto_commit_interval_ms,
            tell=self._tell,
        )
        assigned.on_passing = self._auto_commits.passing

    # The block

    async def __aenter__(self) -> Self:
        self._view.home.check()
        if self._has_begun or self._closed:
            was = "closed" if self._closed else "begun"
            raise ConfigurationError(f"the consumer was {was} already; make another one")
        self._has_begun = True
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise
        return self

    async def _start(self) -> None:
        view = self._view
        self._loop = asyncio.get_running_loop()
        if self._by_hand:
            by_hand = self._by_hand
            for sentence in unused(self._settings.given, BY_HAND, "here"):
                logger.warning("group %s: %s", self._group_id, sentence)
            await view.retrying(lambda: find_places(view, by_hand, _LONG_AGO), responses=False)
            await self._ownership.assign(by_hand)
        if self._member is not None:
            self._member.start()
        self._auto_commits.begin()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            if not self._closed:
                self._in_hand.asked(self._view.clock.monotonic())  # what was handed out is done
            await self.close()
        else:
            await self._close(None, self._view.settings.error_flush_ms)
            if self._fault is not None:
                logger.warning("nobody was told: %s", self._fault)

    async def close(self, leave: bool | None = None) -> None:
        """Commit what is done, with `auto_commit`; give the partitions up, and leave the group.

        A record in hand is not done. `leave` decides whether the group is told to go on without
        this member at once: by default a dynamic member leaves, and a static one does not, as it
        may be back before its session is over. Raises what a callback raised and nobody was told.
        """
        if leave is not None and not isinstance(leave, bool):
            raise ConfigurationError(f"leave is {leave!r:.80}; it is True, False or None")
        await self._close(leave, self._view.settings.delivery_timeout_ms)
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    async def _close(self, leave: bool | None, limit_ms: int) -> None:
        self._view.home.check()
        self._check_no_callback("close")
        await self._end_run()
        self._closed = True
        self._assigned.changed()
        view = self._view
        until = view.clock.monotonic() + limit_ms / 1000
        try:
            await self._auto_commits.end()
            await self._ownership.end(until)
            member = self._member
            if member is not None and self._has_begun and not self._has_left:
                await self._leave(member, leave, until)
                self._has_left = True
        finally:
            async with AsyncExitStack() as ends:  # each of them, also where one is cancelled
                ends.push_async_callback(self._stop)
                ends.callback(self._fetching.high_watermarks.clear)
                ends.push_async_callback(self._committer.close)
                if self._member is not None:
                    ends.push_async_callback(self._member.close)

    async def _leave(self, member: Member, leave: bool | None, until: float) -> None:
        until = max(until, self._view.clock.monotonic() + LAST_ATTEMPT_S)
        try:
            leaves = self._settings.leaves if leave is None else leave
            limit_ms = round((until - self._view.clock.monotonic()) * 1000)
            leaving = member.leave(leaves, "the consumer is closed")
            await self._view.by(until, leaving, limit_ms)
        except KprotoError as error:
            logger.warning("group %s could not be left: %s", self._settings.group_id, error)

    # Iterations

    def __aiter__(self) -> RecordIteration:
        self._check_begun("iterate over")
        return super().__aiter__()

    def record_lists(self) -> RecordListIteration:
        self._check_begun("iterate over")
        return super().record_lists()

    def values(self) -> ValueIteration:
        self._check_begun("iterate over")
        return super().values()

    def raw_batches(self) -> RawBatchIteration:
        self._check_begun("iterate over")
        return super().raw_batches()

    async def _begin(self) -> None:
        self._check_may_ask("ask for records of")
        took = self._in_hand.asked(self._view.clock.monotonic())
        self._ownership.asked()
        self._is_back()
        if self._run is None:
            self._want_too(frozenset())
        self._held_up_s += took
        if self._held_up_s > _LONG_S:
            self._held_up_s = 0.0
            for _ in range(_TURNS):
                await asyncio.sleep(0)
        await self._until_in_session()

    def _commit_soon(self) -> None:
        self._auto_commits.hurry()

    def _is_back(self) -> None:
        if self._member is not None and not self._has_lost:
            self._member.asked()

    async def _turn(self) -> None:
        await super()._turn()
        await self._until_in_session()  # what came may have come before the machine was asleep

    async def _until_in_session(self) -> None:
        while self._is_out_of_session():
            await self._view.clock.sleep(_TURN_S)

    def _is_out_of_session(self) -> bool:
        """Whether others may read what is assigned, as the loop or the machine stood still.

        The member loses it as soon as it has its turn.
        """
        if self._member is None or self._closed or self._failure is not None:
            return False
        now = self._view.clock.monotonic()
        return bool(self._assigned.states) and now >= self._member.holds_until

    def _is_over(self) -> bool:
        if self._failure is not None:
            raise self._failure.with_traceback(None)  # it is raised at each ask
        return False

    def _fail(self, error: KprotoError) -> None:
        self._failure = error
        self._assigned.changed()

    def _tell(self, error: Exception) -> None:
        if self._fault is None:
            self._fault = error
            self._told_at = _LONG_AGO
        else:
            logger.warning("nobody was told: %s", error)
        self._assigned.changed()

    # Subscribing

    def subscribe(self, topics: str | Iterable[str] | re.Pattern[str] | TopicPattern) -> None:
        """Read these topics in place of those before; a pattern is for whole names.

        The group hands its partitions out anew. Raises ConfigurationError, also where `run` sends
        on to what it would read then.
        """
        subscription, _ = wanted_by_a_group(topics)
        if subscription is None:
            raise ConfigurationError("topics are subscribed to; give partitions to Client.consumer")
        if self._run is not None:
            self._check_topics(self._run.settings, subscription)
        self._joined("subscribe").subscribe(with_topics(subscription, self._too))
        self._subscription = subscription

    def _want_too(self, topics: frozenset[str]) -> None:
        if topics != self._too and self._member is not None and self._subscription is not None:
            self._member.subscribe(with_topics(self._subscription, topics))
        self._too = self._assigned.from_start = topics

    def _reads(self) -> tuple[Subscription | None, list[TopicPartition]]:
        return self._subscription, self._by_hand

    def unsubscribe(self) -> None:
        """Give up all partitions until `subscribe` is called; a dynamic member leaves the group."""
        self._joined("unsubscribe").unsubscribe()
        self._subscription = None

    def enforce_rebalance(self, reason: str = "") -> None:
        """Have the group hand out its partitions anew; brokers log the `reason` (KIP-800).

        Raises ConfigurationError.
        """
        if not isinstance(reason, str):
            raise ConfigurationError(f"reason is {reason!r:.80}; it must be a str")
        self._joined("rebalance").rejoin(reason or "the user wants it")

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now."""
        return frozenset(self._assigned.states)

    # Where reading goes on

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record of a partition; looked for where it is not known yet.

        Raises ConfigurationError for what is not assigned, NoCommittedOffsetError with `start`
        "none", BrokerResponseError.
        """
        (partition,) = self._checked([partition])
        state = self._state_of(partition)
        await self._place([partition])
        if self._state_of(partition) is not state:
            return await self.position(partition)
        return self._in_hand.position_of(state)

    async def _place(self, places: Collection[TopicPartition]) -> None:
        """Find the positions of these, as far as they stay assigned."""
        states = {place: self._state_of(place) for place in places}
        if any(state.awaits is not None for state in states.values()):
            await self._assigned.find_beginnings(states)
        wanted: dict[TopicPartition, OffsetWanted] = {}
        for place, state in states.items():
            if state.lost_to is not None and not state.is_placed:
                wanted[place] = state.lost_to
        if wanted:
            found = await self._list_offsets(wanted)
            for place, offset in found.items():
                state = states[place]
                if state.lost_to is not None and not state.is_placed:
                    state.begin_at(offset)

    def seek(self, partition: TopicPartition, where: int | Literal["earliest", "latest"]) -> None:
        """Go on with a partition at an offset, or at the start or the end of its log.

        What has come of it is dropped; the next commit is of what is done from there on. Raises
        ConfigurationError for what is not assigned, or no offset.
        """
        self._view.home.check()
        if isinstance(where, str) and where not in ("earliest", "latest"):
            raise ConfigurationError(
                f"where to seek is {where!r:.80}; a name is earliest or latest"
            )
        if not isinstance(where, str):
            check_whole_number("where to seek", where, 0, LAST_OFFSET)
        partition = checked_place(partition)
        self._state_of(partition)
        state = self._assigned.replace(partition)
        if isinstance(where, int):
            state.begin_at(where)
        else:
            state.begin_by(where)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out and fetch nothing of these until they are resumed; they stay assigned.

        A rebalance that takes one away forgets that, also where it brings it back: `on_assigned`
        can pause it again.
        """
        self._assigned.pause(self._checked(partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with partitions that were paused."""
        self._assigned.resume(self._checked(partitions))

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return frozenset(self._assigned.paused)

    async def lag(self) -> dict[TopicPartition, int]:
        """How many offsets each partition has that were not handed out yet, as brokers say now.

        With `read_committed` up to the last stable offset. Partitions of a topic that is gone, or
        was made anew with fewer, are left out. Raises what `position` raises.
        """
        self._view.home.check()
        places = list(self._assigned.states)
        try:
            return await self._lag_of(places)
        except BrokerResponseError as error:
            there = await those_there(self._view, places) if is_no_such(error) else places
            if len(there) == len(places):
                raise
        return await self._lag_of([place for place in there if place in self._assigned.states])

    async def _lag_of(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        if not places:
            return {}
        await self._place(places)
        ends = await self._list_offsets(dict.fromkeys(places, "latest"))
        found = {}
        for place, state in self._assigned.states.items():
            if place in ends and state.is_placed:
                found[place] = max(0, ends[place] - self._in_hand.position_of(state))
        return found

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        """The offset of the first record since a time in ms; None where no record is that late.

        Raises BrokerResponseError.
        """
        for place, time_ms in times.items():
            check_whole_number(f"the time of {place!r}", time_ms, 0, LAST_OFFSET)
        times = {checked_place(place): time_ms for place, time_ms in times.items()}
        found = await self._list_offsets(times) if times else {}
        return {place: None if offset == NOT_FOUND else offset for place, offset in found.items()}

    async def _list_offsets(
        self, wanted: Mapping[TopicPartition, OffsetWanted]
    ) -> dict[TopicPartition, int]:
        return await list_offsets(self._view, wanted, read_committed=self._read_committed)

    # Commits

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int] | HandedOut | None = None,
        metadata: str = "",
    ) -> None:
        """Commit what is done; or `offsets`, each that of the record to be read next.

        What is in hand is not done yet: give it, a record or a list, and it is. Later commits wait
        for earlier ones. Errors that time mends are waited out for `delivery_timeout_ms`. Raises
        CommitFailedError where the partitions are not this member's to commit now,
        BrokerResponseError for what the broker refuses, RequestTimeoutError where nobody answered,
        ConfigurationError for what is no offset.
        """
        self._view.home.check()
        self._check_begun("commit by")
        if self._closed and not self._ownership.is_telling:
            raise ConfigurationError("the consumer is closed; it committed what was done")
        if self._failure is not None:
            raise CommitFailedError(f"the member has failed: {self._failure}") from self._failure
        if offsets is not None and self._run is not None:
            raise ConfigurationError(
                "run() knows what is done, and commits that: commit() has it do so at once"
            )
        if not isinstance(metadata, str):
            raise ConfigurationError(f"metadata is {metadata!r:.80}; it must be a str")
        limit_ms = self._view.settings.delivery_timeout_ms
        if offsets is None:
            due = self._all_done(metadata) if metadata else self._all_due
            await self._committer.commit(due, limit_ms)
        else:
            state_of, position_of = self._ownership.state_of, self._in_hand.position_of
            given = commits_of(offsets, metadata, state_of, position_of)
            self._ownership.asked()  # who waits for what is in hand looks again
            # Others may have them, and have committed more, when it is the turn of this commit.
            claims = {place: self._ownership.claim_on(place) for place in given}
            made = self._ownership.settling(given)
            await self._committer.commit(partial(dict, given), limit_ms, claims, made)

    def _all_due(self) -> Mapping[TopicPartition, ToCommit]:
        return self._committing.due(self._ownership.done(), self._view.clock.monotonic())

    def _all_done(self, metadata: str) -> Offsets:
        return lambda: {
            place: done._replace(metadata=metadata)
            for place, done in self._ownership.done().items()
        }

    async def committed(
        self, *partitions: TopicPartition
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """What the group has committed of these, without any of those that are read now.

        None where nothing was, or of a topic of that name that was deleted. Raises
        BrokerResponseError.
        """
        self._view.home.check()
        if partitions:
            return await self._assigned.committed(dict.fromkeys(map(checked_place, partitions)))
        return await self._assigned.committed(self._assigned.states)

    # Checks

    def _state_of(self, place: TopicPartition) -> AssignedPartition:
        state = self._assigned.states.get(place)
        if state is None:
            mine = named(self._assigned.states) or "nothing"
            raise ConfigurationError(
                f"{place!r} is not assigned to this consumer now, which reads {mine}"
            )
        return state

    def _asks_as(self) -> Identity | None:
        """Who asks for commits: a member that has an epoch says so (KIP-848)."""
        identity = None if self._member is None else self._member.identity
        return identity if isinstance(identity, MemberIdentity) and identity.has_epoch else None

    def _checked(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """These, which are assigned. Raises ConfigurationError."""
        self._view.home.check()
        places = [checked_place(place) for place in partitions]
        for place in places:
            self._state_of(place)
        return places

    def _joined(self, what: str) -> Member:
        self._view.home.check()
        if self._member is None:
            raise ConfigurationError(
                f"who reads partitions that were given by hand cannot {what}: there is no member"
            )
        if self._closed:
            raise ConfigurationError("the consumer is closed; make another one")
        return self._member
