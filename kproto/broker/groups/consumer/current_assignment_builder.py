"""Reconciles the current assignment of a member with its target assignment (KIP-848).

A partition moves to its new owner only after the old owner has revoked it. A member first revokes
the partitions outside its target, and stays at its epoch until a heartbeat shows that it has. Then
it moves to the epoch of the target, and gets those partitions that no other member owns. A plain
function on plain data, as Kafka's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from ....wire.uuid import Uuid
from .consumer_group_member import Assigned, ConsumerGroupMember, MemberState, Partitions

__all__ = ["holds_any", "is_within", "reconcile"]

_STABLE, _UNREVOKED, _UNRELEASED = MemberState


def reconcile(
    member: ConsumerGroupMember,
    target: Partitions,
    target_epoch: int,
    *,
    subscribed: Container[Uuid],
    taken: Container[tuple[Uuid, int]],
    owned: Partitions | None,
    has_changed: bool,
) -> ConsumerGroupMember:
    """Returns the member after one step of reconciliation; the same member if nothing changes.

    `subscribed` are the topics that the member subscribes to, `taken` the partitions that some
    member may still read, `owned` those that the member reports as owned, None if it does not
    report. `has_changed` says whether its subscription has changed.
    """
    if member.state is _STABLE and member.epoch == target_epoch:
        return _only_subscribed(member, subscribed, owned) if has_changed else member
    if member.state is _UNREVOKED and holds_any(owned, member.revoking):
        return _only_subscribed(member, subscribed, owned) if has_changed else member
    return _next(member, target, target_epoch, subscribed, taken, owned)


def holds_any(owned: Partitions | None, revoking: Assigned) -> bool:
    """Returns whether a member still owns partitions to revoke; yes if it does not report."""
    if owned is None:
        return True
    return any(its & revoking.get(topic_id, {}).keys() for topic_id, its in owned.items())


def is_within(owned: Partitions | None, assigned: Assigned) -> bool:
    """Returns whether the member reports only partitions that were assigned to it."""
    return owned is not None and all(
        its <= assigned.get(topic_id, {}).keys() and topic_id in assigned
        for topic_id, its in owned.items()
    )


def _only_subscribed(
    member: ConsumerGroupMember, subscribed: Container[Uuid], owned: Partitions | None
) -> ConsumerGroupMember:
    """Revokes partitions of unsubscribed topics before the next target assignment."""
    dropped = {it: its for it, its in member.assigned.items() if it not in subscribed}
    if not dropped:
        return member
    kept = {it: its for it, its in member.assigned.items() if it not in dropped}
    revoking = _joined(member.revoking, dropped)
    if holds_any(owned, revoking):
        return replace(
            member, state=_UNREVOKED, previous_epoch=member.epoch, assigned=kept, revoking=revoking
        )
    return replace(member, previous_epoch=member.epoch, assigned=kept)


def _joined(one: Assigned, other: Assigned) -> Assigned:
    return {it: {**one.get(it, {}), **other.get(it, {})} for it in {**one, **other}}


def _next(
    member: ConsumerGroupMember,
    target: Partitions,
    target_epoch: int,
    subscribed: Container[Uuid],
    taken: Container[tuple[Uuid, int]],
    owned: Partitions | None,
) -> ConsumerGroupMember:
    kept: dict[Uuid, Mapping[int, int]] = {}
    revoking: dict[Uuid, Mapping[int, int]] = {}
    new: dict[Uuid, set[int]] = {}
    waits = False
    for topic_id in {**target, **member.assigned}:
        wanted = target.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        has = member.assigned.get(topic_id, {})
        stays = {index: epoch for index, epoch in has.items() if index in wanted}
        goes = {index: epoch for index, epoch in has.items() if index not in wanted}
        comes = {
            index
            for index in wanted - stays.keys()
            # Partitions that the member itself revokes are free for it.
            if (topic_id, index) not in taken or index in member.revoking.get(topic_id, ())
        }
        waits = waits or len(comes) < len(wanted) - len(stays)
        if stays:
            kept[topic_id] = stays
        if goes:
            revoking[topic_id] = goes
        if comes:
            new[topic_id] = comes
    if revoking and holds_any(owned, revoking):
        return replace(
            member, state=_UNREVOKED, previous_epoch=member.epoch, assigned=kept, revoking=revoking
        )
    # Java's computeIfAbsent inserts a key before those in the same bucket.
    kept = {**{it: {} for it in reversed(new) if it not in kept}, **kept}
    for topic_id, comes in new.items():
        kept[topic_id] = {**kept.get(topic_id, {}), **dict.fromkeys(comes, target_epoch)}
    return replace(
        member,
        state=_UNRELEASED if waits else _STABLE,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=kept,
        revoking={},
    )
