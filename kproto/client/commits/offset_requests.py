"""Builds OffsetCommit and OffsetFetch requests, and reads their responses, for every version.

v10 of both requests has topic ids only, so a request is sent in v10 only if all ids are known;
earlier versions have topic names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from ...messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ...messages.offset_commit_response import OffsetCommitResponse
from ...messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ...messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ...protocol.error_codes import error_of_code, raise_for_code
from ...wire.checks import check_whole_number
from ...wire.errors import BrokerResponseError, ConfigurationError, ProtocolError
from ...wire.uuid import ZERO_UUID, Uuid
from ..metadata.cluster import UNKNOWN_EPOCH, TopicPartition

__all__ = [
    "CommittedOffset",
    "Identity",
    "OffsetAndMetadata",
    "all_committed_in",
    "checked_commits",
    "commit_answers",
    "commit_requests",
    "committed_in",
    "committed_requests",
]

#: The largest offset (int64), and the largest leader epoch (int32).
_LAST_OFFSET: Final = 0x7FFF_FFFF_FFFF_FFFF
_LAST_EPOCH: Final = 0x7FFF_FFFF


class Identity(Protocol):
    """The member in a request; with `has_epoch`, `generation` is the member epoch (KIP-848)."""

    @property
    def member_id(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def instance_id(self) -> str | None: ...
    @property
    def has_epoch(self) -> bool: ...


class OffsetAndMetadata(NamedTuple):
    """The offset after the last processed record, and the leader epoch of that record.

    `topic_id` is all zeros if it is unknown. `metadata` is the text that is stored with the offset.
    """

    offset: int
    leader_epoch: int = UNKNOWN_EPOCH
    topic_id: Uuid = ZERO_UUID
    metadata: str = ""


class CommittedOffset(NamedTuple):
    """A commit of a partition; `offset` is the offset of the next record to be read.

    `leader_epoch` is the leader epoch of the record before this offset, -1 if it is unknown.
    `metadata` is the text that was committed with the offset.
    """

    offset: int
    leader_epoch: int
    metadata: str


def checked_commits(
    offsets: Mapping[TopicPartition, int | CommittedOffset],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Returns the offsets of a user for a commit.

    Raises ConfigurationError for invalid partitions, offsets and metadata.
    """
    found = {}
    for tp, given in offsets.items():
        match tp:
            case (str(), int()):
                found[tp] = _checked_commit(tp, given)
            case _:
                raise ConfigurationError(
                    f"{tp!r:.80} is no partition; it is written as (topic, number)"
                )
    return found


def _checked_commit(tp: TopicPartition, given: int | CommittedOffset) -> OffsetAndMetadata:
    if not isinstance(given, CommittedOffset):
        check_whole_number(f"the offset of {tp!r}", given, 0, _LAST_OFFSET)
        return OffsetAndMetadata(given)
    offset, leader_epoch, metadata = given
    check_whole_number(f"the offset of {tp!r}", offset, 0, _LAST_OFFSET)
    check_whole_number(f"the leader epoch of {tp!r}", leader_epoch, UNKNOWN_EPOCH, _LAST_EPOCH)
    if not isinstance(metadata, str):
        raise ConfigurationError(f"the metadata of {tp!r} is {metadata!r:.80}; it must be a str")
    return OffsetAndMetadata(offset, leader_epoch, metadata=metadata)


def commit_requests(
    group_id: str,
    identity: Identity | None,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    label: Callable[[OffsetAndMetadata], str],
) -> Iterator[OffsetCommitRequest]:
    """Yields requests that commit `offsets`, the request for the newest brokers first.

    `identity` is None if the client commits without being a member of the group. If all topic ids
    are known, the first request has topic ids instead of names (v10). The last request has topic
    names, and the metadata that `label` returns for each offset.
    """
    if all(its.topic_id != ZERO_UUID for its in offsets.values()):
        yield _commit_request(group_id, identity, offsets, by_id=True)
    with_labels = {tp: its._replace(metadata=label(its)) for tp, its in offsets.items()}
    yield _commit_request(group_id, identity, with_labels, by_id=False)


def _commit_request(
    group_id: str,
    identity: Identity | None,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    by_id: bool,
) -> OffsetCommitRequest:
    topics: dict[tuple[str, Uuid], OffsetCommitRequestTopic] = {}
    for (topic, partition), its in offsets.items():
        key = (topic, its.topic_id)
        if key not in topics:
            topics[key] = (
                OffsetCommitRequestTopic(topic_id=its.topic_id)
                if by_id
                else OffsetCommitRequestTopic(name=topic)
            )
        topics[key].partitions.append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=its.offset,
                committed_leader_epoch=its.leader_epoch,
                committed_metadata=its.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1 if identity is None else identity.generation,
        member_id="" if identity is None else identity.member_id,
        group_instance_id=None if identity is None else identity.instance_id,
        topics=topics.values(),
    )


