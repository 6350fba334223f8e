"""Sends requests to a real and to the embedded broker for comparison, one function per feature.

A conversation sends its requests in every version that both brokers support. It yields a name and
the fields of each response that must be equal for both brokers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kproto.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.messages.produce_response import PartitionProduceResponse
from kproto.records import read_batches
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.support.batches import batch_bytes, patched
from tests.support.raw_connection import ClosedByBrokerError, RawConnection

from .talk import PATIENCE_S, Talk, error

__all__ = ["CONVERSATIONS", "NAMED_TWICE", "Said"]

Said: TypeAlias = Iterator[tuple[object, object]]

NOBODY = Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")


def creating(talk: Talk) -> Said:
    def create(
        start: str,
        version: int = 7,
        *,
        partitions: int = 1,
        replicas: int = 1,
        assigned: Iterable[CreatableReplicaAssignment] = (),
        setting: tuple[str, str | None] | None = None,
        times: int = 1,
        validate_only: bool = False,
    ) -> object:
        configs = [CreatableTopicConfig(name=setting[0], value=setting[1])] if setting else []
        topic = CreatableTopic(
            name=start,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=assigned,
            configs=configs,
        )
        request = CreateTopicsRequest(
            topics=[topic] * times, timeout_ms=10_000, validate_only=validate_only
        )
        return [
            (
                error(found.error_code),
                bool(found.error_message),
                found.topic_id != ZERO_UUID,
                found.num_partitions,
                found.replication_factor,
                found.topic_config_error_code,
            )
            for found in talk.ask(request, version).topics
        ]

    for version in talk.versions(CreateTopicsRequest, 1):
        name = talk.name(f"v{version}")
        yield (version, "trial"), create(name, version, validate_only=True)
        yield version, create(name, version, partitions=2)
        yield (version, "again"), create(name, version)
        yield (version, "default"), create(f"{name}-d", version, partitions=-1, replicas=-1)
        yield (version, "twice"), create(f"{name}-t", version, times=2)
    for name in ("", ".", "..", "a b", "x" * 250, "ü", "__cluster_metadata"):
        yield ("name", name), create(name)
    yield "dot", create(talk.name("a.b"))
    yield "underscore", create(talk.name("a_b"))
    for partitions in (0, -2, 10_001):
        yield ("partitions", partitions), create(talk.name("p"), partitions=partitions)
    for replicas in (0, -2, 2):
        yield ("replicas", replicas), create(talk.name("r"), replicas=replicas)
    for index, (partitions, replicas, partition, brokers) in enumerate(
        [
            (-1, -1, 0, [1]),
            (1, -1, 0, [1]),
            (-1, 1, 0, [1]),
            (-1, -1, 1, [1]),
            (-1, -1, 0, [9]),
            (-1, -1, 0, []),
            (-1, -1, 0, [1, 1]),
        ]
    ):
        assigned = CreatableReplicaAssignment(partition_index=partition, broker_ids=brokers)
        yield (
            ("assigned", index),
            create(
                talk.name(f"as{index}"),
                partitions=partitions,
                replicas=replicas,
                assigned=[assigned],
            ),
        )
    for setting in (
        ("nope", "1"),
        ("max.message.bytes", None),
        ("max.message.bytes", "x"),
        ("max.message.bytes", "-1"),
        ("message.timestamp.type", "Foo"),
        ("retention.ms", "x"),
        ("cleanup.policy", "compact"),
    ):
        yield ("setting", *setting), create(talk.name(f"c{setting[0]}"), setting=setting)


def deleting(talk: Talk) -> Said:
    def delete(version: int, *states: DeleteTopicState) -> object:
        request = DeleteTopicsRequest(timeout_ms=10_000)
        if version < 6:
            request.topic_names = [state.name or "" for state in states]
        else:
            request.topics = list(states)
        found = talk.ask(request, version).responses
        return [
            (
                topic.name and topic.name.partition("-")[0],
                topic.topic_id != ZERO_UUID,
                error(topic.error_code),
                bool(topic.error_message),
            )
            for topic in found
        ]

    for version in talk.versions(DeleteTopicsRequest, 1):
        name = talk.create(f"v{version}")
        for what in ("twice", "once", "again"):
            states = [DeleteTopicState(name=name)] * (2 if what == "twice" else 1)
            yield (version, what), delete(version, *states)
        yield (version, "nothing"), delete(version)
        yield (version, "no name"), delete(version, DeleteTopicState(name=""))
    name = talk.create("id")
    by_id = DeleteTopicState(name=None, topic_id=talk.topic_id(name))
    both = DeleteTopicState(name=name, topic_id=by_id.topic_id)
    yield "both", delete(6, both)
    yield "neither", delete(6, DeleteTopicState(name=None))
    yield "unknown", delete(6, DeleteTopicState(name=None, topic_id=NOBODY))
    yield "id twice", delete(6, by_id, by_id)
    twice = DeleteTopicsRequest(topics=[DeleteTopicState(name=name), by_id], timeout_ms=10_000)
    found = talk.ask(twice, 6).responses
    # The order of a Java set decides which of the two topics the response names.
    yield "name and id", [error(topic.error_code) for topic in found]
    yield "id", delete(6, by_id)


def describing(talk: Talk) -> Said:
    name = talk.create("t", 2)
    for version in talk.versions(MetadataRequest):
        for names in ([name], ["nope"], ["a b"], [""], [], None):
            if version == 0 and not names:
                continue
            request = MetadataRequest(
                topics=None
                if names is None
                else [MetadataRequestTopic(name=wanted) for wanted in names],
                include_cluster_authorized_operations=8 <= version <= 10,
                include_topic_authorized_operations=version >= 8,
            )
            answer = talk.ask(request, version)
            topics = [
                (
                    error(topic.error_code),
                    topic.name and topic.name.partition("-")[0],
                    topic.topic_id != ZERO_UUID,
                    topic.is_internal,
                    topic.topic_authorized_operations,
                    sorted(
                        (
                            part.partition_index,
                            error(part.error_code),
                            part.leader_id,
                            part.leader_epoch,
                            part.replica_nodes,
                            part.isr_nodes,
                            part.offline_replicas,
                        )
                        for part in topic.partitions
                    ),
                )
                for topic in answer.topics
                if names is not None or topic.name == name
            ]
            brokers = [(node.node_id, node.rack) for node in answer.brokers]
            about = (answer.controller_id, answer.cluster_authorized_operations, answer.error_code)
            requested = None if names is None else [part.partition("-")[0] for part in names]
            yield (version, str(requested)), (topics, brokers, about, bool(answer.cluster_id))
    for version in talk.versions(MetadataRequest, 10):
        for wanted in (
            MetadataRequestTopic(name=None if version > 11 else "", topic_id=NOBODY),
            MetadataRequestTopic(name=name, topic_id=NOBODY),
            MetadataRequestTopic(name=None if version > 11 else "", topic_id=talk.topic_id(name)),
        ):
            answer = talk.ask(MetadataRequest(topics=[wanted]), version)
            known = wanted.topic_id != NOBODY
            yield (
                (version, "by id", bool(wanted.name), known),
                [
                    (error(topic.error_code), topic.name and topic.name.partition("-")[0])
                    for topic in answer.topics
                ],
            )


def producing(talk: Talk) -> Said:
    name = talk.create("t", 1, max_message_bytes="2000")
    known = talk.topic_id(name)
    now = int(time.time() * 1000)
    good = batch_bytes(timestamp=now)

    def show(answer: PartitionProduceResponse) -> object:
        return (error(answer.error_code), answer.base_offset >= 0, answer.log_append_time_ms)

    for version in talk.versions(ProduceRequest, 3):
        yield version, show(talk.produce(name, known, good, version=version))
        zstd = batch_bytes(2, compression="zstd")
        yield (version, "zstd"), show(talk.produce(name, known, zstd, version=version))
        wrong: dict[str, dict[str, Any]] = {
            "topic": {"name": "nope", "topic_id": NOBODY},
            "partition": {"partition": 7},
            "negative partition": {"partition": -1},
            "acks 2": {"acks": 2},
            "acks -2": {"acks": -2},
        }
        for what, changed in wrong.items():
            requested = {"name": name, "topic_id": known, **changed}
            yield (version, what), show(talk.produce(records=good, version=version, **requested))
    for what, records in {
        "nothing": b"",
        "bytes": b"xx",
        "two": good + good,
        "cut": good[:-1],
        "cut second": good + good[:-1],
        "crc": good[:-1] + bytes([good[-1] ^ 1]),
        "magic 1": good[:16] + b"\x01" + good[17:],
        "magic 7": good[:16] + b"\x07" + good[17:],
        "short": good[:8] + b"\0\0\0\x14" + good[12:],
        "base offset": batch_bytes(base_offset=5),
        "large": batch_bytes(value=bytes(3000)),
        "large and broken": batch_bytes(value=bytes(3000))[:-1] + b"?",
        "control": batch_bytes(is_control=True),
        "no sequence": batch_bytes(producer_id=5, producer_epoch=0),
        "1970": batch_bytes(timestamp=0),
        "no timestamp": batch_bytes(timestamp=-1),
        "two hours ahead": batch_bytes(timestamp=now + 7_200_000),
        "no records": patched(good, 57, b"\0\0\0\0"),
        "two records": patched(good, 57, b"\0\0\0\x02"),
        "last offset 1": patched(good, 23, b"\0\0\0\x01"),
        "codec 7": patched(good, 21, b"\0\x07"),
        "unused attributes": patched(good, 21, b"\0\x80"),
        "log append time": patched(good, 21, b"\0\x08"),
    }.items():
        yield what, show(talk.append(name, records))
    stamped = talk.create("stamped", 1, message_timestamp_type="LogAppendTime")
    answer = talk.append(stamped, batch_bytes(timestamp=now + 7_200_000))
    yield "stamped", (error(answer.error_code), abs(answer.log_append_time_ms - now) < 600_000)
    for what, topic, records in (
        ("acks 0", name, good),
        ("acks 0, broken", name, b""),
        ("acks 0, nope", "nope", good),
    ):
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(records=records)])
        with RawConnection(talk.bootstrap) as connection:
            connection.send(ProduceRequest(acks=0, topic_data=[data]), 9)
            try:
                connection.exchange(ApiVersionsRequest(), 0)
                yield what, "goes on"
            except ClosedByBrokerError:
                yield what, "closed"


def producing_idempotently(talk: Talk) -> Said:
    name = talk.create("t")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        first = talk.ask(InitProducerIdRequest(transactional_id=None), 4)
        if not first.error_code or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    yield "id", (error(first.error_code), first.producer_id >= 0, first.producer_epoch)

    def append(sequence: int, count: int = 1, epoch: int = 0, producer: int = 0) -> object:
        records = batch_bytes(
            count,
            producer_id=first.producer_id + producer,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        answer = talk.append(name, records)
        return error(answer.error_code), answer.base_offset, answer.log_append_time_ms

    yield "any sequence of a new producer", append(5, producer=1000)
    yield "its duplicate", append(5, producer=1000)
    for sequence in range(7):
        yield ("new", sequence), append(sequence)
    for sequence in range(7):
        yield ("again", sequence), append(sequence)
    yield "gap", append(9)
    yield "overlap", append(6, 2)
    yield "next", append(7)
    yield "later epoch, late sequence", append(5, epoch=1)
    yield "later epoch", append(0, epoch=1)
    yield "earlier epoch", append(8)
    yield "earlier epoch, duplicate", append(7)
    yield "no epoch", append(1, epoch=-1)
    yield "to the last sequence", append(2**31 - 2, 4, producer=2000)
    yield "from the first", append(2, producer=2000)
    yield "the wrap again", append(2**31 - 2, 4, producer=2000)
    for version in talk.versions(InitProducerIdRequest):
        cases = [(None, -1, -1), ("", -1, -1)]
        if version >= 3:
            cases += [(None, 5, 0), (None, 5, -1), (None, -1, 0)]
        for transactional_id, producer_id, epoch in cases:
            request = InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=1000,
                producer_id=producer_id,
                producer_epoch=epoch,
            )
            answer = talk.ask(request, version)
            yield (
                ("init", version, transactional_id, producer_id, epoch),
                (
                    error(answer.error_code),
                    answer.producer_id >= 0,
                    answer.producer_epoch,
                ),
            )


def fetching(talk: Talk) -> Said:
    name = talk.create("t", 2)
    known = talk.topic_id(name)
    for index in range(5):
        compression = "gzip" if index == 4 else "none"
        talk.append(name, batch_bytes(3, value=bytes(100), compression=compression))

    def fetch(
        version: int,
        offset: int = 0,
        *,
        partition: int = 0,
        topic: str = name,
        topic_id: Uuid = known,
        partition_max_bytes: int = 1 << 20,
        max_bytes: int = 1 << 20,
        leader_epoch: int = -1,
        isolation_level: int = 0,
        session: tuple[int, int] = (0, -1),
        replica_id: int = -1,
        then: int | None = None,
    ) -> object:
        wanted = [
            FetchPartition(
                partition=index,
                fetch_offset=at,
                partition_max_bytes=partition_max_bytes,
                current_leader_epoch=leader_epoch,
            )
            for index, at in [(partition, offset)] + ([(then, 3)] if then is not None else [])
        ]
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            session_id=session[0],
            session_epoch=session[1],
            topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=wanted)],
        )
        if version < 15:
            request.replica_id = replica_id
        answer = talk.ask(request, version)
        return error(answer.error_code), [
            (
                found.partition_index,
                error(found.error_code),
                found.high_watermark,
                found.last_stable_offset,
                found.log_start_offset,
                found.aborted_transactions,
                found.preferred_read_replica,
                [batch.base_offset for batch in read_batches(found.records or b"")],
            )
            for responses in answer.responses
            for found in responses.partitions
        ]

    for codec in ("zstd", "gzip", "producer"):
        topic = talk.create(codec, 2, compression_type=codec)
        topic_id = talk.topic_id(topic)
        talk.append(topic, batch_bytes(3, compression="zstd"))
        for version in talk.versions(FetchRequest, 4):
            for what, partition, offset in (("zstd", 0, 0), ("nothing", 1, 0), ("beyond", 1, 5)):
                found = fetch(version, offset, partition=partition, topic=topic, topic_id=topic_id)
                yield (version, "topic of", codec, what), found

    for version in talk.versions(FetchRequest, 4):
        yield version, fetch(version)
        yield (version, "topic"), fetch(version, topic="nope", topic_id=NOBODY)
        yield (version, "partition"), fetch(version, partition=7)
        yield (version, "empty"), fetch(version, partition=1)
        yield (version, "inside"), fetch(version, 4)
        yield (version, "end"), fetch(version, 15)
        yield (version, "beyond"), fetch(version, 16)
        yield (version, "negative"), fetch(version, -1)
        yield (version, "committed"), fetch(version, isolation_level=1)
        for limit in (0, 10, 800):
            yield (version, "partition limit", limit), fetch(version, partition_max_bytes=limit)
            yield (version, "limit", limit), fetch(version, max_bytes=limit)
        yield (version, "empty first"), fetch(version, partition=1, max_bytes=10, then=0)
        yield (version, "full first"), fetch(version, 3, max_bytes=10, then=1)
        if version >= 9:
            for epoch in (0, 1, 5, -2):
                yield (version, "epoch", epoch), fetch(version, leader_epoch=epoch)
        if version < 15:
            yield (version, "follower"), fetch(version, replica_id=5)
            yield (version, "debugging"), fetch(version, replica_id=-2)
        if version >= 7:
            for session in ((5, 1), (0, 1), (5, 0), (5, -1)):
                yield (version, "session", session), fetch(version, session=session)


def listing(talk: Talk) -> Said:
    name = talk.create("t", 2)
    for start in (0, 1000, 2000, 3000, 2000):
        compression = "gzip" if start == 3000 else "none"
        talk.append(name, batch_bytes(3, timestamp=start, compression=compression))

    def ask(
        version: int,
        timestamp: int,
        *,
        topic: str = name,
        partition: int = 0,
        leader_epoch: int = -1,
        most: int = 10,
        replica_id: int = -1,
    ) -> object:
        wanted = ListOffsetsPartition(
            partition_index=partition,
            timestamp=timestamp,
            current_leader_epoch=leader_epoch,
            max_num_offsets=most if version == 0 else 1,
        )
        request = ListOffsetsRequest(
            replica_id=replica_id, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
        )
        return [
            (
                error(found.error_code),
                found.timestamp,
                found.offset,
                found.leader_epoch,
                found.old_style_offsets,
            )
            for answered in talk.ask(request, version).topics
            for found in answered.partitions
        ]

    for version in talk.versions(ListOffsetsRequest):
        special = (-1, -2) if version == 0 else (-1, -2, -3, -4, -5, -6, -7)
        times = (0, 10**13) if version == 0 else (0, 1001, 1002, 1003, 2500, 3002, 3003, 10**13)
        for timestamp in (*special, *times):
            yield (version, timestamp), ask(version, timestamp)
        for timestamp in special[:4]:
            yield (version, "empty", timestamp), ask(version, timestamp, partition=1)
        yield (version, "topic"), ask(version, -1, topic="nope")
        yield (version, "partition"), ask(version, -1, partition=9)
        if version == 0:
            yield "one offset", ask(0, -1, most=1)
            yield "no offset", ask(0, -1, most=0)
        if version >= 4:
            yield (version, "epoch 0"), ask(version, -1, leader_epoch=0)
            yield (version, "epoch 1"), ask(version, -1, leader_epoch=1)
        yield (version, "debugging"), ask(version, -1, replica_id=-2)
        for what, named in NAMED_TWICE.items():
            topics = [_listed(topic or name, partitions) for topic, partitions in named]
            answer = talk.ask(ListOffsetsRequest(topics=topics), version)
            responses = sorted(
                (topic.name.partition("-")[0], found.partition_index, error(found.error_code))
                for topic in answer.topics
                for found in topic.partitions
            )
            yield (version, what), (responses, len(answer.topics))


#: Topics of a request that names a topic or partition more than once; "" is an existing topic.
NAMED_TWICE: dict[str, list[tuple[str, tuple[int, ...]]]] = {
    "twice": [("", (0, 0))],
    "three times": [("", (0, 1, 0, 0))],
    "in two entries": [("", (0,)), ("", (1, 0))],
    "topic in two entries": [("", (0,)), ("", (1,))],
    "unknown twice": [("nope", (0, 0)), ("", (1, 1))],
    "unknown partition twice": [("", (9, 9, 0))],
}


def _listed(name: str, partitions: Iterable[int]) -> ListOffsetsTopic:
    wanted = [
        ListOffsetsPartition(partition_index=index, timestamp=-1, max_num_offsets=1)
        for index in partitions
    ]
    return ListOffsetsTopic(name=name, partitions=wanted)


def naming_software(talk: Talk) -> Said:
    for version in talk.versions(ApiVersionsRequest):
        for name, software in (("x", "1"), ("", ""), ("a b", "1"), ("-a", "1"), ("a.b-c", "1-3")):
            request = ApiVersionsRequest(
                client_software_name=name, client_software_version=software
            )
            answer = talk.ask(request, version)
            yield (version, name), (error(answer.error_code), len(answer.api_keys) > 1)
    for version in talk.versions(ApiVersionsRequest, 5):
        cluster_id = talk.ask(MetadataRequest(topics=[]), 9).cluster_id
        for ours, node_id in (
            (cluster_id, 1),
            (cluster_id, 7),
            (cluster_id, -1),
            ("other", 1),
            ("other", -1),
            (None, 1),
        ):
            request = ApiVersionsRequest(
                client_software_name="x",
                client_software_version="1",
                cluster_id=ours,
                node_id=node_id,
            )
            answer = talk.ask(request, version)
            which = "ours" if ours == cluster_id else ours
            yield ("meant", which, node_id), (error(answer.error_code), len(answer.api_keys) > 1)


CONVERSATIONS: tuple[Callable[[Talk], Said], ...] = (
    creating,
    deleting,
    describing,
    producing,
    producing_idempotently,
    fetching,
    listing,
    naming_software,
)
