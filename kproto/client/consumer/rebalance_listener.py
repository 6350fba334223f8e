"""What a member of a group reads comes and goes: in Kafka's order, and never out of a hand.

A partition that is to be given up is hidden at once. What the user has in hands of it is waited
for; then he is told, what is done is committed, and others may have it. Who decides that it comes
or goes is the member's; what is read says `assigned`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from ...wire.errors import ConfigurationError, KprotoError
from ..commits.commit_state import CommitState
from ..commits.committer import Committer, Made, Offsets
from ..commits.requests import ToCommit
from ..core.retry import LAST_ATTEMPT_S
from ..fetch.assigned_partition import AssignedPartition
from ..fetch.in_flight_records import InFlightRecords, PollTimer
from ..fetch.subscription_state import SubscriptionState
from ..metadata.cluster import TopicPartition, named
from ..metadata.cluster_view import ClusterView

__all__ = ["Callback", "Callbacks", "RebalanceListenerInvoker"]

logger = logging.getLogger("kproto.client")

#: Is told partitions, in order; a function or a coroutine function.
Callback: TypeAlias = Callable[[list[TopicPartition]], Awaitable[object] | None]


class Callbacks(NamedTuple):
    """What the user wants to be told. As in Kafka, `on_revoked` stands in for an `on_lost`."""

    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None

    def check(self) -> None:
        """Raises ConfigurationError for what cannot be called."""
        for name, each in self._asdict().items():
            if each is not None and not callable(each):
                raise ConfigurationError(f"{name} is {each!r:.80}; it must be a function, or None")


class RebalanceListenerInvoker:
    """What the member calls. `tell` is told what a callback raised, or why the member has failed.

    `is_asking` says whether somebody waits for records. One change goes on at a time, in the order
    in which the member wants them.
    """

    def __init__(
        self,
        view: ClusterView,
        assigned: SubscriptionState,
        handing_out: InFlightRecords,
        committing: CommitState,
        callbacks: Callbacks,
        *,
        auto_commit: bool,
        max_poll_interval_ms: int,
        is_asking: Callable[[], bool],
        tell: Callable[[Exception], None],
        fail: Callable[[KprotoError], None],
        hurry: Callable[[Mapping[TopicPartition, AssignedPartition]], None],
        forget: Callable[[Iterable[TopicPartition]], None],
    ) -> None:
        self._view = view
        self._assigned = assigned
        self._handing_out = handing_out
        self._committing = committing
        self._callbacks = callbacks
        self._auto_commit = auto_commit
        self._max_poll_s = max_poll_interval_ms / 1000
        self._is_asking = is_asking
        self._tell = tell
        self._fail = fail
        self._hurry = hurry
        self._forget = forget
        self.committer: Committer  # knows the member, who knows this
        self._progress = PollTimer(view.clock.monotonic())
        self._in_turn = asyncio.Lock()
        self._asked = asyncio.Event()
        self._leaving: dict[TopicPartition, AssignedPartition] = {}
        self._lost: set[TopicPartition] = set()  # of those that leave: not committed any more
        self._told: set[TopicPartition] = set()  # of those, too: on_revoked was
        self._heard: set[TopicPartition] = set()  # and that to its end
        self._cut_short: set[TopicPartition] = set()  # lost, and that word was cancelled
        self._caller: asyncio.Task[object] | None = None  # runs a callback
        self._is_over = False

    # What the member asks

    def owned_partitions(self) -> Collection[TopicPartition]:
        """What is this member's now, what it is about to give up included."""
        return [*self._assigned.states, *self._leaving]

    async def revoke(self, places: Collection[TopicPartition], until: float) -> None:
        """Give these up, while the member can still commit them: not beyond `until` at the latest.

        Returns when nothing of them is in the user's hands, or has been for too long, when he was
        told, and when what is done is committed, and what he commits himself at this moment.
        Cancelled, they are to be lost next, or given up anew: then he is told again, unless his
        callback had come to its end.
        """
        self._assigned.notice()  # nothing of a topic that was is committed of the one that is
        gone = self._assigned.remove(places)
        self._leaving |= gone
        try:
            async with self._in_turn:
                # Those of which that was begun before, and cancelled.
                left = self._leaving.items()
                gone |= {p: its for p, its in left if p in self._lost and p in places}
                self._lost.difference_update(gone)
                await self._give_up(gone, until)
        except asyncio.CancelledError:
            self._lost.update(gone)
            raise
        self._abandon(gone)
        self._forget_left(gone)

    async def on_partitions_lost(self, places: Collection[TopicPartition]) -> None:
        """These are others' already: nothing of them is handed out or committed any more.

        Cancelled, the user is told again before the next word, as what he did was cut short: when
        the member loses the rest, which may be none.
        """
        gone = self._assigned.remove(places)
        gone |= {place: state for place, state in self._leaving.items() if place in places}
        untold = [place for place in gone if place not in self._told]
        self._abandon(gone)
        self._forget_left(gone)
        self._cut_short.update(untold)
        async with self._in_turn:
            await self._tell_lost()

    async def _tell_lost(self) -> None:
        untold = frozenset(self._cut_short)
        await self._call("on_lost", untold)
        self._cut_short -= untold

    async def assign(self, places: Collection[TopicPartition]) -> None:
        """Read these, too, once the user has been told of them."""
        async with self._in_turn:
            if self._is_over:
                return
            await self._tell_lost()
            new = [place for place in places if place not in self._assigned.states]
            self._hurry(self._assigned.add(new))
            try:
                await self._call("on_assigned", new)
            finally:
                self._assigned.release(new)

    def on_member_failed(self, error: KprotoError) -> None:
        """The member cannot go on; what it had not given up is nobody's to read here."""
        self._assigned.remove(list(self._assigned.states))
        self._fail(error)

    def poll_interval_exceeded(self, now: float) -> bool:
        """Whether the user has asked for nothing for longer than max_poll_interval_ms."""
        self._look(now)
        return not self._is_over and now - self._progress.since > self._max_poll_s

    # What the consumer asks

    def asked(self) -> None:
        """What was in hand is done."""
        self._asked.set()

    def state_of(self, place: TopicPartition) -> AssignedPartition | None:
        """The partition, as long as it can be committed."""
        state = self._assigned.states.get(place)
        return state if state is not None or place in self._lost else self._leaving.get(place)

    def claim_on(self, place: TopicPartition) -> object:
        """By what it can be committed; None where it cannot."""
        state = self.state_of(place)
        return None if state is None else state.claim

    def _ours(self) -> dict[TopicPartition, AssignedPartition]:
        """All partitions that can be committed."""
        leaving = {
            place: state for place, state in self._leaving.items() if place not in self._lost
        }
        return leaving | self._assigned.states

    def done(self) -> dict[TopicPartition, ToCommit]:
        """What is done of all partitions that can be committed."""
        return self._assigned.done_of(self._ours())

    def due(self) -> dict[TopicPartition, ToCommit]:
        """What is to be committed by itself of all partitions that can be committed."""
        return self._due_of(self._ours())

    def _due_of(
        self, states: Mapping[TopicPartition, AssignedPartition]
    ) -> dict[TopicPartition, ToCommit]:
        done = self._assigned.done_of(states)
        standing = self._assigned.standing(states, done)
        due = self._committing.due(done, self._view.clock.monotonic(), standing)
        return self._committing.begun(states) | due

    def begun(self) -> dict[TopicPartition, ToCommit]:
        """Where those began that have no commit, as far as that is to be committed."""
        return self._committing.begun(self._ours())

    def settling(self, places: Iterable[TopicPartition]) -> Made:
        """See `SubscriptionState.settling`."""
        ours = self._ours()
        return self._assigned.settling({place: ours[place] for place in places if place in ours})

    @property
    def is_telling(self) -> bool:
        """Whether a callback is under way."""
        return self._caller is not None

    @property
    def is_calling(self) -> bool:
        """Whether who asks is called by a callback."""
        return self._caller is not None and self._caller is asyncio.current_task()

    async def end(self, until: float) -> None:
        """Give everything up, and take no more; what is in hand is waited for no longer.

        A callback that is under way has until then: the member ends it when it leaves.
        """
        self._is_over = True
        self._asked.set()
        gone = self._assigned.remove(list(self._assigned.states))
        self._leaving |= gone
        try:
            async with self._view.clock.timeout(max(0.0, until - self._view.clock.monotonic())):
                await self._in_turn.acquire()
        except TimeoutError:
            logger.warning(
                "%s: given up without a word or a last commit: a callback is not at its end yet",
                named(gone),
            )
            return
        try:
            await self._tell_lost()
            await self._give_up(gone, until)
        finally:
            self._in_turn.release()
        self._forget_left(gone)

    # How

    async def _give_up(
        self, gone: Mapping[TopicPartition, AssignedPartition], until: float
    ) -> None:
        await self._until_done(gone, until)
        self._told.update(gone)
        is_told = await self._call("on_revoked", gone.keys() - self._heard)
        if is_told:
            self._heard.update(gone)
        others_until = until if self._is_over else self._view.clock.monotonic() + _LEAST_S
        if is_told and self._auto_commit:
            await self._commit_last(partial(self._due_of, gone), until)
        elif self._committing.begun(gone):
            await self._commit_last(partial(self._committing.begun, gone), until)
        await self.committer.end(others_until)

    def _abandon(self, gone: Mapping[TopicPartition, AssignedPartition]) -> None:
        """Others may have these: what is handled of them counts for nothing any more."""
        if self._handing_out.handling is not None:
            claims = {state.claim for state in gone.values()}
            self._handing_out.handling.abandon(gone.values(), claims)

    def _forget_left(self, gone: Mapping[TopicPartition, AssignedPartition]) -> None:
        """Others may read and commit these now, unless they have come back meanwhile."""
        for place in gone:
            self._leaving.pop(place, None)
            self._lost.discard(place)
            self._told.discard(place)
            self._heard.discard(place)
        left = [place for place in gone if place not in self._assigned.states]
        self._committing.forget(left)
        self._forget(left)

    def _look(self, now: float) -> None:
        handling = self._handing_out.handling
        if handling is not None:
            self._progress.since = handling.oldest_started_at(now)
        else:
            self._progress.look(self._handing_out.sign, now, is_asking=self._is_asking())

    async def _until_done(
        self, gone: Mapping[TopicPartition, AssignedPartition], until: float
    ) -> None:
        """Wait until nothing of these is in hand."""
        view = self._view
        self._look(view.clock.monotonic())
        until = min(until, self._progress.since + self._max_poll_s)
        try:
            async with view.clock.timeout(max(0.0, until - view.clock.monotonic())):
                while not self._is_over and self._is_in_hand(gone):
                    self._asked.clear()
                    await self._asked.wait()
        except TimeoutError:
            logger.warning(
                "%s: given up with a record in the user's hands, who has not asked for the next "
                "within max_poll_interval_ms: it comes again",
                named(gone),
            )

    def _is_in_hand(self, gone: Mapping[TopicPartition, AssignedPartition]) -> bool:
        if self._handing_out.handling is not None:
            claims = {state.claim for state in gone.values()}
            return self._handing_out.handling.is_in_flight(claims)
        held = self._handing_out.in_hand
        if held is None:
            return False
        its = gone.get((held.state.topic, held.state.partition))
        if its is None or not isinstance(held.state, AssignedPartition):
            return False
        # Also where it was moved since: `seek` leaves the claim alone.
        return its.claim is held.state.claim and its.said < held.behind

    async def _call(self, name: str, places: Iterable[TopicPartition]) -> bool:
        """Tell the user; False where that has failed, which is told to who asks for records."""
        told = sorted(places)
        callback: Callback | None = getattr(self._callbacks, name)
        if callback is None and name == "on_lost":
            callback = self._callbacks.on_revoked
        if callback is None or not told:
            return True
        logger.info("%s: %s", name, named(told))
        self._caller = caller = asyncio.current_task()
        assert caller is not None, "the member and closing have tasks"
        before = caller.cancelling()
        try:
            answer = callback(told)
            if inspect.isawaitable(answer):
                await answer
            if caller.cancelling() > before:
                raise asyncio.CancelledError  # which the callback kept to itself
        except Exception as error:  # noqa: BLE001 - it is the user's, who is told
            error.add_note(f"raised by {name} for {named(told)}")
            if isinstance(error, StopAsyncIteration):  # which would end who reads in silence
                fault = RuntimeError(f"{name} raised StopAsyncIteration")
                fault.__cause__ = error
                self._tell(fault)
            else:
                self._tell(error)
            return False
        finally:
            self._caller = None
        return True

    async def _commit_last(self, due: Offsets, until: float) -> None:
        """Commit what is due of partitions that others get next."""
        least_s = LAST_ATTEMPT_S if self._is_over else _LEAST_S
        left_s = max(least_s, until - self._view.clock.monotonic())
        limit_ms = min(round(left_s * 1000), self._view.settings.delivery_timeout_ms)
        try:
            await self.committer.commit(due, limit_ms)
        except KprotoError as error:
            left = due()
            if left:
                logger.warning("%s: what is done was not committed: %s", named(left), error)


#: What the last commits have at the least, in seconds, also where a record was in hand for all of
#: the time: as long as others wait for it, the coordinator still takes them.
_LEAST_S: Final = 5.0
