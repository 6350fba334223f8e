"""Validates OffsetCommit and OffsetFetch by the member epochs of a consumer-protocol group.

The order of checks is that of Kafka's ConsumerGroup. A commit with an epoch below the member epoch
is accepted if the member has owned the partition since the epoch of the commit (KIP-1251).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....wire.errors import BrokerResponseError
from ....wire.uuid import Uuid
from ...api_error import api_error
from .consumer_group import ConsumerGroup
from .consumer_group_member import ConsumerGroupMember

__all__ = ["validate_offset_commit", "validate_offset_fetch", "validate_transactional_commit"]

#: The first version of OffsetCommit in which a member can send its epoch.
_FIRST_VERSION_OF_EPOCHS: Final = 9

#: The first version of TxnOffsetCommit with STALE_MEMBER_EPOCH (KIP-1319).
_FIRST_TRANSACTIONAL_VERSION_OF_STALE: Final = 6


def validate_offset_commit(
    group: ConsumerGroup,
    member_id: str,
    epoch: int,
    version: int,
    partitions: Iterable[tuple[Uuid, int]],
) -> None:
    """Checks whether a member may commit offsets of `partitions`.

    `version` is the version of OffsetCommit. Admin clients, and consumers that are not members,
    send an epoch below 0. Such clients may commit if the group has no members. Raises
    UNKNOWN_MEMBER_ID for an unknown member, and UNSUPPORTED_VERSION for v0 to v8 from a member of
    the consumer protocol. Raises STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION for a member of the
    classic protocol, if the epoch is above the member's epoch. Raises the same error if the epoch
    is below the member's epoch, and a partition is not assigned to the member or was assigned after
    `epoch` (KIP-1251).
    """
    if epoch < 0 and not group.members:
        return
    member = group.check_member(member_id, None)
    if member.classic is None and version < _FIRST_VERSION_OF_EPOCHS:
        raise api_error(
            "UNSUPPORTED_VERSION",
            "OffsetCommit version 9 or above must be used by members using the consumer group "
            "protocol",
        )
    _check_epoch(member, epoch, partitions)


def validate_transactional_commit(
    group: ConsumerGroup,
    member_id: str,
    epoch: int,
    instance_id: str | None,
    version: int,
    partitions: Iterable[tuple[Uuid, int]],
) -> None:
    """Checks whether a TxnOffsetCommit is allowed (KIP-447).

    A producer without the metadata of a consumer group sends an epoch below 0 and no member: such a
    producer may always commit. For any other producer, raises the errors of
    `validate_offset_commit` except UNSUPPORTED_VERSION. If `version`, the version of
    TxnOffsetCommit, is below 6, raises ILLEGAL_GENERATION instead of STALE_MEMBER_EPOCH.
    """
    if epoch < 0 and not group.members:
        return
    if epoch < 0 and not member_id and instance_id is None:
        return
    member = group.check_member(member_id, None)
    try:
        _check_epoch(member, epoch, partitions)
    except BrokerResponseError as error:
        if version >= _FIRST_TRANSACTIONAL_VERSION_OF_STALE:
            raise
        raise api_error("ILLEGAL_GENERATION", error.detail) from None


def _check_epoch(
    member: ConsumerGroupMember, epoch: int, partitions: Iterable[tuple[Uuid, int]]
) -> None:
    if epoch == member.epoch:
        return
    if epoch > member.epoch:
        raise api_error(_error(member), f"epoch {epoch} is newer than that of the member")
    for topic_id, index in partitions:
        since = member.assigned.get(topic_id, {}).get(index)
        if since is None:
            since = member.revoking.get(topic_id, {}).get(index)
        if since is None or epoch < since:
            raise api_error(
                _error(member),
                f"epoch {epoch} is older than the assignment of partition {index} of {topic_id}",
            )


def validate_offset_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Checks whether a client may fetch offsets.

    An admin client, which sends neither member id nor epoch, may always fetch offsets. Raises
    UNKNOWN_MEMBER_ID for an unknown member. If the epoch is not the member epoch, raises
    STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION for a member of the classic protocol.
    """
    if member_id is None and epoch < 0:
        return
    member = group.check_member(member_id or "", None)
    if epoch != member.epoch:
        raise api_error(_error(member), f"epoch {epoch} is not that of the member, {member.epoch}")


def _error(member: ConsumerGroupMember) -> str:
    return "STALE_MEMBER_EPOCH" if member.classic is None else "ILLEGAL_GENERATION"