def commit_answers(
    response: OffsetCommitResponse, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> dict[TopicPartition, BrokerResponseError | None]:
    """Returns the error of each partition in `offsets`, None if its offset was committed.

    Raises ProtocolError if the response lacks a partition.
    """
    names = {its.topic_id: topic for (topic, _), its in offsets.items() if its.topic_id}
    found: dict[TopicPartition, BrokerResponseError | None] = {}
    for topic in response.topics:
        name = topic.name or names.get(topic.topic_id, "")
        for part in topic.partitions:
            tp = (name, part.partition_index)
            what = f"committing an offset of {name}[{part.partition_index}]"
            code = part.error_code
            found[tp] = error_of_code(code, what) if code else None
    for topic_name, partition in offsets.keys() - found.keys():
        raise ProtocolError(f"the response to OffsetCommit lacks {topic_name}[{partition}]")
    return {tp: found[tp] for tp in offsets}


def committed_requests(
    group_id: str,
    tps: Iterable[TopicPartition] | None,
    id_of: Callable[[str], Uuid],
    identity: Identity | None = None,
) -> Iterator[OffsetFetchRequest]:
    """Yields alternative requests for the committed offsets of `tps`; None means all partitions.

    The first request is for the newest brokers; the caller sends the first request that the
    coordinator supports. `id_of` returns the id of a topic, all zeros if it is unknown. `identity`
    is the identity of a member with an epoch, or None; from v9 on the coordinator refuses a stale
    epoch (KIP-848). Brokers that support `require_stable` refuse to return an offset while a
    transaction that commits it is pending (KIP-447).
    """
    by_topic: dict[str, list[int]] = {}
    for topic, partition in tps or ():
        by_topic.setdefault(topic, []).append(partition)
    topics = [
        OffsetFetchRequestTopics(name=name, topic_id=id_of(name), partition_indexes=partitions)
        for name, partitions in by_topic.items()
    ]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=None if tps is None else topics)
    if identity is not None:
        group.member_id, group.member_epoch = identity.member_id, identity.generation
    yield OffsetFetchRequest(groups=[group], require_stable=True)  # v8 on (KIP-709)
    for require_stable in (True, False):  # v7, and before
        yield OffsetFetchRequest(
            group_id=group_id,
            topics=None
            if tps is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=partitions)
                for name, partitions in by_topic.items()
            ],
            require_stable=require_stable,
        )


def committed_in(
    response: OffsetFetchResponse,
    group_id: str,
    tps: Iterable[TopicPartition],
    id_of: Callable[[str], Uuid],
) -> dict[TopicPartition, CommittedOffset | None]:
    """Returns the committed offset of each requested partition; None if there is none.

    Raises BrokerResponseError for the first error, ProtocolError if a partition is missing.
    """
    tps = list(tps)
    names = {id_of(topic): topic for topic, _ in tps}
    found = all_committed_in(response, group_id, lambda topic_id: names.get(topic_id, ""))
    for name, partition in tps:
        if (name, partition) not in found:
            raise ProtocolError(f"the response to OffsetFetch lacks {name}[{partition}]")
    return {tp: found[tp] for tp in tps}


def all_committed_in(
    response: OffsetFetchResponse, group_id: str, name_of: Callable[[Uuid], str]
) -> dict[TopicPartition, CommittedOffset | None]:
    """Returns the committed offset of each partition in a response; None if there is none.

    `name_of` returns the name of a topic, which a response of v10 lacks. Raises BrokerResponseError
    for the first error.
    """
    what = f"fetching committed offsets of group {group_id!r}"
    topics: list[OffsetFetchResponseTopic] | list[OffsetFetchResponseTopics] = response.topics
    code = response.error_code
    for group in response.groups:
        if group.group_id == group_id:
            topics, code = group.topics, group.error_code
    raise_for_code(code, what)
    found: dict[TopicPartition, CommittedOffset | None] = {}
    for topic in topics:
        name = topic.name or name_of(getattr(topic, "topic_id", ZERO_UUID))
        for part in topic.partitions:
            raise_for_code(part.error_code, f"{what}, of {name}[{part.partition_index}]")
            known = CommittedOffset(
                part.committed_offset, part.committed_leader_epoch, part.metadata or ""
            )
            found[name, part.partition_index] = known if known.offset >= 0 else None
    return found
