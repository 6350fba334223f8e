"""Sends requests about committed offsets to a real and to the embedded broker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from kproto.messages.base import Message
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kproto.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto.messages.produce_request import ProduceRequest
from kproto.records import Record, read_batches
from kproto.stored.coordinator_records import CoordinatorRecord, decode_coordinator_record
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.support.batches import batch_bytes

from .conversations import NOBODY, Said
from .talk import PATIENCE_S, Talk, error

__all__ = ["OFFSET_CONVERSATIONS", "Commit", "Offsets", "offset_records", "stored_offsets"]

OFFSETS = "__consumer_offsets"

#: A time in 2023. A timestamp that a broker sets now is later.
SOME_TIME_AGO_MS = 1_700_000_000_000

#: The last version of OffsetFetch that names topics by name. Later versions use topic ids, and omit
#: topics whose id no longer exists.
LAST_BY_NAME = 9

#: Version 0 of OffsetCommit and OffsetFetch used offsets in ZooKeeper, which KRaft does not have.
FIRST_IN_KAFKA = 1

#: A partition of a commit: topic, partition, offset, leader epoch, metadata.
Commit = tuple[str, int, int, int, str | None]


class Offsets:
    """Commits and fetches offsets; arguments and results do not depend on the API version."""

    def __init__(self, talk: Talk, *names: str) -> None:
        self.talk = talk
        self.ids = {name: talk.topic_id(name) for name in names}
        self.names = {topic_id: name for name, topic_id in self.ids.items()}

    def group(self, start: str) -> str:
        """Waits until a new group has a coordinator; returns the group id."""
        group = self.talk.name(start)
        deadline = time.monotonic() + PATIENCE_S
        while self._waits(group):
            assert time.monotonic() < deadline, "the coordinator did not start"
            time.sleep(0.05)
        return group

    def _waits(self, group: str) -> bool:
        found = self.talk.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4)
        if found.coordinators[0].error_code:
            return True
        wanted = OffsetFetchRequestGroup(group_id=group, topics=[])
        (answered,) = self.talk.ask(OffsetFetchRequest(groups=[wanted]), 8).groups
        return bool(answered.error_code)

    def commit(
        self,
        version: int,
        group: str,
        *commits: Commit,
        generation: int = -1,
        member: str = "",
        instance: str | None = None,
        retention_ms: int = -1,
        at_ms: int = -1,
        none_of: str = "",
    ) -> object:
        """Commits offsets; returns the error name of each partition, in the response's order.

        Returns "closed" if the broker closed the connection. If `none_of` is a topic of the
        commits, the request has this topic without partitions.
        """
        topics = [
            OffsetCommitRequestTopic(
                name=name if version < 10 else "",
                topic_id=self.ids.get(name, NOBODY) if version >= 10 else ZERO_UUID,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=epoch,
                        commit_timestamp=at_ms,
                        committed_metadata=metadata,
                    )
                    for _, partition, offset, epoch, metadata in its
                    if name != none_of
                ],
            )
            for name, its in groupby(commits, key=lambda commit: commit[0])
        ]
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=topics,
        )
        answer = self.talk.ask(request, version)
        if answer is None:
            return "closed"
        return [
            (
                self._named(topic),
                [(it.partition_index, error(it.error_code)) for it in topic.partitions],
            )
            for topic in answer.topics
        ]

    def fetch(
        self,
        version: int,
        group: str,
        topics: Sequence[tuple[str, Sequence[int]]] | None,
        *,
        stable: bool = False,
        member: str | None = None,
        epoch: int = -1,
    ) -> object:
        """Returns the error name of the group, and its committed offsets.

        If `topics` is None, returns the offsets of all topics, sorted. Returns "closed" if the
        broker closed the connection.
        """
        if version >= 8:
            wanted = self._wanted(version, group, topics, member, epoch)
            (found,) = self.talk.ask(
                OffsetFetchRequest(groups=[wanted], require_stable=stable), version
            ).groups
            assert found.group_id == group
        else:
            request = OffsetFetchRequest(
                group_id=group,
                topics=None
                if topics is None
                else [
                    OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                    for name, indexes in topics
                ],
            )
            if version >= 7:
                request.require_stable = stable
            found = self.talk.ask(request, version)
            if found is None:
                return "closed"
        return self.shown(found, in_order=topics is not None)

    def _wanted(
        self,
        version: int,
        group: str,
        topics: Sequence[tuple[str, Sequence[int]]] | None,
        member: str | None,
        epoch: int,
    ) -> OffsetFetchRequestGroup:
        return OffsetFetchRequestGroup(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            topics=None
            if topics is None
            else [
                OffsetFetchRequestTopics(
                    name=name if version < 10 else "",
                    topic_id=self.ids.get(name, NOBODY) if version >= 10 else ZERO_UUID,
                    partition_indexes=indexes,
                )
                for name, indexes in topics
            ],
        )

    def fetch_of_many(self, version: int, *groups: str) -> object:
        """Returns, for each group, its name, its error name, and all its committed offsets."""
        wanted = [self._wanted(version, group, None, None, -1) for group in groups]
        found = self.talk.ask(OffsetFetchRequest(groups=wanted), version).groups
        return [(self.plain(it.group_id), self.shown(it, in_order=False)) for it in found]

    def shown(self, found: Any, *, in_order: bool) -> object:
        topics = [
            (
                self._named(topic),
                [
                    (
                        it.partition_index,
                        it.committed_offset,
                        it.committed_leader_epoch,
                        it.metadata,
                        error(it.error_code),
                    )
                    for it in (
                        topic.partitions
                        if in_order
                        else sorted(topic.partitions, key=lambda it: it.partition_index)
                    )
                ],
            )
            for topic in found.topics
        ]
        return error(found.error_code), topics if in_order else sorted(topics)

    def delete(self, group: str, *topics: tuple[str, Sequence[int]]) -> object:
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                    ],
                )
                for name, indexes in topics
            ],
        )
        answer = self.talk.ask(request, 0)
        return error(answer.error_code), [
            (
                self.plain(topic.name),
                [(it.partition_index, error(it.error_code)) for it in topic.partitions],
            )
            for topic in answer.topics
        ]

    def _named(self, topic: Any) -> tuple[str, str]:
        """Returns how the response identifies the topic ("name" or "id"), and the topic's name."""
        by_id = getattr(topic, "topic_id", ZERO_UUID)
        if by_id == ZERO_UUID:
            return "name", self.plain(topic.name)
        assert not topic.name
        return "id", self.plain(self.names.get(by_id, str(by_id)))

    def plain(self, name: str) -> str:
        """Returns a name without the suffix of this test run."""
        return name.removesuffix(self.talk.name(""))


