"""Partitions that come and go: what a member of a group reads now, and from where on.

One that has come is read from where the group has committed, else from where it is to `start`; one
that goes is hidden at once, and what a fetch under way brings of it is dropped, as its state is no
more the one that is read. Who decides that it comes or goes is `ownership`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from ...wire.errors import BrokerResponseError, UnsupportedVersionError
from ...wire.uuid import ZERO_UUID, Uuid
from ..commits.errors import NoCommittedOffsetError
from ..commits.incomplete_offsets import (
    MOST_BYTES,
    IncompleteOffsets,
    ahead_in,
    ahead_of,
    joined,
    text_of,
)
from ..commits.requests import CommittedOffset, Identity, ToCommit, committed_in, committed_requests
from ..commits.topic_labels import Label, unlabelled
from ..core.retry import Attempts, Remedy, remedy_of
from ..metadata.cluster import TopicInfo, TopicPartition, named
from ..metadata.cluster_view import ClusterView
from .assigned_partition import AssignedPartition, FetchState
from .in_flight_fetches import InFlightFetches
from .in_flight_records import InFlightRecords
from .list_offsets import list_offsets
from .partition_state import NOT_FOUND, PartitionState
from .start_options import GroupStart, start_time_ms

__all__ = ["SubscriptionState"]

#: Who asked is a member no more, or at another epoch by now: he asks again as who he is then.
_NOT_THIS_MEMBER: Final = ("STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID")

#: What is looked for, by the name that it has while it is under way.
_BEGINNINGS: Final = "beginnings"

logger = logging.getLogger("kproto.client")


class SubscriptionState:
    """What is read now, `by_place`. Where partitions begin says what `group_id` has committed.

    `unbegun` is for those who know topics from old metadata alone; here there are none.
    """

    def __init__(
        self,
        view: ClusterView,
        group_id: str,
        start: GroupStart,
        read_committed: bool,
        under_way: InFlightFetches,
        handing_out: InFlightRecords,
    ) -> None:
        self._view = view
        self._group_id = group_id
        self._start = start
        self._read_committed = read_committed
        self._under_way = under_way
        self._handing_out = handing_out
        self._changed = asyncio.Event()
        self._known: dict[str, TopicInfo] = {}
        self._first: dict[str, TopicInfo] = {}  # topics as they were seen first
        self._held: set[TopicPartition] = set()  # nobody is to read them yet
        self._other: set[TopicPartition] = set()  # made anew, and not assigned anew yet
        self._of_another: set[TopicPartition] = set()  # of which commits are of a topic before
        self.by_place: dict[TopicPartition, PartitionState] = {}
        self.states: dict[TopicPartition, AssignedPartition] = {}
        self.unbegun: set[str] = set()
        self._sought: list[AssignedPartition] = []  # whose beginnings are looked for
        self.is_shared = True  # with others, by their group
        #: Topics that are read from their start where the group has committed nothing.
        self.from_start: frozenset[str] = frozenset()
        self.paused: set[TopicPartition] = set()
        self._full: set[TopicPartition] = set()  # enough of them waits for who handles it
        self._most_told = MOST_BYTES
        self.on_new_partitions: Callable[[], None] = lambda: None
        self.on_committed: Callable[[dict[TopicPartition, ToCommit]], None] = lambda found: None
        #: Who asks for commits, where brokers want to know, and what to do where he may not.
        self.identity: Callable[[], Identity | None] = lambda: None
        self.on_refused: Callable[[BrokerResponseError, Identity], None] = lambda error, who: None
        #: A partition without a commit is begun with where nobody would begin later.
        self.on_passing: Callable[[TopicPartition, ToCommit], None] = lambda place, its: None
        #: Whether a topic that was made anew is read at once; else it must be assigned first, as
        #: brokers that assign by ids may give it to others.
        self.begins_anew: Callable[[], bool] = lambda: True
        #: Whether a partition is assigned by that id of its topic.
        self.holds: Callable[[TopicPartition, Uuid], bool] = lambda place, topic_id: False
        #: The topic of a partition was made anew: what is known of its commits is of another one.
        self.on_anew: Callable[[TopicPartition], None] = lambda place: None

    # What is read

    def ones_begun(self) -> list[PartitionState]:
        """Those that may be asked for."""
        waiting = self._held | self._other | self.paused | self._full
        return [
            self.states[place]
            for place in self.by_place
            if place not in waiting and self.states[place].awaits is None
        ]

    def move_behind(self, place: TopicPartition) -> None:
        """Ask for all others before this one."""
        self.by_place[place] = self.by_place.pop(place)

    async def begin_again(self, name: str) -> None:
        """Of no use here: a topic that was made anew is begun with at once."""

    def add_new(self) -> None:
        """Look for what is not known of the partitions, and at topics that metadata shows anew.

        A topic that was deleted and made anew is read from its start (KIP-516).
        """
        self._look()
        self.notice()

    def notice(self) -> None:
        """Take over what metadata says of the topics by now."""
        topics = self._view.cluster.topics
        for name in dict.fromkeys(topic for topic, _ in self.by_place):
            info = topics.get(name)
            before = self._known.get(name)
            if info is None or info is before:
                continue
            self._known[name] = info
            if info.is_another_than(before):
                self._begin_anew(name, info.topic_id)
            elif before is not None and before.partitions.keys() != info.partitions.keys():
                self.on_new_partitions()
            for place, state in self.states.items():
                if place[0] == name and state.topic_id == ZERO_UUID:
                    state.topic_id = info.topic_id

    def _begin_anew(self, name: str, topic_id: Uuid) -> None:
        begins = self.begins_anew()
        logger.warning("topic %s was made anew; it is read from its start", name)
        for place in [place for place in self.states if place[0] == name]:
            self.on_anew(place)
            state = self._replace(place, object())
            if not begins:
                if self.holds(place, topic_id):  # a broker that lagged told of the one before
                    self._other.discard(place)
                else:
                    self._other.add(place)
                continue
            self._begin_at_its_start(place, state)

    def _begin_at_its_start(self, place: TopicPartition, state: AssignedPartition) -> None:
        """Read a topic that was made anew."""
        state.is_anew = True
        if self._start not in ("earliest", "none"):
            state.on_begun = partial(self._passes, place, state)
        state.begin_by("earliest")

    def changed(self) -> None:
        """Have who waits for records look again."""
        self._changed.set()

    async def _until_changed(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    # Coming, going, moving

    def add(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, AssignedPartition]:
        """Read these, once they are `released`; where they begin is looked for meanwhile."""
        self.notice()
        for name, info in self._view.cluster.topics.items():
            self._first.setdefault(name, info)
        new = {place: self._put(place, object()) for place in places if place not in self.states}
        self._held.update(new)
        self._look()
        return new

    def _put(self, place: TopicPartition, claim: object) -> AssignedPartition:
        state = AssignedPartition(place, self._view.settings, claim)
        state.is_shared = self.is_shared
        info = self._known.get(place[0]) or self._view.cluster.topics.get(place[0])
        if info is not None:
            self._known[place[0]] = info
            state.topic_id = info.topic_id
        self.states[place] = self.by_place[place] = state
        return state

    def release(self, places: Iterable[TopicPartition]) -> None:
        """They may be read now."""
        self._held.difference_update(places)
        self.changed()

    def replace(self, place: TopicPartition) -> AssignedPartition:
        """Forget what has come of a partition, and where it was; returns what is to be begun."""
        return self._replace(place, self.states[place].claim)

    def _replace(self, place: TopicPartition, claim: object) -> AssignedPartition:
        before = self.states[place]
        self._handing_out.drop(before)
        self._handing_out.forget(before)
        state = self._put(place, claim)
        state.begins = False
        self._full.discard(place)
        if place in self.paused:
            self._handing_out.set_aside(state)
        self._drop_search()
        self.changed()
        return state

    def remove(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, AssignedPartition]:
        """Read these no more, and hand out nothing of them; their positions are final."""
        gone = {}
        for place in places:
            state = self.states.pop(place, None)
            if state is None:
                continue
            position = self._handing_out.drop(state)
            if state.is_placed:
                state.position = position
            del self.by_place[place]
            self._held.discard(place)
            self._other.discard(place)
            self.paused.discard(place)
            self._full.discard(place)
            gone[place] = state
        self._drop_search()
        left = {topic for topic, _ in self.states}
        self._known = {name: info for name, info in self._known.items() if name in left}
        return gone

    def pause(self, places: Collection[TopicPartition]) -> None:
        """Fetch and hand out nothing of these until they are resumed."""
        for place in places:
            if place not in self.paused:
                self.paused.add(place)
                self._handing_out.pause(self.states[place])
                if place not in self._full:
                    self._handing_out.set_aside(self.states[place])

    def resume(self, places: Collection[TopicPartition]) -> None:
        """Go on with those that were paused."""
        for place in places:
            if place in self.paused:
                self.paused.discard(place)
                if place not in self._full:
                    self._handing_out.take_back(self.states[place])
                self._handing_out.go_on(self.states[place])
        self.changed()

    def hold_back(self, place: TopicPartition) -> None:
        """Fetch and hand out nothing of a partition, of which enough waits to be handled."""
        if place in self.states and place not in self._full:
            self._full.add(place)
            if place not in self.paused:
                self._handing_out.set_aside(self.states[place])

    def let_go(self, place: TopicPartition) -> None:
        """Go on with one that was held back."""
        if place in self._full:
            self._full.discard(place)
            if place in self.states and place not in self.paused:
                self._handing_out.take_back(self.states[place])
            self.changed()

    def let_all_go(self) -> None:
        """Go on with all that were held back."""
        for place in [*self._full]:
            self.let_go(place)

    def set_back(
        self, state: AssignedPartition, offset: int, ahead: IncompleteOffsets | None
    ) -> None:
        """Go on at `offset`, which was handed out already; where it goes, others do.

        What is `ahead` is done, and does not come again.
        """
        place = (state.topic, state.partition)
        if self.states.get(place) is state:
            epoch = state.to_commit(offset).leader_epoch
            again = self.replace(place)
            again.begin_at(offset, epoch)
            again.since, again.is_anew, again.ahead = state.since, state.is_anew, ahead
        elif state.is_placed:
            state.position = min(state.position, offset)

    def done_of(
        self, states: Mapping[TopicPartition, AssignedPartition]
    ) -> dict[TopicPartition, ToCommit]:
        """What is done of each of these, which may be gone, that has a position."""
        found = {}
        for place, state in states.items():
            if state.is_placed:
                offset = max(self._handing_out.done(state), state.said)
                told = text_of(self.ahead_of(state), offset, state.topic_id, self._most_told)
                found[place] = state.to_commit(offset, told)
        return found

    def ahead_of(self, state: AssignedPartition) -> IncompleteOffsets | None:
        """What is done of a partition behind something that is not."""
        return joined(self._own_ahead(state), state.ahead)

    def _own_ahead(self, state: AssignedPartition) -> IncompleteOffsets | None:
        own = self._handing_out.ahead(state)
        if own is None:
            return None
        edge, undone = own
        return ahead_of(edge, undone, state.epochs.before(edge + 1))

    def tell_less(self, length: int) -> None:
        """A broker does not take so long a text beside a commit."""
        if length <= self._most_told:
            self._most_told = length // 2
            logger.warning(
                "the broker takes no metadata of %d bytes (offset.metadata.max.bytes): what is "
                "done behind a record that is not may come again",
                length,
            )

    def standing(
        self,
        states: Mapping[TopicPartition, AssignedPartition],
        done: Mapping[TopicPartition, ToCommit],
    ) -> set[TopicPartition]:
        """Those of `done` in which nothing more was done than is settled."""
        return {
            place
            for place, its in done.items()
            if its.offset == states[place].settled and self._own_ahead(states[place]) is None
        }

    def settling(
        self, states: Mapping[TopicPartition, AssignedPartition]
    ) -> Callable[[Iterable[TopicPartition]], None]:
        """To be called with those of which the user has committed what he wants, once that is made.

        Then only what is done from now on is to be committed.
        """
        stood = {place: (states[place], its.offset) for place, its in self.done_of(states).items()}

        def settle(places: Iterable[TopicPartition]) -> None:
            for place in places:
                if place in stood:
                    state, offset = stood[place]
                    state.settled = offset

        return settle

    # Where to begin

    def _look(self) -> None:
        """Look for beginnings, and for changes, unless that is under way."""
        self._under_way.look("changes", self._until_changed())
        if any(state.awaits is not None for state in self.states.values()):
            self._under_way.look(_BEGINNINGS, self._seek_beginnings())

    async def _seek_beginnings(self) -> None:
        self._sought = [state for state in self.states.values() if state.awaits is not None]
        await self.find_beginnings()

    def _drop_search(self) -> None:
        """Look no more for beginnings of what is read no more; what comes next has its own time."""
        if self._sought and not any(
            self.states.get((state.topic, state.partition)) is state for state in self._sought
        ):
            self._sought = []
            self._under_way.give_up_looking(_BEGINNINGS)

    async def find_beginnings(self, places: Collection[TopicPartition] | None = None) -> None:
        """Find where to begin those that await it, or some; what is moved meanwhile stays as it is.

        Raises NoCommittedOffsetError where nothing is committed and `start` is "none".
        """
        wanted = self.states if places is None else places
        await self._begin_by_commits(self._awaiting("commit", wanted))
        await self._begin_by_start(self._awaiting("start", wanted))

    def _awaiting(
        self, what: FetchState, places: Collection[TopicPartition]
    ) -> dict[TopicPartition, AssignedPartition]:
        return {
            place: state
            for place, state in self.states.items()
            if state.awaits == what and place in places and place not in self._other
        }

    def _still(
        self, states: Mapping[TopicPartition, AssignedPartition], what: FetchState
    ) -> dict[TopicPartition, AssignedPartition]:
        """Those that nobody has moved or taken away."""
        now = self._awaiting(what, states)
        return {place: state for place, state in states.items() if now.get(place) is state}

    async def _begin_by_commits(self, states: Mapping[TopicPartition, AssignedPartition]) -> None:
        if not states:
            return
        committed = await self.committed(states)
        begun = {}
        for place, state in self._still(states, "commit").items():
            known = committed[place]
            if known is None and place in self._of_another:
                self._begin_at_its_start(place, state)
            elif known is None:
                state.awaits = "start"
            else:
                state.begin_at(known.offset, known.leader_epoch)
                state.since = known.offset
                info = self._view.cluster.topics.get(place[0])
                topic_id = state.topic_id if info is None else info.topic_id
                state.ahead = ahead_in(known.metadata, known.offset, topic_id)
                begun[place] = state.to_commit(known.offset, known.metadata)
        self.on_committed(begun)

    async def committed(
        self, places: Iterable[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """What the group has committed of these; None where nothing was, or of a topic before."""
        places = list(places)
        if not places:
            return {}
        view = self._view
        attempts = Attempts(view.settings, begun=view.clock.monotonic())
        while True:
            identity = self.identity()
            try:
                return await view.retrying(partial(self._ask_for_commits, places, identity))
            except BrokerResponseError as error:
                if identity is None or error.name not in _NOT_THIS_MEMBER:
                    raise
                self.on_refused(error, identity)
                if not attempts.failed(error, view.clock.monotonic()):
                    raise
                view.observer.retried("call", error, attempts)
            await view.until(attempts.not_before)

    async def _ask_for_commits(
        self, places: list[TopicPartition], identity: Identity | None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        names = {topic for topic, _ in places}
        await self._view.know(names)
        topics = dict(self._view.cluster.topics)

        def id_of(name: str) -> Uuid:
            info = topics.get(name)
            return ZERO_UUID if info is None else info.topic_id

        refused: UnsupportedVersionError | None = None
        for request in committed_requests(self._group_id, places, id_of, identity):
            try:
                response = await self._view.request(request)
            except UnsupportedVersionError as error:
                refused = refused or error  # nothing was sent
                continue
            try:
                found = committed_in(response, self._group_id, places, id_of)
                return await self._of_these_topics(found)
            except BrokerResponseError as error:
                if remedy_of(error) is Remedy.REFRESH:
                    self._view.cluster.forget(names)  # their ids may be others by now
                raise
        assert refused is not None, "all were refused"
        raise refused

    async def _of_these_topics(
        self, found: dict[TopicPartition, CommittedOffset | None]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Leave out commits that name another topic than the one that is there by now."""
        labels: dict[TopicPartition, Label] = {}
        told: dict[TopicPartition, CommittedOffset | None] = {}
        for place, its in found.items():
            if its is not None:
                label, metadata = unlabelled(its.metadata)
                its = its._replace(metadata=metadata)
                if label is not None:
                    labels[place] = label
            told[place] = its
        cluster = self._view.cluster

        def others() -> list[TopicPartition]:
            return [
                place
                for place, label in labels.items()
                if (info := cluster.topics.get(place[0])) is not None
                and label.is_of_another(cluster.cluster_id, info.topic_id)
            ]

        if suspects := others():  # what is known may be the older one
            await self._view.refresh({topic for topic, _ in suspects})
        of_another = others() if suspects else []
        self._of_another.difference_update(found)
        self._of_another.update(of_another)
        if of_another:
            logger.warning(
                "%s: what the group has committed is of a topic that was deleted: the one of that "
                "name that is there is read from its start",
                named(of_another),
            )
        return told | dict.fromkeys(of_another)

    async def _begin_by_start(self, states: Mapping[TopicPartition, AssignedPartition]) -> None:
        """Begin those of which the group has committed nothing."""
        for place, state in states.items():
            if place[0] in self.from_start:
                state.begin_by("earliest")
        states = self._still(states, "start")
        if not states:
            return
        start = self._start
        if start == "none":
            for state in states.values():
                state.awaits = "commit"  # there may be one the next time
            raise NoCommittedOffsetError(self._group_id, states)
        if isinstance(start, datetime | timedelta):
            moment = start_time_ms(start, self._view.clock.now_ms())
            found = await list_offsets(
                self._view, dict.fromkeys(states, moment), read_committed=self._read_committed
            )
        else:
            found = {}
        for place, state in self._still(states, "start").items():
            offset = found.get(place, NOT_FOUND)
            if start != "earliest" and (offset == NOT_FOUND or isinstance(start, timedelta)):
                state.on_begun = partial(self._passes, place, state)
            if offset != NOT_FOUND:
                state.begin_at(offset)
            elif start == "earliest" or self._is_new(place):
                state.begin_by("earliest")
            else:
                state.begin_by("latest")

    def _passes(self, place: TopicPartition, state: AssignedPartition) -> None:
        if self.states.get(place) is state:
            self.on_passing(place, state.to_commit(state.position))

    def _is_new(self, place: TopicPartition) -> bool:
        """Whether its topic got this partition, or was made anew, since the consumer saw it first:
        nothing of it was there to be passed over."""
        topic, partition = place
        first, now = self._first.get(topic), self._known.get(topic)
        if first is None:
            return False
        return partition not in first.partitions or (now is not None and now.is_another_than(first))
