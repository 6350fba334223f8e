"""Carries out the effects of a member's state machine, over connections and by the clock.

One task of its own, which begins steps one after the other, and heartbeats beside them. What the
partitions are read for is the `AssignmentListener`'s; the state machine decides what follows.
Each protocol has its requests: `classic.member` and `consumer.member`.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from ...clock import Timer
from ...messages.base import Response
from ...messages.describe_groups_request import DescribeGroupsRequest
from ...protocol.error_codes import error_of_code
from ...wire.errors import BrokerResponseError, ConfigurationError, KprotoError
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicInfo, TopicPartition, named
from ..metadata.cluster_view import ClusterView
from ..network.connection import BrokerConnection
from ..observing.lines import say
from .coordinator import Coordinator
from .effects import ApplyAssignment, Leave, LeaveByHeartbeat, MemberIdentity, Parted, Revoke, Step
from .group_errors import GroupRequest, Meaning
from .group_protocol import is_live_classic
from .leader import refused_topic
from .settings import GroupSettings
from .state_machine import MembershipStateMachine
from .subscription import Subscription
from .topic_watch import Absent, Watch

__all__ = ["AssignmentListener", "MemberDriver", "Tell", "because"]

M = TypeVar("M", bound=MembershipStateMachine[Any, Any])
P = ParamSpec("P")
R = TypeVar("R", bound=Response)

#: Tells the membership what came of a step, at the time that it is then.
Tell: TypeAlias = Callable[[float], object]

#: What an error means, by what was asked: the table of a kind of group.
MeaningOf: TypeAlias = Callable[[GroupRequest, KprotoError], Meaning]

_NEVER: Final = float("inf")

#: A heartbeat is waited for that part of the session, so that there is time for others.
_PART_OF_SESSION: Final = 3

#: The user is looked after that often while a record is in his hands: shares of what he may take.
_PART_OF_POLL: Final = 10

_CANCELLED: Final = "a callback of the consumer cancelled itself"


class AssignmentListener(Protocol):
    """Who reads the partitions. Of the calls that wait one is under way at a time."""

    def owned_partitions(self) -> Collection[TopicPartition]:
        """What is read now."""
        ...

    async def revoke(self, tps: Collection[TopicPartition], until: float) -> None:
        """Give these up, while still a member of the generation that they were assigned in.

        Hand out no more of them, wait until what is in hands of them is done, but not beyond
        `until` in seconds of the clock; commit, and forget them. Where the membership is lost
        meanwhile this is cancelled, and `on_partitions_lost` follows; where the member is to leave,
        the same again for all that is owned.
        """
        ...

    async def on_partitions_lost(self, tps: Collection[TopicPartition]) -> None:
        """They are gone already: hand out no more of them, commit nothing, forget them.

        Cancelled, the same again follows, of what is owned then, or `assign`: what the user was
        not told of to the end he is told of anew.
        """
        ...

    async def assign(self, tps: Collection[TopicPartition]) -> None:
        """These are added, none where a rebalance brought none: begin to read them."""
        ...

    def on_member_failed(self, error: KprotoError) -> None:
        """The member is at its end, out of the group if that could be, and reads nothing."""
        ...

    def poll_interval_exceeded(self, now: float) -> bool:
        """Whether something is in hands, or nobody asked, for longer than max_poll_interval_ms."""
        ...


class MemberDriver(ABC, Generic[M]):
    """A member of a group. `start` has it join once it has subscribed.

    One that `looks` at its group before it joins ends where that is of the other kind.

    Call `leave` to give up what it reads and to leave in order, and `close` in any case: then no
    task and no connection of it is left.
    """

    def __init__(
        self,
        view: ClusterView,
        settings: GroupSettings,
        owner: AssignmentListener,
        membership: M,
        *,
        looks: bool,
    ) -> None:
        self.settings = settings
        self._view = view
        self._clock = view.clock
        self._reader = owner
        self.looks = looks
        self._membership = membership
        self._watch = Watch()
        self._absent = Absent(view.settings.topic_timeout_ms / 1000)
        self._counts = view.observer.group(settings.group_id)
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._timer: Timer | None = None
        self._step: asyncio.Task[Tell] | None = None
        self._step_turn = -1
        self._beat: asyncio.Task[Tell] | None = None
        self._look: asyncio.Task[Tell] | None = None
        self._looks_at = _NEVER
        self._is_untold = False  # a loss, whose word was cut short
        self._coordinator = Coordinator(view, settings, self._coordinator_moved)

    # What others ask and say

    @property
    def identity(self) -> MemberIdentity | None:
        """Who commits offsets now; None while no commit would be taken."""
        return self._membership.identity(self._clock.monotonic())

    @property
    def holds_until(self) -> float:
        """Until when what is read is surely this member's, in seconds of the clock.

        Whoever hands out later than that, as the event loop stood still, may not be the only one.
        """
        return self._membership.holds_until

    def start(self) -> None:
        """Join, if something is subscribed to."""
        self._view.home.check()
        if self._task is not None:
            raise ConfigurationError("the member was started already")
        self._task = asyncio.create_task(self._run())

    def subscribe(self, subscription: Subscription) -> None:
        """Want other topics from now on."""
        self._membership.subscribe(subscription, self._clock.monotonic())
        self._changed.set()

    def unsubscribe(self) -> None:
        """Want none: give up what is read, and leave unless the member is static."""
        self._membership.subscribe(None, self._clock.monotonic())
        self._changed.set()

    def rejoin(self, reason: str) -> None:
        """Have the group agree anew (KIP-800 for the reason, which the broker logs)."""
        self._membership.rejoin(reason, self._clock.monotonic())
        self._changed.set()

    def topics_changed(self) -> None:
        """Metadata has come that may tell of other topics or partitions."""
        self._changed.set()

    def asked(self) -> None:
        """Somebody asks for records: a member that leaves as its user was too slow comes back."""
        if self._membership.waits_to_be_asked:
            self._membership.asked(self._clock.monotonic())
            self._changed.set()

    def holds(self, place: TopicPartition, topic_id: Uuid) -> bool:
        """Whether a partition is assigned by that id of its topic."""
        return self._membership.holds(place, topic_id)

    def commit_refused(self, error: BrokerResponseError, identity: MemberIdentity) -> None:
        """An OffsetCommit of `identity` was answered so."""
        self._membership.commit_refused(error, identity, self._clock.monotonic())
        self._changed.set()

    async def leave(self, leave: bool, reason: str = "the consumer is closed") -> None:
        """Give up what is read, and tell the coordinator if it is to `leave`; ends the member.

        What is in hands is not waited for: who closes says first what is done. The coordinator
        has `leave_timeout_ms`. Who closes again, as the first time was cut short, has it told then.
        """
        over = self._membership.is_over or self._membership.error is not None
        if self._task is None or (self._task.done() and over):
            return
        if self._step is not None and self._step is asyncio.current_task():
            raise ConfigurationError("a consumer cannot be closed from within its own callbacks")
        now = self._clock.monotonic()
        self._membership.part(reason, now, leaves=leave, ends=True, until=now)
        self._changed.set()
        if self._task.done():
            self._task = asyncio.create_task(self._run())
        await asyncio.wait([self._task])

    async def close(self) -> None:
        """End at once, whatever is under way; the coordinator is told nothing.

        Within a callback of its own the member ends with that, and is not waited for.
        """
        if self._task is not None:
            self._task.cancel()
            if self._step is not None and self._step is asyncio.current_task():
                return
            await asyncio.wait([self._task])
        await self._coordinator.release()

    # The task

    async def _run(self) -> None:
        try:
            while True:
                self._changed.clear()
                self._take_results()
                self._keep_time(self._clock.monotonic())
                self._say_news()
                if self._membership.is_over and self._step is None:
                    break
                self._begin(self._clock.monotonic())
                if not self._changed.is_set():
                    self._wake_at(self._next_at())
                    await self._changed.wait()
        except Exception as fault:  # noqa: BLE001 - who waits for a member that is no more is told
            what = f"the member of group {self.settings.group_id!r} failed"
            self._membership.error = because(what, fault)
        finally:
            await self._end()
        if self._membership.error is not None:
            self._reader.on_member_failed(self._membership.error)

    async def _end(self) -> None:
        """Leave no task, timer or connection."""
        if self._timer is not None:
            self._timer.cancel()
        lanes = [task for task in (self._step, self._beat, self._look) if task is not None]
        for task in lanes:
            task.cancel()
        try:
            await asyncio.gather(*lanes, return_exceptions=True)
        finally:
            self._step = self._beat = self._look = None
            await self._coordinator.release()

    def _wake_at(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if moment != _NEVER:
            seconds = max(0.0, moment - self._clock.monotonic())
            self._timer = self._clock.call_later(seconds, self._changed.set)

    def _next_at(self) -> float:
        """When to look again, if nothing happens before."""
        now = self._clock.monotonic()
        moments = [self._membership.next_at(now)]
        if not self._membership.is_out:
            patience_ms = min(
                self.settings.heartbeat_interval_ms,
                max(1, self.settings.max_poll_interval_ms // _PART_OF_POLL),
            )
            moments.append(now + patience_ms / 1000)
        if self._look is None and self._membership.is_reading:
            moments.append(self._looks_at)
        return min(moments)

    def _keep_time(self, now: float) -> None:
        """See what has become due by itself."""
        membership = self._membership
        membership.tick(now)
        if membership.is_out:
            return
        if self._reader.poll_interval_exceeded(now) and membership.late(now):
            self._counts.late += 1
        if membership.is_reading:
            change = self._watch.differs(self._view.cluster.topics)
            if change is not None:
                self._topics_differ(change, now)

    def _say_news(self) -> None:
        news, self._membership.news = self._membership.news, []
        for level, text, values in news:
            say(level, text, *values)

    def _say(self, text: str, *values: object, level: int = logging.INFO) -> None:
        say(level, "group %s: " + text, self.settings.group_id, *values)

    # What goes on side by side

    def _begin(self, now: float) -> None:
        """Begin what is due, and give up a step that has become pointless."""
        membership = self._membership
        if self._step is not None:
            if self._step_turn != membership.turn and not self._step.cancelling():
                self._abandon_step()  # once, so that a callback can clean up behind itself
        else:
            step = membership.step(now, self._reader.owned_partitions())
            if step is not None:
                self._step_turn = membership.turn
                self._step = self._started(self._do, step)
        if self._beat is None:
            beat = self._due_heartbeat(now)
            if beat is not None:
                self._beat = self._started(beat)
        if self._look is None and membership.is_reading and now >= self._looks_at:
            self._look = self._started(self._look_at_topics)

    def _started(
        self, work: Callable[P, Coroutine[Any, Any, Tell]], *args: P.args, **named: P.kwargs
    ) -> asyncio.Task[Tell]:
        async def told() -> Tell:
            try:
                return await work(*args, **named)
            finally:
                self._changed.set()  # so that `_run` has its turn next

        task = asyncio.create_task(told())
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Tell]) -> None:
        if task.cancelled():  # perhaps before it began
            self._changed.set()

    def _abandon_step(self) -> None:
        """Nobody wants to know what comes of it; the broker forgets what it holds of it."""
        assert self._step is not None
        self._step.cancel()
        self._coordinator.give_up()

    def _take_results(self) -> None:
        """Tell the membership what came of what was under way."""
        step, beat, look = self._step, self._beat, self._look
        if beat is not None and beat.done():
            self._beat = None
            beat.result()(self._clock.monotonic())
        if look is not None and look.done():
            self._look = None
            look.result()(self._clock.monotonic())
        if step is not None and step.done():
            self._step = None
            if self._step_turn != self._membership.turn:
                if not step.cancelled():
                    step.exception()  # it counts for nothing any more
                return
            self._take_step(step)

    def _take_step(self, step: asyncio.Task[Tell]) -> None:
        now = self._clock.monotonic()
        try:
            tell = step.result()
        except KprotoError as error:
            self._heed(self._membership.failed(error, now))
        except asyncio.CancelledError as cancelled:  # not by the member: the turn is the same
            self._membership.fail(because(_CANCELLED, cancelled), now, leaves=True)
        else:
            tell(now)

    def _heed(self, meaning: Meaning | None) -> None:
        if meaning is Meaning.FIND_COORDINATOR:
            self._coordinator.forget()

    def _coordinator_moved(self) -> None:
        """Another broker coordinates than the one that holds a request."""

    # What each kind of group has

    async def _do(self, step: Step) -> Tell:
        """Carry out a step."""
        match step:
            case Revoke():
                return await self._give_up(step)
            case ApplyAssignment():
                return await self._take_on(step)
            case Leave() | LeaveByHeartbeat():
                return await self._tell_that_it_leaves(step)
        return await self._ask(step)

    @abstractmethod
    async def _ask(self, step: Any) -> Tell:
        """Carry out a step that only this kind has."""

    @abstractmethod
    def _due_heartbeat(self, now: float) -> Callable[[], Coroutine[Any, Any, Tell]] | None:
        """What sends the heartbeat that is due."""

    @abstractmethod
    def _topics_differ(self, change: str, now: float) -> None:
        """The topics that are watched have changed."""

    @abstractmethod
    async def _leave_once(self, step: Any) -> None:
        """Tell the coordinator that the member leaves. Raises what another attempt may mend."""

    def _heed_leaving(self, codes: Iterable[int], meaning_of: MeaningOf) -> None:
        """What leaving was answered. Raises what another attempt may mend, and a lack of rights.

        Who is no member any more has left.
        """
        for code in filter(None, codes):
            error = error_of_code(code, f"leaving group {self.settings.group_id!r}")
            meaning = meaning_of(GroupRequest.LEAVE, error)
            self._heed(meaning)
            may_not = error.name == "GROUP_AUTHORIZATION_FAILED"
            if may_not or meaning in (Meaning.RETRY, Meaning.FIND_COORDINATOR):
                raise error

    def _heartbeat_timeout_ms(self, interval_ms: int, session_ms: int) -> int:
        """How long a heartbeat is waited for: there is to be time for others in the session."""
        in_session_ms = session_ms // _PART_OF_SESSION
        return min(self._view.settings.request_timeout_ms, max(interval_ms, in_session_ms))

    # Steps that both have

    async def _is_live_classic(self, connection: BrokerConnection) -> bool:
        """Whether the group is a classic one with members, as its coordinator says now."""
        group_id = self.settings.group_id
        answer = await connection.request(DescribeGroupsRequest(groups=[group_id]))
        return is_live_classic(answer, group_id)

    async def _give_up(self, step: Revoke) -> Tell:
        fault: KprotoError | None = None
        if step.lost and (step.places or self._is_untold):
            if step.places:
                self._say("loses %s", named(step.places))
            self._counts.lost_partitions += len(step.places)
            self._is_untold = True
            fault = await self._raised(self._reader.on_partitions_lost(step.places))
            self._is_untold = False
        elif step.places:
            self._say("gives up %s", named(step.places))
            fault = await self._raised(self._reader.revoke(step.places, step.until))

        def tell(now: float) -> None:
            if fault is not None:
                self._membership.fail(fault, now, leaves=True)
            if fault is None or step.lost:
                self._membership.given_up(now)

        return tell

    async def _take_on(self, step: ApplyAssignment) -> Tell:
        fault: KprotoError | None = None
        if step.revoked:
            self._say("gives up %s, which others get", named(step.revoked))
            fault = await self._raised(self._reader.revoke(step.revoked, step.until))
        if fault is None:
            self._say("takes on %s", named(step.added) or "no partitions")
            self._is_untold = False  # it tells before what comes
            fault = await self._raised(self._reader.assign(step.added))

        def tell(now: float) -> None:
            if fault is not None:
                self._membership.fail(fault, now, leaves=True)
                return
            self._counts.rebalances += 1
            if self._watch.topics == frozenset() and self._unseen:
                self._looks_at = now  # the leader has no right of this member's to go by
            self._membership.taken_on(step, now)

        return tell

    async def _raised(self, call: Awaitable[None]) -> KprotoError | None:
        """What a call of the reader raised: it is at fault then, and the member cannot go on."""
        try:
            await call
        except asyncio.CancelledError as cancelled:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return because(_CANCELLED, cancelled)
        except KprotoError as error:
            return error
        except Exception as fault:  # noqa: BLE001 - whatever a user's callback raises
            return because("a callback of the consumer failed", fault)
        return None

    async def _topics_wanted(self, subscription: Subscription) -> frozenset[str]:
        """The topics to join for; what is not known of them is asked for meanwhile."""
        topics: Iterable[TopicInfo] = ()
        if subscription.pattern is not None:
            topics = await self._view.refresh()
            self._plan_look()
        wanted = subscription.among(topics)
        if self._look is None and not all(map(self._view.is_fresh, wanted)):
            self._look = self._started(self._know, wanted)
        return wanted

    async def _know(self, names: Collection[str]) -> Tell:
        """Ask for topics while the member joins; who needs them sooner asks else."""
        found: Collection[TopicInfo] = []
        with suppress(KprotoError):
            found = await self._view.refresh(names)

        def tell(now: float) -> None:
            self._say_absent(found, now)
            self._looks_at = min(self._looks_at, self._absent.looks_at)

        return tell

    def _say_absent(self, found: Iterable[TopicInfo], now: float) -> None:
        subscription = self._membership.subscription
        wanted = frozenset[str]() if subscription is None else subscription.topics
        for topic in self._absent.heard(wanted, found, self._view.cluster.topics, now):
            text = "topic %s, which it subscribes to, is not there: it is waited for"
            self._say(text, topic, level=logging.WARNING)

    async def _tell_that_it_leaves(self, step: Parted) -> Tell:
        seconds = max(0.0, step.until - self._clock.monotonic())
        try:
            async with self._clock.timeout(seconds):
                await self._view.retrying(lambda: self._leave_once(step))
        except (KprotoError, TimeoutError) as error:
            why = error if str(error) else "nobody answered"
            self._say("could not tell that it leaves: %s", why, level=logging.WARNING)
        else:
            self._say("has left: %s", step.reason)
        return self._membership.left

    async def _look_at_topics(self) -> Tell:
        """Ask for the topics that are watched; errors are for the next time."""
        names = self._watch.topics
        missing = self._watch.missing
        asked = missing if missing and names is not None else names
        if asked == frozenset():
            asked = self._unseen
        try:
            found = await self._view.refresh(asked) if asked is None or asked else []
        except KprotoError:
            found = []

        def tell(now: float) -> None:
            self._say_absent(found, now)
            self._plan_look()
            subscription = self._membership.subscription
            if subscription is not None:
                refused = refused_topic(found, subscription.topics)
                if refused is not None:
                    self._membership.fail(refused, now, leaves=True)
            if found:
                change = self._watch.told(found, whole=asked is None)
                if change is not None:
                    self._topics_differ(change, now)

        return tell

    @property
    def _unseen(self) -> frozenset[str]:
        """What it subscribes to by name and knows nothing of: perhaps it may not."""
        subscription = self._membership.subscription
        wanted = frozenset[str]() if subscription is None else subscription.topics
        return wanted - self._view.cluster.topics.keys()

    def _plan_look(self) -> None:
        """Look at the topics when metadata has grown old; soon where some are not there yet."""
        settings = self._view.settings
        age_ms = settings.retry_backoff_max_ms if self._watch.missing else 0
        seconds = (age_ms or settings.metadata_max_age_ms) / 1000
        now = self._clock.monotonic()
        soon = max(self._absent.looks_at, now + settings.retry_backoff_max_ms / 1000)
        self._looks_at = min(now + seconds, soon)


def because(what: str, fault: BaseException) -> KprotoError:
    """The error of a fault that was the user's, or the client's own."""
    error = KprotoError(f"{what}: {fault!r}")
    error.__cause__ = fault
    return error