def committing_offsets(talk: Talk) -> Said:
    name = talk.create("committed", 2)
    they = Offsets(talk, name)
    fine: Commit = (name, 0, 7, -1, "m")
    for version in talk.versions(OffsetCommitRequest, FIRST_IN_KAFKA):
        group = they.group(f"c{version}")

        def say(*commits: Commit, to: str = group, version: int = version, **how: Any) -> object:
            return they.commit(version, to, *commits, **how)

        yield (version, "unknown, with a generation"), say(fine, generation=0, member="x")
        yield (version, "unknown, generation 5"), say(fine, generation=5)
        yield (version, "no topics"), say()
        yield (version, "no partitions"), say(fine, none_of=name)
        yield (version, "nothing that exists"), say(("nope", 0, 1, -1, ""), (name, 2, 1, -1, ""))
        yield (version, "simple"), say(fine)
        yield (version, "empty, generation 0"), say(fine, generation=0)
        yield (version, "empty, generation 0 of x"), say(fine, generation=0, member="x")
        yield (version, "empty, member x alone"), say(fine, member="x")
        yield (version, "generation -2"), say(fine, generation=-2, member="x")
        if version >= 7:
            yield (version, "instance"), say(fine, instance="i")
            yield (version, "instance and generation"), say(fine, instance="i", generation=0)
        yield (
            (version, "some of them"),
            say(
                ("nope", 1, 1, -1, ""),
                (name, 1, 11, -1, ""),
                (name, 2, 1, -1, ""),
                (name, -1, 1, -1, ""),
                (name, 0, 12, -1, "x" * 4097),
            ),
        )
        yield (
            (version, "metadata"),
            say((name, 0, 13, -1, "\U0001f600" * 2048), (name, 1, 14, -1, None)),
        )
        yield (version, "more metadata"), say((name, 0, 15, -1, "\U0001f600" * 2048 + "x"))
        yield (version, "negative"), say((name, 0, -2, -1, "below"))
        yield (version, "twice"), say((name, 0, 20, -1, "a"), (name, 0, 21, -1, "b"))
        if version >= 6:
            yield (version, "epoch"), say((name, 1, 30, 4, "e"))
        if 2 <= version <= 4:
            yield (version, "kept an hour"), say((name, 1, 31, -1, "h"), retention_ms=3_600_000)
        yield (version, "no group"), say(fine, to="")
        # The newest OffsetFetch version of both brokers returns the stored offsets.
        fetch = talk.versions(OffsetFetchRequest)[-1]
        yield (version, "kept"), they.fetch(fetch, group, [(name, [0, 1, 2])])


