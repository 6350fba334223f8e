"""`SubscriptionState`: owns the assignment and the partition states of a consumer.

For plain and group consumers alike it also owns the fetch buffer, pauses and backpressure, the
returned records that are not processed yet, pending revocations and losses, and the commit state.
Does no I/O: callers pass the time, in seconds of the client's clock, and a group consumer carries
out the returned effects.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...protocol.error_codes import code_of, error_of_code
from ...wire.uuid import ZERO_UUID, Uuid
from ..commits.commit_state import CommitState
from ..commits.committed_offsets import FetchedCommits
from ..commits.membership import GroupMembership
from ..commits.processed_bitmap import ProcessedBitmap
from ..metadata.cluster import TopicInfo, TopicPartition
from ..settings import ClientSettings
from .committable_offsets import CommittableOffsets
from .completed_fetch import CompletedFetch
from .effects import ConnectToLeaders, Effect, FetchEffect
from .fetch_buffer import FetchBuffer
from .fetch_options import OffsetSpec
from .fetch_plan import FetchPlanner
from .partition_state import FetchState, TopicPartitionState
from .poll_state import PollState
from .processed_offsets import CommitPlanner
from .revocations import PendingRevocations
from .start_offsets import StartOffsetResolver
from .start_options import GroupStart, Start, topic_of
from .topic_history import TopicHistory

__all__ = ["SubscriptionOptions", "SubscriptionState"]

logger = logging.getLogger("kproto.client")

_RECREATED: Final = code_of("UNKNOWN_TOPIC_ID")


class SubscriptionOptions(NamedTuple):
    """The topics, partitions and start of a consumer.

    `subscribed` are the topics and partitions of a plain consumer. With `stop_at_end` the consumer
    stops at the log ends that the partitions have when it starts. With a `group_id`, the group
    assigns the partitions if `is_shared` is True; otherwise they are assigned manually.
    """

    start: Start | GroupStart
    subscribed: Sequence[str | TopicPartition] = ()
    stop_at_end: bool = False
    group_id: str | None = None
    is_shared: bool = False


class SubscriptionState:
    """Owns the states of the assigned partitions.

    `partitions` maps the partitions to their states, in the order of fetches. `poll` tracks
    fetched, polled and processed records. `commit_state` is used only for a group.
    """

    def __init__(
        self,
        settings: ClientSettings,
        options: SubscriptionOptions,
        buffer: FetchBuffer,
        commit_state: CommitState | None = None,
        now: float = 0.0,
    ) -> None:
        self._settings = settings
        self.options = options
        self.poll = PollState(buffer, now)
        self.commit_state = commit_state or CommitState(0)
        self.processed = CommitPlanner(self.poll, self.commit_state)
        self.partitions: dict[TopicPartition, TopicPartitionState] = {}
        #: The log end of each partition in its last fetch: the high watermark, or with
        #: `read_committed` the last stable offset.
        self.log_ends: dict[TopicPartition, int] = {}
        self._subscribed_topics = list(dict.fromkeys(map(topic_of, options.subscribed)))
        self._whole_topics = {each for each in options.subscribed if isinstance(each, str)}
        self.topics = TopicHistory()
        self.planner = FetchPlanner(self.partitions)
        self.starts = StartOffsetResolver(
            self.partitions,
            self.topics,
            self.commit_state,
            options.start,
            options.group_id or "",
            self.planner.awaiting_assignment,
        )
        self.paused = self.planner.paused
        self.to_restart = self.planner.to_restart
        self._under_backpressure = self.planner.under_backpressure
        self._awaiting_callback = self.planner.awaiting_callback
        self._prioritized: dict[TopicPartition, TopicPartitionState] = {}
        self._assignment_epoch = 0
        self._metadata_version = -1
        self.revocations = PendingRevocations()
        self.committable = CommittableOffsets(
            self.partitions, self.revocations, self.commit_state, self.processed
        )

    # Fetching

    def preempts(self, busy: Container[int]) -> bool:
        """Returns True if the last plan has a prioritized partition that would wait for a fetch.

        Newly assigned partitions are prioritized, and so are partitions that `seek_to_committed`
        has moved. Such a partition would wait if a fetch is in flight to the same broker: `busy`
        has the node ids of the brokers with a fetch in flight. A prioritized partition counts only
        once: in the first plan that fetches it.
        """
        preempts = False
        for tp, state in list(self._prioritized.items()):
            node = self.planner.node_of(tp)
            if node is not None and self.partitions.get(tp) is state:
                del self._prioritized[tp]
                preempts = preempts or node in busy
        return preempts

    def is_current(self, state: TopicPartitionState) -> bool:
        """Returns False if a revocation, a seek or a recreated topic has replaced the state."""
        return self.partitions.get(state.tp) is state

    def move_to_end(self, state: TopicPartitionState) -> None:
        """Moves a partition to the end of the order: it is fetched after all others."""
        self.partitions[state.tp] = self.partitions.pop(state.tp)
        state.mark_changed()

    def on_fetched(
        self,
        state: TopicPartitionState,
        fetch: CompletedFetch | None,
        position: int,
        last_epoch: int,
        epochs: Iterable[tuple[int, int]],
    ) -> None:
        """Moves the position to `position`; buffers `fetch` unless `fetch` is None.

        Moves the partition to the end of the fetch order, so that no partition is left out for ever
        if each response reaches its size limit.
        """
        state.on_fetched(position, last_epoch, epochs)
        self.move_to_end(state)
        if fetch is not None:
            self.poll.buffer.add(fetch)

    def on_offset_reset(
        self, state: TopicPartitionState, offset: int, *, after_end: OffsetSpec
    ) -> tuple[bool, list[Effect]]:
        """Resets the position to `offset`, from ListOffsets; see `TopicPartitionState.reset`.

        Returns two values: True if the position is set, and the effects.
        """
        before = state.position
        is_set = state.reset(offset, after_end=after_end)
        if state.position < before and self.poll.processor is not None:
            self.poll.drop(state)
            self.poll.processor.forget(state)
        return is_set, self.starts.on_position(state)

    def on_position_found(self, state: TopicPartitionState, offset: int) -> list[Effect]:
        """Sets the first position of a partition in AWAIT_RESET."""
        state.set_position(offset)
        return self.starts.on_position(state)

    def on_truncated(
        self, state: TopicPartitionState, position: int, last_epoch: int, log_end: int
    ) -> list[Effect]:
        """Moves the position back, because the leader's log ends before the position."""
        state.truncate_to(position, last_epoch, log_end)
        return self.starts.on_position(state)

    def rewind_broken(self) -> TopicPartitionState:
        """Moves the position of a partition back to the start of its batch that cannot be decoded.

        The batch is fetched again. Returns the state of the partition.
        """
        broken = self.poll.buffer.drop_broken()
        broken.state.rewind(broken.from_offset)
        return broken.state

    def make_room(self, limit: int) -> bool:
        """Returns True if the buffered and queued records have at most `limit` bytes.

        If the records have more bytes and a poll waits for records, drops the buffered fetches of
        paused partitions and returns True, because otherwise the poll would wait for ever. The
        dropped records are fetched again after the pause.
        """
        more = self.poll.queued_bytes - limit
        if more <= 0:
            return True
        if not self.poll.wants_records:
            return False
        for state, offset in self.poll.buffer.drop_paused(more):
            state.rewind(offset)
        return True

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """For each partition that has a position, the offset of the next record to be polled."""
        found = {tp: state.position for tp, state in self.partitions.items() if state.has_position}
        return found | self.poll.positions

    # Metadata

    def on_metadata(
        self,
        topics: Mapping[str, TopicInfo],
        version: int,
        member: GroupMembership[Any] | None = None,
    ) -> list[Effect]:
        """Finds recreated topics and added partitions in new metadata.

        Does nothing if the metadata `version` and the partitions are the same as in the last call.

        If a plain consumer reads a whole topic without `stop_at_end`, it reads added partitions
        from their log start, so that it misses no record. If a topic was recreated and
        `stop_at_end` is set, raises BrokerResponseError, except for a plain consumer that looks up
        the start of the topic again (see `_on_recreated`).
        """
        effects: list[Effect] = []
        if version == self._metadata_version:
            return effects
        names = self._subscribed_topics or list(
            dict.fromkeys(topic for topic, _ in self.partitions)
        )
        topic_ids: dict[str, Uuid] = {}
        for name in names:
            info = topics.get(name)
            before = self.topics.get(name)
            if info is None or info is before:
                continue
            if info.is_recreated_since(before):
                effects += self._on_recreated(info, member)
            elif before is not None and before.partitions.keys() != info.partitions.keys():
                effects.append(FetchEffect.TOPICS_CHANGED)
            self.topics.set_current(info)
            if name in self._whole_topics and not self.options.stop_at_end:
                self._add_partitions(info)
            topic_ids[name] = info.topic_id
        if topic_ids:
            for (name, _), state in self.partitions.items():
                if name in topic_ids and state.topic_id == ZERO_UUID:
                    state.topic_id = topic_ids[name]
        self._metadata_version = version
        return effects

    def _add_partitions(self, info: TopicInfo) -> None:
        for partition in info.partitions:
            tp = (info.name, partition)
            if tp not in self.partitions:
                state = TopicPartitionState(tp, self._settings)
                state.await_reset("earliest")
                self._add(state)

    def _on_recreated(self, info: TopicInfo, member: GroupMembership[Any] | None) -> list[Effect]:
        """Resets the partitions of a recreated topic to their log start (KIP-516).

        There are three exceptions:
        - A plain consumer that has fetched nothing of the topic looks up its start positions again.
          With `start` "latest" it does not: the log end would skip records of the recreated topic.
        - Any other consumer with `stop_at_end` raises UNKNOWN_TOPIC_ID.
        - A member of the consumer protocol waits until the coordinator assigns the new topic id.
          The coordinator may assign the partitions to another member.
        """
        tps = [tp for tp in self.partitions if tp[0] == info.name]
        has_group = self.options.group_id is not None
        was_fetched = any(self.partitions[tp].was_fetched for tp in tps)
        if not has_group and not was_fetched and self.options.start != "latest":
            self.to_restart.add(info.name)
        elif self.options.stop_at_end:
            raise error_of_code(
                _RECREATED,
                f"topic {info.name!r} was deleted and recreated; its unread records are gone",
            )
        else:
            logger.warning("topic %s was recreated; it is read from its start", info.name)
        identity = None if member is None else member.identity
        awaits_assignment = identity is not None and identity.has_epoch
        effects: list[Effect] = []
        for tp in tps:
            if not has_group:
                state = TopicPartitionState(tp, self._settings)
                state.await_reset("earliest")
                self._add(state)
                continue
            self.commit_state.forget([tp])
            state, replaced = self._replace(tp, self._next_epoch(), info)
            effects += replaced
            if member is None or not awaits_assignment:
                self.starts.start_recreated(state)
            elif member.is_assigned(tp, info.topic_id):
                # A broker with old metadata had reported the deleted topic.
                self.starts.awaiting_assignment.discard(tp)
            else:
                self.starts.awaiting_assignment.add(tp)
        return effects

    def _add(self, state: TopicPartitionState) -> None:
        self.partitions[state.tp] = state
        self._metadata_version = -1
        state.changed = self.planner.changed
        state.mark_changed()
        if state.fetch_state is FetchState.INITIALIZING:
            self.starts.add_initializing(state)

    def _pop(self, tp: TopicPartition) -> TopicPartitionState | None:
        self.planner.changed[tp] = None
        return self.partitions.pop(tp, None)

    # Partitions of a plain consumer

    def start(self, states: Mapping[TopicPartition, TopicPartitionState]) -> None:
        """Replaces all partitions by `states`, which have positions."""
        for tp in list(self.partitions):
            self._pop(tp)
        for state in states.values():
            self._add(state)

    def restart(
        self, name: str, states: Mapping[TopicPartition, TopicPartitionState], topic_id: Uuid
    ) -> None:
        """Replaces all partitions of a recreated topic by `states`, which have new positions.

        The positions were looked up for `topic_id`.
        """
        for tp in [tp for tp in self.partitions if tp[0] == name]:
            self._pop(tp)
        for state in states.values():
            self._add(state)
        if self.topics.id_of(name) == topic_id:
            self.to_restart.discard(name)

    # The assignment of a group consumer

    def _next_epoch(self) -> int:
        self._assignment_epoch += 1
        return self._assignment_epoch

    def assign(
        self,
        tps: Iterable[TopicPartition],
        topics: Mapping[str, TopicInfo],
        version: int,
        member: GroupMembership[Any] | None = None,
    ) -> list[Effect]:
        """Adds partitions; they are fetched once `on_assigned` has returned.

        While the callback `on_assigned` runs, their positions are looked up, and connections to
        their leaders are opened. `version` is the version of the metadata in `topics`.
        """
        effects = self.on_metadata(topics, version, member)
        self.topics.add_first(topics)
        added = [tp for tp in tps if tp not in self.partitions]
        for tp in added:
            self._prioritized[tp] = self._create_state(
                tp, self._next_epoch(), self.topics.get(tp[0]) or topics.get(tp[0])
            )
        self._awaiting_callback.update(added)
        return [*effects, FetchEffect.LOOK_UP_POSITIONS, ConnectToLeaders(added)]

    def _create_state(
        self, tp: TopicPartition, assignment_epoch: int, info: TopicInfo | None
    ) -> TopicPartitionState:
        state = TopicPartitionState(tp, self._settings, assignment_epoch=assignment_epoch)
        state.is_shared = self.options.is_shared
        if info is not None:
            self.topics.set_current(info)
            state.topic_id = info.topic_id
        self._add(state)
        return state

    def on_callback_returned(self, tps: Iterable[TopicPartition]) -> list[Effect]:
        """Allows fetches of the partitions `tps`, because `on_assigned` has returned."""
        self._awaiting_callback.difference_update(tps)
        return [FetchEffect.WAKE_POLL]

    def seek(self, tp: TopicPartition) -> tuple[TopicPartitionState, list[Effect]]:
        """Drops the position and the buffered records of a partition.

        Returns the new state of the partition, which keeps the assignment epoch, and the effects.
        """
        return self._replace(tp, self.partitions[tp].assignment_epoch, None)

    def _replace(
        self, tp: TopicPartition, assignment_epoch: int, info: TopicInfo | None
    ) -> tuple[TopicPartitionState, list[Effect]]:
        before = self.partitions[tp]
        self.poll.drop(before)
        if self.poll.processor is not None:
            self.poll.processor.forget(before)
        state = self._create_state(tp, assignment_epoch, info or self.topics.get(tp[0]))
        state.is_first_position = False
        self._under_backpressure.discard(tp)
        if tp in self.paused:
            self.poll.buffer.pause_buffered(state)
        return state, [*self.starts.cancel_lookup(), FetchEffect.WAKE_POLL]

    def _remove(
        self, tps: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, TopicPartitionState], list[Effect]]:
        """Removes partitions and drops their records; returns the removed states, and effects.

        Sets the position of each removed state to the offset of the next record to process.
        """
        removed = {}
        for tp in tps:
            state = self._pop(tp)
            if state is None:
                continue
            position = self.poll.drop(state)
            if state.has_position:
                state.position = position
            for tps_of in (
                self._awaiting_callback,
                self.starts.awaiting_assignment,
                self.paused,
                self._under_backpressure,
            ):
                tps_of.discard(tp)
            removed[tp] = state
        self.topics.retain({topic for topic, _ in self.partitions})
        return removed, self.starts.cancel_lookup()

    def mark_pending_revocation(
        self, tps: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, TopicPartitionState], list[Effect]]:
        """Stops fetching the partitions `tps`, and marks their revocation as pending.

        Their offsets can be committed until `complete_revocation`. Returns the states of the
        partitions, and the effects that the consumer must carry out.
        """
        states, effects = self._remove(tps)
        self.revocations.add(states)
        return states, effects

    def complete_revocation(self, states: Mapping[TopicPartition, TopicPartitionState]) -> None:
        """Ends the revocation of `states`.

        Forgets the committed offsets of partitions that are not assigned again, because other
        members may own these partitions.
        """
        excluded = {tp for tp in states if self.revocations.is_excluded(tp)}
        self.revocations.remove(states)
        left = {tp: state for tp, state in states.items() if tp not in self.partitions}
        returned = {tp: state for tp, state in left.items() if tp not in excluded}
        self.commit_state.add_uncommitted(self.processed.returned(returned))
        self.commit_state.forget(left)
        for tp in left:
            self.log_ends.pop(tp, None)
            self._prioritized.pop(tp, None)

    def on_partitions_lost(
        self, tps: Collection[TopicPartition]
    ) -> tuple[dict[TopicPartition, TopicPartitionState], list[Effect]]:
        """Drops partitions that other members may own; their offsets are not committed any more.

        Returns the state of each dropped partition, and the effects to apply.
        """
        removed, effects = self._remove(tps)
        lost = self.revocations.lost(removed, tps)
        self.abandon(lost)
        self.complete_revocation(lost)
        return lost, effects

    def abandon(self, states: Mapping[TopicPartition, TopicPartitionState]) -> None:
        """Makes `run` drop its records of partitions that other members may own now."""
        if self.poll.processor is not None:
            epochs = {state.assignment_epoch for state in states.values()}
            self.poll.processor.abandon(states.values(), epochs)

    def drop_all(self) -> list[Effect]:
        """Removes all partitions, because the member has failed."""
        return self._remove(list(self.partitions))[1]

    # Pauses and backpressure

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        """Stops fetching `tps`, and returns none of their records until `resume`."""
        for tp in tps:
            if tp not in self.paused:
                self.paused.add(tp)
                if self.poll.processor is not None:
                    self.poll.processor.pause(self.partitions[tp])
                if tp not in self._under_backpressure:
                    self.poll.buffer.pause_buffered(self.partitions[tp])

    def resume(self, tps: Iterable[TopicPartition]) -> list[Effect]:
        """Ends the pause of `tps`, so that their records may be fetched and returned."""
        for tp in tps:
            if tp in self.paused:
                self.paused.discard(tp)
                if tp not in self._under_backpressure:
                    self.poll.buffer.resume_buffered(self.partitions[tp])
                if self.poll.processor is not None:
                    self.poll.processor.resume(self.partitions[tp])
        return [FetchEffect.WAKE_POLL]

    def apply_backpressure(self, tp: TopicPartition) -> None:
        """Stops fetching a partition and returning its records: enough of them are queued."""
        if tp in self.partitions and tp not in self._under_backpressure:
            self._under_backpressure.add(tp)
            if tp not in self.paused:
                self.poll.buffer.pause_buffered(self.partitions[tp])

    def release_backpressure(self, tps: Iterable[TopicPartition] | None = None) -> list[Effect]:
        """Ends the backpressure of `tps`, by default of all partitions; pauses stay."""
        effects: list[Effect] = []
        for tp in [*self._under_backpressure] if tps is None else tps:
            if tp in self._under_backpressure:
                self._under_backpressure.discard(tp)
                if tp in self.partitions and tp not in self.paused:
                    self.poll.buffer.resume_buffered(self.partitions[tp])
                effects.append(FetchEffect.WAKE_POLL)
        return effects

    def rewind(
        self, state: TopicPartitionState, offset: int, bitmap: ProcessedBitmap | None
    ) -> list[Effect]:
        """Moves the position back to `offset`, whose record was returned but not processed.

        The records that `bitmap` marks as processed are not returned again. If the partition was
        already revoked, only the position of `state` moves back, so that the last commit of the
        partition is not after `offset`.
        """
        if not self.is_current(state):
            if state.has_position:
                state.position = min(state.position, offset)
            return []
        epoch = state.to_commit(offset).leader_epoch
        again, effects = self.seek(state.tp)
        again.set_position(offset, epoch)
        again.initial_offset = state.initial_offset
        again.group_committed = state.group_committed
        again.is_recreated, again.processed_bitmap = state.is_recreated, bitmap
        return effects

    # Committed offsets

    def seek_to_committed(
        self,
        fetched: FetchedCommits,
        epochs: Mapping[TopicPartition, int | None],
        topics: Mapping[str, TopicInfo],
        now: float,
    ) -> tuple[dict[TopicPartition, TopicPartitionState], list[Effect]]:
        """Moves the positions of partitions back to the committed offsets in `fetched`.

        A partition without a committed offset goes back to its start offset, if this start offset
        is still to be committed. Otherwise the position of the partition must be looked up. Leaves
        out partitions whose assignment epoch differs from the epoch in `epochs`. Offsets of
        partitions that are being revoked are not committed any more. The moved partitions are
        fetched at once, even if an earlier fetch still waits at the broker for new records. Returns
        the states, and effects.
        """
        effects: list[Effect] = []
        self.revocations.exclude_from_commits()
        states = {}
        for tp in fetched.offsets:
            if tp in self.partitions and self.partitions[tp].assignment_epoch == epochs.get(tp):
                states[tp], its = self.seek(tp)
                effects += its
        self.commit_state.forget_committed(states)
        effects += self.starts.on_committed_offsets(
            states, fetched.offsets, fetched.of_deleted_topics, topics, now
        )
        for tp, start in self.commit_state.start_offsets(states).items():
            if states[tp].has_no_commit:
                states[tp].set_position(start.offset, start.leader_epoch)
        self._prioritized.update(states)
        self.commit_state.uncommitted.clear()
        return states, [*effects, FetchEffect.LOOK_UP_POSITIONS]
