"""Assigns stickily for members with different subscriptions, as evenly as the subscriptions allow.

An unassigned partition goes to the subscribed member with the fewest partitions. Then partitions
move, one by one, from a member to a subscribed member with at least two partitions fewer, until no
such move is left. If the moves did not reduce the sum of the differences between the members'
partition counts, all moves are undone, except in a first assignment. A partition moves back to its
previous owner rather than to a third member.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ...metadata.cluster import TopicPartition
from .racks import rack_of, uses_racks
from .subscriptions import Assignment, Subscription, TopicRacks, consumers_of, java_sorted

__all__ = ["StickyBalancer"]


class StickyBalancer:
    """Computes an assignment for members with different subscriptions.

    `owned` has the current partitions of each member. `previous_owners` has the owners of
    partitions in an earlier generation.
    """

    def __init__(
        self,
        topics: TopicRacks,
        members: Mapping[str, Subscription],
        owned: Mapping[str, Sequence[TopicPartition]],
        previous_owners: Mapping[TopicPartition, str],
    ) -> None:
        self._topics = topics
        self._subscribed_topics = {
            member_id: topics.keys() & member.topics for member_id, member in members.items()
        }
        self._consumers = consumers_of(topics, members)
        self._racks = {member_id: rack_of(member) for member_id, member in members.items()}
        self._uses_racks = uses_racks(self._racks.values(), topics)
        self._previous_owners = previous_owners
        self._moves = _PartitionMoves()
        rank = {member_id: at for at, member_id in enumerate(java_sorted(members))}
        self._rank = rank
        self._by_rank = list(rank)
        self._owned: dict[str, dict[TopicPartition, None]] = {}
        self._owner: dict[TopicPartition, str] = {}
        self._must_revoke = False
        for member_id, its in owned.items():
            kept = {tp: None for tp in its if self._may_keep(member_id, tp)}
            self._must_revoke |= len(kept) < len(its)
            self._owned[member_id] = kept
            self._owner |= dict.fromkeys(kept, member_id)
        #: The number of partitions and the rank of each member that may gain or lose partitions.
        self._order: list[tuple[int, int]] = []

    def compute_assignment(self) -> Assignment:
        """Returns the partitions of each member."""
        owned = self._owned
        is_first_assignment = not any(owned.values())
        topics = sorted(java_sorted(self._topics), key=lambda topic: len(self._consumers[topic]))
        tps = [
            (topic, partition)
            for topic in topics
            for partition in range(len(self._topics[topic]))
            if self._consumers[topic]
        ]
        left = [tp for tp in tps if tp not in self._owner]
        self._order = sorted((len(its), self._rank[member]) for member, its in owned.items())
        rest = left
        if self._uses_racks:
            rest = [tp for tp in left if not self._assign(tp, self._is_in_rack)]
        for tp in rest:
            self._assign(tp, None)
        self._exclude_fixed_members()
        movable = [tp for tp in tps if len(self._consumers[tp[0]]) > 1]
        is_new = set(left)
        sizes = {member: len(its) for member, its in owned.items()}
        kept = {member: dict(its) for member, its in owned.items()}
        if not self._must_revoke:
            self._balance([tp for tp in movable if tp in is_new])
        moved = self._balance(movable)
        if (
            moved
            and not is_first_assignment
            and _imbalance(map(len, owned.values())) >= _imbalance(sizes.values())
        ):
            owned = kept
        return {member: list(its) for member, its in owned.items()}

    def _may_keep(self, member_id: str, tp: TopicPartition) -> bool:
        if tp[0] not in self._subscribed_topics[member_id]:
            return False
        return not self._uses_racks or self._is_in_rack(member_id, tp)

    def _is_in_rack(self, member_id: str, tp: TopicPartition) -> bool:
        rack = self._racks[member_id]
        return rack is None or rack in self._topics[tp[0]][tp[1]]

    def _least_loaded_subscriber(self, topic: str) -> str:
        """Returns the member with the fewest partitions among the subscribers of the topic."""
        for _, rank in self._order:
            if topic in self._subscribed_topics[self._by_rank[rank]]:
                return self._by_rank[rank]
        raise AssertionError("a movable topic has members that may gain partitions")

    def _assign(
        self, tp: TopicPartition, may: Callable[[str, TopicPartition], bool] | None
    ) -> bool:
        """Assigns `tp` to the subscribed member with the fewest partitions.

        `may` returns True if a member may have a partition. If `may` is None, each member may have
        `tp`. Returns False if no member may have `tp`.
        """
        for at, (count, rank) in enumerate(self._order):
            member_id = self._by_rank[rank]
            if tp[0] in self._subscribed_topics[member_id] and (may is None or may(member_id, tp)):
                del self._order[at]
                insort(self._order, (count + 1, rank))
                self._owned[member_id][tp] = None
                self._owner[tp] = member_id
                return True
        return False

    def _exclude_fixed_members(self) -> None:
        """Excludes the members that can neither get nor lose partitions.

        Such a member owns all partitions of its topics, and no other member subscribes to these
        topics.
        """
        self._order = [
            (count, rank)
            for count, rank in self._order
            if count < self._max_partitions(self._by_rank[rank])
            or any(len(self._consumers[topic]) > 1 for topic, _ in self._owned[self._by_rank[rank]])
        ]

    def _max_partitions(self, member_id: str) -> int:
        return sum(len(self._topics[topic]) for topic in self._subscribed_topics[member_id])

    def _balance(self, tps: Collection[TopicPartition]) -> bool:
        """Moves partitions from their owners to members that have at least two partitions fewer.

        Ends when no move improves the balance. Returns True if any partition moved.
        """
        has_moved = False
        is_even = self._is_balanced()
        moved = True
        while moved and not is_even:
            moved = False
            for tp in tps:
                if not self._move_if_better(tp):
                    continue
                moved = has_moved = True
                is_even = self._is_balanced()
                if is_even:
                    break
        return has_moved

    def _move_if_better(self, tp: TopicPartition) -> bool:
        """Moves `tp`, or an equivalent partition, from its owner to a member with fewer partitions.

        The receiving member is the previous owner of `tp`, if it subscribes to the topic and owns
        at least two partitions fewer than the present owner. Otherwise it is the subscriber with
        the fewest partitions. Returns False, and moves nothing, if that subscriber does not own at
        least two partitions fewer either.
        """
        topic = tp[0]
        owner = self._owner[tp]
        many = len(self._owned[owner])
        previous_owner = self._previous_owners.get(tp)
        if previous_owner is not None and topic in self._subscribed_topics[previous_owner]:
            to = previous_owner
            if many <= len(self._owned[to]) + 1:
                to = self._least_loaded_subscriber(topic)
        else:
            to = self._least_loaded_subscriber(topic)
        if many <= len(self._owned[to]) + 1:
            return False
        chosen = self._moves.partition_to_move(tp, owner, to)
        source = self._owner[chosen]
        self._moves.record(chosen, source, to)
        self._change_count(source, -1)
        self._change_count(to, 1)
        del self._owned[source][chosen]
        self._owned[to][chosen] = None
        self._owner[chosen] = to
        return True

    def _change_count(self, member_id: str, by: int) -> None:
        count = len(self._owned[member_id])
        rank = self._rank[member_id]
        del self._order[bisect_left(self._order, (count, rank))]
        insort(self._order, (count + by, rank))

    def _is_balanced(self) -> bool:
        """Returns True if no move of a partition improves the balance.

        A move improves the balance if the new owner has at least two partitions fewer than the old
        owner.
        """
        if not self._order or self._order[0][0] >= self._order[-1][0] - 1:
            return True
        most_of: dict[str, int] = {}
        for its in self._owned.values():
            count = len(its)
            for topic in {topic for topic, _ in its}:
                if count > most_of.get(topic, 0):
                    most_of[topic] = count
        return not any(
            count + 1 < most_of.get(topic, 0)
            for count, rank in self._order
            for topic in self._subscribed_topics[self._by_rank[rank]]
        )


class _PartitionMoves:
    """Stores the moves of partitions between pairs of members.

    `partition_to_move` uses the stored moves to avoid moves of a topic's partitions in both
    directions.
    """

    def __init__(self) -> None:
        self._by_partition: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[str, dict[tuple[str, str], dict[TopicPartition, None]]] = {}

    def partition_to_move(self, tp: TopicPartition, owner: str, to: str) -> TopicPartition:
        """Returns the partition to move from `owner` to `to`.

        It is a partition of the same topic that moved from `to` to `owner` before; `tp` if there is
        no such partition. If `tp` has moved before, the member that owned `tp` first counts as
        `owner`.
        """
        by_pair = self._by_topic.get(tp[0])
        if by_pair is None:
            return tp
        if tp in self._by_partition:
            owner = self._by_partition[tp][0]
        return next(iter(by_pair.get((to, owner), (tp,))))

    def record(self, tp: TopicPartition, source: str, to: str) -> None:
        """Stores the move of a partition from `source` to `to`.

        Several moves of a partition count as one move, from its first owner to its last owner.
        """
        first = source
        pair = self._by_partition.pop(tp, None)
        by_pair = self._by_topic.setdefault(tp[0], {})
        if pair is not None:
            first = pair[0]
            its = by_pair[pair]
            del its[tp]
            if not its:
                del by_pair[pair]
        if first != to:
            self._by_partition[tp] = (first, to)
            by_pair.setdefault((first, to), {})[tp] = None
        if not by_pair:
            del self._by_topic[tp[0]]


def _imbalance(sizes: Iterable[int]) -> int:
    """Returns the sum of the differences between all pairs of sizes."""
    in_order = sorted(sizes)
    last = len(in_order) - 1
    return sum(size * (2 * at - last) for at, size in enumerate(in_order))