def fetching_offsets(talk: Talk) -> Said:
    name, other = talk.create("fetched", 2), talk.create("fetched-too")
    they = Offsets(talk, name, other)
    group, empty, nobody = they.group("f"), they.group("f-empty"), they.group("f-nobody")
    commit = talk.versions(OffsetCommitRequest)[-1]
    they.commit(commit, group, (name, 0, 5, 3, "m"), (name, 1, 6, -1, ""), (other, 0, 7, 0, "o"))
    they.commit(commit, empty, (name, 0, 5, -1, "x" * 5000))
    for version in talk.versions(OffsetFetchRequest, FIRST_IN_KAFKA):

        def say(
            topics: Sequence[tuple[str, Sequence[int]]] | None,
            of: str = group,
            version: int = version,
            **how: Any,
        ) -> object:
            return they.fetch(version, of, topics, **how)

        yield (version, "some"), say([(name, [1, 0, 5]), ("nope", [0]), (other, [0])])
        yield (version, "twice"), say([(name, [0, 0]), (name, [1])])
        yield (version, "none"), say([])
        yield (version, "no partitions"), say([(name, [])])
        yield (version, "of an empty group"), say([(name, [0])], empty)
        yield (version, "of an unknown group"), say([(name, [0])], nobody)
        yield (version, "of no name"), say([(name, [1])], "")
        if version >= 2:
            yield (version, "all"), say(None)
            yield (version, "all of an empty group"), say(None, empty)
            yield (version, "all of an unknown group"), say(None, nobody)
        if version >= 7:
            yield (version, "stable"), say([(name, [0])], stable=True)
            yield (version, "all stable"), say(None, stable=True)
        if version >= 8:
            yield (version, "many"), they.fetch_of_many(version, group, nobody, group, empty)
        if version >= 9:
            yield (version, "member"), say([(name, [0])], member="x", epoch=3)
            yield (
                (version, "member of an unknown group"),
                say([(name, [0])], nobody, member="x", epoch=3),
            )
        if version >= 10:  # Kafka 3.9 never answers an OffsetFetch without groups
            yield (version, "no groups"), they.fetch_of_many(version)
    talk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000), 6)
    deadline = time.monotonic() + PATIENCE_S
    while f"'{they.plain(name)}'" in str(they.fetch(LAST_BY_NAME, group, None)):
        assert time.monotonic() < deadline, "the offsets of a deleted topic are still there"
        time.sleep(0.05)
    for version in talk.versions(OffsetFetchRequest, 2):
        yield (version, "topic deleted"), they.fetch(version, group, [(name, [0]), (other, [0])])
        yield (version, "of what is left"), they.fetch(version, group, None)


def deleting_offsets(talk: Talk) -> Said:
    name, other = talk.create("deleted", 2), talk.create("deleted-too")
    they = Offsets(talk, name, other)
    group, nobody = they.group("d"), they.group("d-nobody")
    commit = talk.versions(OffsetCommitRequest)[-1]
    fetch = talk.versions(OffsetFetchRequest)[-1]
    they.commit(commit, group, (name, 0, 5, 3, "m"), (name, 1, 6, -1, ""), (other, 0, 7, 0, "o"))
    yield "of an unknown group", they.delete(nobody, (name, [0]))
    yield "of an unknown group, nothing", they.delete(nobody)
    yield "of an unknown group, no topic", they.delete(nobody, ("nope", [0]))
    yield "of no name", they.delete("", (name, [0]))
    yield "nothing", they.delete(group)
    yield (
        "topics and partitions that do not exist",
        they.delete(group, ("nope", [0]), (name, [2, -1])),
    )
    yield "all is left", they.fetch(fetch, group, None)
    yield "some", they.delete(group, (name, [1, 2]), ("nope", [0]), (other, []))
    yield "again", they.delete(group, (name, [1]))
    yield "what is left", they.fetch(fetch, group, None)
    yield "twice", they.delete(group, (name, [0, 0]))
    yield "the last", they.delete(group, (other, [0]))
    yield "nothing is left", they.fetch(fetch, group, None)
    yield "of an empty one", they.delete(group, (other, [0]))
    yield "an empty group takes commits", they.commit(commit, group, (other, 0, 9, -1, ""))


