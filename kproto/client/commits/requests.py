"""OffsetCommit and OffsetFetch as plain data, at every version: what to ask, and what came.

Requests name topics by name and, where it is known, by id. So the highest version is negotiated
that says what is meant: v10 of both, which knows ids alone, only where all ids are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

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
from ...wire.errors import BrokerResponseError, ProtocolError
from ...wire.uuid import ZERO_UUID, Uuid
from ..metadata.cluster import UNKNOWN_EPOCH, TopicPartition

__all__ = [
    "CommittedOffset",
    "Identity",
    "ToCommit",
    "commit_answers",
    "commit_requests",
    "committed_in",
    "committed_requests",
]


class Identity(Protocol):
    """A member of a group in a generation, or, if it `has_epoch`, at a member epoch (KIP-848)."""

    @property
    def member_id(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def instance_id(self) -> str | None: ...
    @property
    def has_epoch(self) -> bool: ...


class ToCommit(NamedTuple):
    """The offset behind the last record that is done, and the leader epoch of that record.

    `topic_id` is all zeros where it is not known.
    """

    offset: int
    leader_epoch: int = UNKNOWN_EPOCH
    topic_id: Uuid = ZERO_UUID
    metadata: str = ""


class CommittedOffset(NamedTuple):
    """What a group has committed of a partition: the `offset` of the record to be read next.

    `leader_epoch` is that of the record before it, -1 where it is not known; `metadata` the text
    that was given with it.
    """

    offset: int
    leader_epoch: int
    metadata: str


def commit_requests(
    group_id: str,
    identity: Identity | None,
    offsets: Mapping[TopicPartition, ToCommit],
    label: Callable[[ToCommit], str],
) -> Iterator[OffsetCommitRequest]:
    """Commit `offsets` for a member; without one for a group that has none.

    What newer brokers take stands first: topics by their ids alone (v10). Others know their names,
    and the metadata is what `label` makes of it.
    """
    if all(its.topic_id != ZERO_UUID for its in offsets.values()):
        yield _commit_request(group_id, identity, offsets, by_id=True)
    told = {tp: its._replace(metadata=label(its)) for tp, its in offsets.items()}
    yield _commit_request(group_id, identity, told, by_id=False)


def _commit_request(
    group_id: str,
    identity: Identity | None,
    offsets: Mapping[TopicPartition, ToCommit],
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
    response: OffsetCommitResponse, offsets: Mapping[TopicPartition, ToCommit]
) -> dict[TopicPartition, BrokerResponseError | None]:
    """What is wrong with each of `offsets`, which were asked for; None where it is committed.

    Raises ProtocolError where the response lacks one.
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
    tps: Iterable[TopicPartition],
    id_of: Callable[[str], Uuid],
    identity: Identity | None = None,
) -> Iterator[OffsetFetchRequest]:
    """Ask what `group_id` has committed of `tps`: what newer brokers take stands first.

    A member that has an epoch, of that `identity`, hears where it is one no more (v9 on, KIP-848).
    Offsets that a transaction holds are to be waited for (KIP-447), where the broker can tell.
    """
    by_topic: dict[str, list[int]] = {}
    for topic, partition in tps:
        by_topic.setdefault(topic, []).append(partition)
    topics = [
        OffsetFetchRequestTopics(name=name, topic_id=id_of(name), partition_indexes=partitions)
        for name, partitions in by_topic.items()
    ]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    if identity is not None:
        group.member_id, group.member_epoch = identity.member_id, identity.generation
    yield OffsetFetchRequest(groups=[group], require_stable=True)  # v8 on (KIP-709)
    for require_stable in (True, False):  # v7, and before
        yield OffsetFetchRequest(
            group_id=group_id,
            topics=[
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
    """What a response says of each of `tps`, which were asked for; None where nothing was.

    Raises BrokerResponseError for the first error, ProtocolError where one of them is missing.
    """
    tps = list(tps)
    what = f"asking what group {group_id!r} has committed"
    topics: list[OffsetFetchResponseTopic] | list[OffsetFetchResponseTopics] = response.topics
    code = response.error_code
    for group in response.groups:
        if group.group_id == group_id:
            topics, code = group.topics, group.error_code
    raise_for_code(code, what)
    names = {id_of(topic): topic for topic, _ in tps}
    found: dict[TopicPartition, CommittedOffset | None] = {}
    for topic in topics:
        name = topic.name or names.get(getattr(topic, "topic_id", ZERO_UUID), "")
        for part in topic.partitions:
            raise_for_code(part.error_code, f"{what} of {name}[{part.partition_index}]")
            known = CommittedOffset(
                part.committed_offset, part.committed_leader_epoch, part.metadata or ""
            )
            found[name, part.partition_index] = known if known.offset >= 0 else None
    for name, partition in tps:
        if (name, partition) not in found:
            raise ProtocolError(f"the response to OffsetFetch lacks {name}[{partition}]")
    return {tp: found[tp] for tp in tps}
