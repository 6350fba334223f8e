"""Validates and applies the acknowledgements in ShareFetch and ShareAcknowledge (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from ...wire.errors import BrokerResponseError
from ...wire.uuid import Uuid
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..share import (
    AcknowledgementBatch,
    AcknowledgeType,
    RequestFailedError,
    SharePartitionKey,
    TopicIdPartition,
)
from ..topics import Topic

__all__ = ["acknowledge", "current_leader", "parse_batches", "readable_topic"]

#: The first version of ShareFetch and ShareAcknowledge with the acknowledge type RENEW.
_FIRST_VERSION_OF_RENEW: Final = 2


class WireBatch(Protocol):
    """Describes the acknowledgement batch of either request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


B = TypeVar("B", bound=WireBatch)


def readable_topic(context: Context, tp: TopicIdPartition) -> Topic:
    """Returns the topic of a partition.

    Raises UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED and UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = context.cluster.topics.with_id(tp.topic_id)
    check(context, Operation.READ, ResourceType.TOPIC, topic.name)
    topic.partition(tp.partition)
    return topic


def parse_batches(
    batches: Iterable[WireBatch], version: int, *, is_renew: bool
) -> list[AcknowledgementBatch]:
    """Returns the acknowledgement batches of a partition.

    Raises INVALID_REQUEST if the offsets of batches are not ascending, if the number of types is
    neither one nor that of the offsets, for an unknown type, and for RENEW in a request without
    `is_renew`.
    """
    highest = AcknowledgeType.REJECT
    if version >= _FIRST_VERSION_OF_RENEW:
        highest = AcknowledgeType.RENEW
    found: list[AcknowledgementBatch] = []
    previous = -1
    for it in batches:
        types = it.acknowledge_types or []
        is_valid = (
            previous <= it.first_offset <= it.last_offset
            and len(types) in (1, it.last_offset - it.first_offset + 1)
            and all(0 <= each <= highest for each in types)
            and (is_renew or AcknowledgeType.RENEW not in types)
        )
        if not is_valid:
            raise api_error("INVALID_REQUEST", "an acknowledgement batch is invalid")
        previous = it.last_offset
        found.append(AcknowledgementBatch(it.first_offset, it.last_offset, tuple(types)))
    return found


def acknowledge(
    context: Context,
    group_id: str,
    member_id: str,
    batches: Mapping[TopicIdPartition, Sequence[WireBatch]],
    version: int,
    *,
    is_renew: bool,
) -> dict[TopicIdPartition, BrokerResponseError | None]:
    """Applies acknowledgements; returns an error or None for each partition.

    As in Kafka, a partition without acknowledgements is in the result only if another partition
    has valid acknowledgements. Raises UNKNOWN_SERVER_ERROR if a batch fails the whole request; the
    acknowledgements of earlier partitions have taken effect.
    """
    results: dict[TopicIdPartition, BrokerResponseError | None] = {}
    empty: list[TopicIdPartition] = []
    has_any = False
    for tp, its in batches.items():
        results[tp] = None
        try:
            context.cluster.topics.with_id(tp.topic_id)
            parsed = parse_batches(its, version, is_renew=is_renew)
            topic = readable_topic(context, tp)
            if not parsed:
                empty.append(tp)
            else:
                has_any = True
                _acknowledge(context, SharePartitionKey(group_id, *tp), topic, member_id, parsed)
        except RequestFailedError as error:
            raise api_error("UNKNOWN_SERVER_ERROR", str(error)) from None
        except BrokerResponseError as error:
            results[tp] = error
    if not has_any:
        for tp in empty:
            del results[tp]
    return results


def _acknowledge(
    context: Context,
    key: SharePartitionKey,
    topic: Topic,
    member_id: str,
    batches: Sequence[AcknowledgementBatch],
) -> None:
    manager = context.share_partitions
    topic.check_leader(key.partition, context.node_id)
    renews = any(AcknowledgeType.RENEW in it.types for it in batches)
    if renews and not manager.config_of(key.group_id).allows_renew:
        raise api_error("INVALID_RECORD_STATE", "the group does not allow renewals")
    found = manager.find(key)
    if found is None:
        raise api_error("UNKNOWN_TOPIC_OR_PARTITION", "the group has not fetched the partition")
    found.acknowledge(member_id, batches, context.now)


def current_leader(context: Context, topic_id: Uuid, index: int) -> tuple[int, int] | None:
    """Returns node id and leader epoch of a partition's leader; None for an unknown partition."""
    try:
        partition = context.cluster.topics.with_id(topic_id).partition(index)
    except BrokerResponseError:
        return None
    return partition.leader_and_isr.leader, partition.log.epochs.current
