"""`Member`: carries out what `membership` says, over connections and by the clock.

One task of its own, which begins steps one after the other, and heartbeats beside them. What the
partitions are read for is the `Owner`'s; what follows from what is decided in `membership`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, ParamSpec, Protocol, TypeAlias, TypeVar

from ...clock import Timer
from ...messages.base import Request, Response
from ...messages.heartbeat_request import HeartbeatRequest
from ...messages.leave_group_request import LeaveGroupRequest
from ...protocol.error_codes import error_of_code
from ...wire.errors import BrokerResponseError, ConfigurationError, KprotoError
from ..cluster.metadata import TopicInfo, TopicPartition, named
from ..cluster.view import ClusterView
from ..observing.lines import say
from .coordinator import Coordinator
from .group_errors import Asked, Meaning, meaning_of
from .leading import assigned, members_in, racks_of, refused_topic
from .membership import Membership
from .phases import Phase
from .settings import GroupSettings
from .steps import GiveUp, Join, Lead, Leave, MemberIdentity, Step, Sync, TakeOn
from .subscription import Subscription
from .watching import Watch

__all__ = ["Member", "MemberIdentity", "Owner"]

P = ParamSpec("P")
R = TypeVar("R", bound=Response)

#: Tells the membership what came of a step, at the time that it is then.
_Tell: TypeAlias = Callable[[float], object]

_NEVER: Final = float("inf")

#: Metadata of less than this age is not asked for again: a member that is alone begins earlier.
_YOUNG_MS: Final = 100

#: A heartbeat is waited for that part of the session, so that there is time for others.
_PART_OF_SESSION: Final = 3

#: The user is looked after that often while a record is in his hands: shares of what he may take.
_PART_OF_POLL: Final = 10

_CANCELLED: Final = "a callback of the consumer cancelled itself"


class Owner(Protocol):
    """Who reads the partitions. Of the calls that wait one is under way at a time."""

    def owned(self) -> Collection[TopicPartition]:
        """What is read now."""
        ...

    async def revoke(self, places: Collection[TopicPartition], until: float) -> None:
        """Give these up, while still a member of the generation that they were assigned in.

        Hand out no more of them, wait until what is in hands of them is done, but not beyond
        `until` in seconds of the clock; commit, and forget them. Where the membership is lost
        meanwhile this is cancelled, and `lose` follows; where the member is to leave, the same
        again for all that is owned.
        """
        ...

    async def lose(self, places: Collection[TopicPartition]) -> None:
        """They are gone already: hand out no more of them, commit nothing, forget them."""
        ...

    async def assign(self, places: Collection[TopicPartition]) -> None:
        """These are added, none where a rebalance brought none: begin to read them."""
        ...

    def failed(self, error: KprotoError) -> None:
        """The member is at its end, out of the group if that could be, and reads nothing."""
        ...

    def is_slow(self, now: float) -> bool:
        """Whether something is in hands, or nobody asked, for longer than max_poll_interval_ms."""
        ...


class Member:
    """A member of a group of the classic kind. `start` has it join once it has subscribed.

    Call `leave` to give up what it reads and to leave in order, and `close` in any case: then no
    task and no connection of it is left.
    """

    def __init__(self, view: ClusterView, settings: GroupSettings, owner: Owner) -> None:
        self.settings = settings
        self._view = view
        self._clock = view.clock
        self._reader = owner
        self._membership = Membership(settings, view.settings)
        self._watch = Watch()
        self._counts = view.observer.group(settings.group_id)
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._timer: Timer | None = None
        self._step: asyncio.Task[_Tell] | None = None
        self._step_turn = -1
        self._beat: asyncio.Task[_Tell] | None = None
        self._look: asyncio.Task[_Tell] | None = None
        self._looks_at = _NEVER
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

    def commit_refused(self, error: BrokerResponseError, identity: MemberIdentity) -> None:
        """An OffsetCommit of `identity` was answered so."""
        self._membership.commit_refused(error, identity, self._clock.monotonic())
        self._changed.set()

    async def leave(self, leave: bool, reason: str = "the consumer is closed") -> None:
        """Give up what is read, and tell the coordinator if it is to `leave`; ends the member.

        What is in hands is not waited for: who closes says first what is done. The coordinator
        has `leave_timeout_ms`.
        """
        if self._task is None or self._task.done():
            return
        if self._step is not None and self._step is asyncio.current_task():
            raise ConfigurationError("a consumer cannot be closed from within its own callbacks")
        now = self._clock.monotonic()
        self._membership.part(reason, now, leaves=leave, ends=True, until=now)
        self._changed.set()
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
                if self._membership.phase is Phase.OVER and self._step is None:
                    break
                self._begin(self._clock.monotonic())
                if not self._changed.is_set():
                    self._wake_at(self._next_at())
                    await self._changed.wait()
        except Exception as fault:  # noqa: BLE001 - who waits for a member that is no more is told
            what = f"the member of group {self.settings.group_id!r} failed"
            self._membership.error = _because(what, fault)
        finally:
            await self._end()
        if self._membership.error is not None:
            self._reader.failed(self._membership.error)

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
        if self._membership.phase not in (Phase.OUT, Phase.OVER):
            patience_ms = min(
                self.settings.heartbeat_interval_ms,
                max(1, self.settings.max_poll_interval_ms // _PART_OF_POLL),
            )
            moments.append(now + patience_ms / 1000)
        if self._look is None and self._membership.phase is Phase.STABLE:
            moments.append(self._looks_at)
        return min(moments)

    def _keep_time(self, now: float) -> None:
        """See what has become due by itself."""
        membership = self._membership
        membership.tick(now)
        if membership.phase in (Phase.OUT, Phase.OVER):
            return
        if self._reader.is_slow(now) and membership.late(now):
            self._counts.late += 1
        if membership.phase is Phase.STABLE:
            change = self._watch.differs(self._view.cluster.topics)
            if change is not None:
                membership.rejoin(change, now)

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
            step = membership.step(now, self._reader.owned())
            if step is not None:
                self._step_turn = membership.turn
                self._step = self._started(self._do, step)
        if self._beat is None:
            heartbeat = membership.heartbeat(now)
            if heartbeat is not None:
                self._beat = self._started(self._send_heartbeat, heartbeat)
        if self._look is None and membership.phase is Phase.STABLE and now >= self._looks_at:
            self._look = self._started(self._look_at_topics)

    def _started(
        self, work: Callable[P, Coroutine[Any, Any, _Tell]], *args: P.args, **named: P.kwargs
    ) -> asyncio.Task[_Tell]:
        async def told() -> _Tell:
            try:
                return await work(*args, **named)
            finally:
                self._changed.set()  # so that `_run` has its turn next

        task = asyncio.create_task(told())
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[_Tell]) -> None:
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

    def _take_step(self, step: asyncio.Task[_Tell]) -> None:
        now = self._clock.monotonic()
        try:
            tell = step.result()
        except KprotoError as error:
            self._heed(self._membership.failed(error, now))
        except asyncio.CancelledError as cancelled:  # not by the member: the turn is the same
            self._membership.fail(_because(_CANCELLED, cancelled), now, leaves=True)
        else:
            tell(now)

    def _heed(self, meaning: Meaning | None) -> None:
        if meaning is Meaning.FIND_COORDINATOR:
            self._coordinator.forget()

    def _coordinator_moved(self) -> None:
        self._membership.moved(self._clock.monotonic())
        self._changed.set()

    # Steps

    async def _do(self, step: Step) -> _Tell:
        match step:
            case GiveUp():
                return await self._give_up(step)
            case Join():
                return await self._join(step)
            case Lead():
                return await self._lead(step)
            case Sync():
                return await self._sync(step)
            case TakeOn():
                return await self._take_on(step)
            case Leave():
                return await self._tell_that_it_leaves(step)

    async def _give_up(self, step: GiveUp) -> _Tell:
        fault: KprotoError | None = None
        if step.places and step.lost:
            self._say("loses %s", named(step.places))
            self._counts.lost_partitions += len(step.places)
            fault = await self._raised(self._reader.lose(step.places))
        elif step.places:
            self._say("gives up %s", named(step.places))
            fault = await self._raised(self._reader.revoke(step.places, step.until))

        def tell(now: float) -> None:
            if fault is not None:
                self._membership.fail(fault, now, leaves=True)
            if fault is None or step.lost:
                self._membership.given_up(now)

        return tell

    async def _take_on(self, step: TakeOn) -> _Tell:
        fault: KprotoError | None = None
        if step.revoked:
            self._say("gives up %s, which others get", named(step.revoked))
            fault = await self._raised(self._reader.revoke(step.revoked, step.until))
        if fault is None:
            self._say("takes on %s", named(step.added) or "no partitions")
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
            return _because(_CANCELLED, cancelled)
        except KprotoError as error:
            return error
        except Exception as fault:  # noqa: BLE001 - whatever a user's callback raises
            return _because("a callback of the consumer failed", fault)
        return None

    async def _join(self, step: Join) -> _Tell:
        topics: Iterable[TopicInfo] = ()
        if step.subscription.pattern is not None:
            topics = await self._view.refresh()
            self._plan_look()
        wanted = step.subscription.among(topics)
        if self._look is None and not all(map(self._view.is_fresh, wanted)):
            self._look = self._started(self._know, wanted)

        def request() -> Request[Any]:
            self._counts.joins += 1
            return self._membership.join_request(wanted, self._reader.owned())

        coordinator = self._coordinator
        ask = coordinator.ask_for_id if self._membership.has_no_id else coordinator.ask_and_wait
        response, sent_at = await ask(request)

        def tell(now: float) -> None:
            self._watch.joined(step.subscription, wanted)
            self._heed(self._membership.join_answered(response, sent_at, now))
            wants = self._membership.subscription
            if wants is not None and wants != step.subscription:  # told while it was on its way
                self._membership.rejoin(f"the subscription is now {wants}", now)

        return tell

    async def _lead(self, step: Lead) -> _Tell:
        told = members_in(step.members)
        for member_id, error in told.unreadable.items():
            text = "member %s says what cannot be read, and gets nothing: %s"
            self._say(text, member_id, error, level=logging.WARNING)
        topics = await self._topics(told.topics)
        subscription = self._membership.subscription
        if subscription is not None:
            refused = refused_topic(topics, subscription.topics)
            if refused is not None:
                raise refused
        there = racks_of(topics, self._view.cluster)
        assignment = {} if step.skip else assigned(step.assignor, there, told.members)

        def tell(now: float) -> None:
            self._watch.lead(told.topics, there)
            self._plan_look()
            self._membership.led(assignment)

        return tell

    async def _topics(self, names: Collection[str]) -> list[TopicInfo]:
        """The topics of the group, as they are now."""
        view = self._view
        young = self._clock.monotonic() - _YOUNG_MS / 1000
        known = [
            view.cluster.topics[name]
            for name in names
            if name in view.cluster.topics and view.heard_since(name, young)
        ]
        return known if len(known) == len(names) else await view.refresh(names)

    async def _know(self, names: Collection[str]) -> _Tell:
        """Ask for topics while JoinGroup is under way; who leads, or reads them, asks else."""
        with suppress(KprotoError):
            await self._view.refresh(names)
        return lambda now: None

    async def _sync(self, step: Sync) -> _Tell:
        response, sent_at = await self._coordinator.ask_and_wait(lambda: step.request)
        return lambda now: self._heed(self._membership.sync_answered(response, sent_at, now))

    async def _tell_that_it_leaves(self, step: Leave) -> _Tell:
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

    async def _leave_once(self, step: Leave) -> None:
        """Tell the coordinator. Raises what another attempt may mend."""
        group_id = self.settings.group_id
        try:
            connection = await self._coordinator.connection()
            version = connection.version_of(LeaveGroupRequest)
            answer = await connection.request(step.request(group_id, version), version=version)
        except KprotoError:
            self._coordinator.forget()
            raise
        codes = [answer.error_code, *(each.error_code for each in answer.members)]
        for code in filter(None, codes):
            error = error_of_code(code, f"leaving group {group_id!r}")
            meaning = meaning_of(Asked.LEAVE, error)
            self._heed(meaning)
            if meaning in (Meaning.RETRY, Meaning.FIND_COORDINATOR):
                raise error

    # Heartbeats and topics

    async def _send_heartbeat(self, request: HeartbeatRequest) -> _Tell:
        timeout_ms = min(
            self._view.settings.request_timeout_ms,
            max(
                self.settings.heartbeat_interval_ms,
                self.settings.session_timeout_ms // _PART_OF_SESSION,
            ),
        )
        sent_at = self._clock.monotonic()
        error: KprotoError | None = None
        try:
            connection = await self._coordinator.free_connection()
            sent_at = self._clock.monotonic()
            answer = await connection.request(request, timeout_ms=timeout_ms)
        except KprotoError as lost:
            error = lost
        else:
            if answer.error_code:
                what = f"heartbeat: group {self.settings.group_id!r}"
                error = error_of_code(answer.error_code, what)

        def tell(now: float) -> None:
            meaning = self._membership.beaten(request, error, sent_at, now)
            self._heed(meaning)
            if error is None or meaning is Meaning.REBALANCE:
                self._counts.heartbeats += 1

        return tell

    async def _look_at_topics(self) -> _Tell:
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
            self._plan_look()
            subscription = self._membership.subscription
            if subscription is not None:
                refused = refused_topic(found, subscription.topics)
                if refused is not None:
                    self._membership.fail(refused, now, leaves=True)
            if found:
                change = self._watch.told(found, whole=asked is None)
                if change is not None:
                    self._membership.rejoin(change, now)

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
        self._looks_at = self._clock.monotonic() + seconds


def _because(what: str, fault: BaseException) -> KprotoError:
    error = KprotoError(f"{what}: {fault!r}")
    error.__cause__ = fault
    return error
