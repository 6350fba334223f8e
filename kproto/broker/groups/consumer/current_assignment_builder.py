"""Reconciles the current assignment of a member with its target assignment (KIP-848).

A partition moves to its new owner only after the former owner has revoked it. A member first
revokes the partitions that are not in its target assignment. The member epoch stays the same until
a heartbeat shows that these partitions are revoked. Then the member epoch becomes the epoch of the
target assignment, and the member gets the partitions of its target assignment that no other member
owns. The steps are those of Kafka's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from ....wire.uuid import Uuid
from .consumer_group_member import Assigned, ConsumerGroupMember, MemberState, Partitions

__all__ = ["is_within", "owns_any", "reconcile"]

_STABLE, _UNREVOKED, _UNRELEASED = MemberState


def reconcile(
    member: ConsumerGroupMember,
    target: Partitions,
    target_epoch: int,
    *,
    subscribed: Container[Uuid],
    unreleased: Container[tuple[Uuid, int]],
    owned: Partitions | None,
    has_changed: bool,
) -> ConsumerGroupMember:
    """Returns the member after one step of reconciliation; an equal member if nothing changes.

    `subscribed` are the ids of the topics that the member subscribes to. `unreleased` are the
    partitions that any member of the group may still read. `owned` are the partitions that the
    member's request reports as owned; None if the request does not have them. `has_changed` is True
    if the member's subscription has changed.
    """
    if member.state is _STABLE and member.epoch == target_epoch:
        return _revoke_unsubscribed(member, subscribed, owned) if has_changed else member
    if member.state is _UNREVOKED and owns_any(owned, member.revoking):
        return _revoke_unsubscribed(member, subscribed, owned) if has_changed else member
    return _reconcile_to_target(member, target, target_epoch, subscribed, unreleased, owned)


def owns_any(owned: Partitions | None, revoking: Assigned) -> bool:
    """Returns True if `owned` contains a partition of `revoking`, or if `owned` is None."""
    if owned is None:
        return True
    return any(its & revoking.get(topic_id, {}).keys() for topic_id, its in owned.items())


def is_within(owned: Partitions | None, assigned: Assigned) -> bool:
    """Returns True if `owned` is not None, and all its partitions are in `assigned`."""
    return owned is not None and all(
        its <= assigned.get(topic_id, {}).keys() and topic_id in assigned
        for topic_id, its in owned.items()
    )


def _revoke_unsubscribed(
    member: ConsumerGroupMember, subscribed: Container[Uuid], owned: Partitions | None
) -> ConsumerGroupMember:
    """Returns the member without the partitions of topics to which it no longer subscribes.

    The member must revoke these partitions at once, without waiting for the next target assignment.
    """
    unsubscribed = {it: its for it, its in member.assigned.items() if it not in subscribed}
    if not unsubscribed:
        return member
    retained = {it: its for it, its in member.assigned.items() if it not in unsubscribed}
    revoking = _merged(member.revoking, unsubscribed)
    if owns_any(owned, revoking):
        return replace(
            member,
            state=_UNREVOKED,
            previous_epoch=member.epoch,
            assigned=retained,
            revoking=revoking,
        )
    return replace(member, previous_epoch=member.epoch, assigned=retained)


def _merged(one: Assigned, other: Assigned) -> Assigned:
    return {it: {**one.get(it, {}), **other.get(it, {})} for it in {**one, **other}}


def _reconcile_to_target(
    member: ConsumerGroupMember,
    target: Partitions,
    target_epoch: int,
    subscribed: Container[Uuid],
    unreleased: Container[tuple[Uuid, int]],
    owned: Partitions | None,
) -> ConsumerGroupMember:
    retained: dict[Uuid, Mapping[int, int]] = {}
    revoking: dict[Uuid, Mapping[int, int]] = {}
    new: dict[Uuid, set[int]] = {}
    awaits_release = False
    for topic_id in {**target, **member.assigned}:
        targeted = target.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        current = member.assigned.get(topic_id, {})
        kept = {index: epoch for index, epoch in current.items() if index in targeted}
        removed = {index: epoch for index, epoch in current.items() if index not in targeted}
        added = {
            index
            for index in targeted - kept.keys()
            # The member may get a partition again that it is revoking itself.
            if (topic_id, index) not in unreleased or index in member.revoking.get(topic_id, ())
        }
        awaits_release = awaits_release or len(added) < len(targeted) - len(kept)
        if kept:
            retained[topic_id] = kept
        if removed:
            revoking[topic_id] = removed
        if added:
            new[topic_id] = added
    if revoking and owns_any(owned, revoking):
        return replace(
            member,
            state=_UNREVOKED,
            previous_epoch=member.epoch,
            assigned=retained,
            revoking=revoking,
        )
    # The order of Kafka's map: computeIfAbsent inserts a key before other keys of its bucket.
    retained = {**{it: {} for it in reversed(new) if it not in retained}, **retained}
    for topic_id, added in new.items():
        retained[topic_id] = {**retained.get(topic_id, {}), **dict.fromkeys(added, target_epoch)}
    return replace(
        member,
        state=_UNRELEASED if awaits_release else _STABLE,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=retained,
        revoking={},
    )