def keeping_to_the_topic(talk: Talk) -> Said:
    """Yields the results of requests to `__consumer_offsets`; the broker refuses some of them."""
    they = Offsets(talk)
    they.group("t")
    for version in talk.versions(MetadataRequest, 1):
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS)])
        (topic,) = talk.ask(wanted, version).topics
        yield (
            (version, "described"),
            (
                error(topic.error_code),
                topic.name,
                topic.is_internal,
                sorted(it.partition_index for it in topic.partitions)
                == list(range(len(topic.partitions))),
                {(it.leader_id, tuple(it.replica_nodes)) for it in topic.partitions},
            ),
        )
        every = talk.ask(MetadataRequest(topics=None), version).topics
        yield (
            (version, "listed"),
            [it.name for it in every if it.is_internal and it.name == OFFSETS],
        )
    topic_id = talk.topic_id(OFFSETS)
    yield "produced", error(talk.append(OFFSETS, batch_bytes()).error_code)
    for version in talk.versions(ProduceRequest, 13):
        answered = talk.produce("", topic_id, batch_bytes(), version=version)
        yield "produced by id", error(answered.error_code)
    yield (
        "produced to no partition",
        error(talk.produce(OFFSETS, ZERO_UUID, batch_bytes(), version=9, partition=99).error_code),
    )
    yield (
        "produced with acks 7",
        error(talk.produce(OFFSETS, ZERO_UUID, batch_bytes(), version=9, acks=7).error_code),
    )
    created = talk.ask(
        CreateTopicsRequest(
            topics=[CreatableTopic(name=OFFSETS, num_partitions=1, replication_factor=1)],
            timeout_ms=10_000,
        ),
        7,
    )
    yield "created", [error(it.error_code) for it in created.topics]
    topic = DeleteRecordsTopic(name=OFFSETS, partitions=[DeleteRecordsPartition(offset=0)])
    deleted = talk.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), 2)
    yield "records deleted", [error(it.error_code) for it in deleted.topics[0].partitions]
    names = ["cleanup.policy", "compression.type", "segment.bytes"]
    asked = DescribeConfigsResource(
        resource_type=2, resource_name=OFFSETS, configuration_keys=names
    )
    (found,) = talk.ask(DescribeConfigsRequest(resources=[asked]), 4).results
    yield "settings", sorted((it.name, it.value, it.config_source) for it in found.configs)


def storing_offsets(talk: Talk) -> Said:
    """Commits and deletes offsets with each OffsetCommit version.

    Yields each version with the records that the coordinator then wrote to `__consumer_offsets`.
    """
    name = talk.create("stored", 2)
    they = Offsets(talk, name)
    for version in talk.versions(OffsetCommitRequest, FIRST_IN_KAFKA):
        group = they.group(f"s{version}")
        they.commit(version, group, (name, 0, 5, -1, "m"), (name, 1, 6, -1, None))
        epoch = 3 if version >= 6 else -1
        they.commit(version, group, (name, 0, 8, epoch, "\u00e9"), (name, 7, 6, -1, None))
        if 2 <= version <= 4:
            they.commit(version, group, (name, 0, 9, -1, "h"), retention_ms=3_600_000)
        they.commit(version, group, generation=-1)
        they.delete(group, (name, [0, 5]))
        yield version, list(stored_offsets(talk, group, they))


def stored_offsets(talk: Talk, group: str, they: Offsets) -> Iterator[tuple[object, ...]]:
    """Yields each `__consumer_offsets` record of a group, decoded, as a tuple.

    The last item of the tuple is the record count of the record's batch. A timestamp is shown as
    whether it is set. The value of a tombstone is None.
    """
    for record, size in offset_records(talk):
        found = decode_coordinator_record(record, topic=OFFSETS)
        assert isinstance(found, CoordinatorRecord)
        if getattr(found.key, "group", None) != group:
            continue
        assert record.timestamp > SOME_TIME_AGO_MS
        yield (
            type(found.key).__name__,
            found.version,
            shown_fields(found.key, they),
            None if found.value is None else shown_fields(found.value, they),
            list(record.headers),
            size,
        )


def shown_fields(message: Message, they: Offsets) -> object:
    shown: dict[str, object] = {}
    for name in map(str, message.__slots__):
        value = getattr(message, name)
        if name in ("group", "topic"):
            value = they.plain(value)
        elif name == "topic_id":
            value = they.plain(they.names.get(value, str(value)))
        elif name in ("commit_timestamp", "expire_timestamp"):
            value = value > 0
        shown[name] = value
    return shown


def offset_records(talk: Talk) -> Iterable[tuple[Record, int]]:
    """Yields each record of `__consumer_offsets`, with the record count of its batch.

    Omits control batches: on a shared broker other groups may commit in transactions.
    """
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS)])
    (topic,) = talk.ask(wanted, 12).topics
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=1 << 26,
        topics=[
            FetchTopic(
                topic_id=Uuid(topic.topic_id),
                partitions=[
                    FetchPartition(partition=it.partition_index, partition_max_bytes=1 << 24)
                    for it in topic.partitions
                ],
            )
        ],
        session_epoch=-1,
    )
    answer = talk.ask(request, 13)
    for part in answer.responses[0].partitions:
        assert not part.error_code
        for batch in read_batches(part.records or b""):
            if batch.is_control:
                continue
            for record in batch.records():
                yield record, batch.record_count


OFFSET_CONVERSATIONS = (
    committing_offsets,
    fetching_offsets,
    deleting_offsets,
    keeping_to_the_topic,
    storing_offsets,
)
