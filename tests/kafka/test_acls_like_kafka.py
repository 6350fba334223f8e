"""Tests that a real and the embedded broker with the same ACLs answer random requests equally."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pytest

from kproto.broker.authorizer import Acl, Operation, PatternType, Permission, ResourceType
from kproto.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.create_acls_request import AclCreation, CreateAclsRequest
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kproto.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.describe_acls_request import DescribeAclsRequest
from kproto.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
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
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.support.authorized_sides import (
    ALICE,
    HERE,
    Ours,
    Side,
    Theirs,
    ids,
    make_topics,
    name,
    set_acls,
)
from tests.support.availability import not_available
from tests.support.batches import batch_bytes
from tests.support.embedded import threaded_broker
from tests.support.patience import wait_until
from tests.support.raw_connection import RawConnection
from tests.support.settling import settle
from tools.kafka.jars import KafkaJarsError
from tools.kafka.node import KafkaStartError
from tools.kafka.secured import SecuredKafka
from tools.setup.java import JavaNotFoundError

TOPICS: Final = ("t", "to", "u")
UNKNOWN_ID: Final = Uuid(bytes(15) + b"\7")

ROUNDS = 40
SEED = 7


@pytest.fixture(
    scope="module", params=["4.4.0", pytest.param("3.9.2", marks=pytest.mark.exhaustive)]
)
def sides(request: pytest.FixtureRequest) -> Iterator[tuple[Theirs, Ours]]:
    """Yields a real and the embedded broker with the same topics."""
    try:
        kafka = SecuredKafka(request.param)
        kafka.start()
    except (KafkaJarsError, KafkaStartError, JavaNotFoundError) as error:
        not_available(f"Kafka {request.param}", error)
    try:
        theirs, ours = Theirs(kafka), Ours()
        for side in (theirs, ours):
            make_topics(side, *TOPICS)
        yield theirs, ours
        theirs.close()
    finally:
        kafka.close()


def some_acls(chance: random.Random) -> list[Acl]:
    found = []
    for _ in range(chance.randrange(6)):
        kind = chance.choice(
            (ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.GROUP)
        )
        cluster = kind is ResourceType.CLUSTER
        found.append(
            Acl(
                chance.choice((ALICE, "User:*", "User:bob")),
                chance.choice(list(Operation)[Operation.ALL : Operation.CREATE_TOKENS]),
                kind,
                "kafka-cluster" if cluster else chance.choice(("t", "to", "u", "new", "*")),
                PatternType.LITERAL
                if cluster
                else chance.choice((PatternType.LITERAL, PatternType.PREFIXED)),
                chance.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
                chance.choice(("*", HERE, "10.9.8.7")),
            )
        )
    return found


# Requests to both brokers; each function returns the fields of the response that must agree


def produce(side: Side, version: int) -> object:
    known = ids(side)
    topics = []
    which: dict[str, Any]
    for topic in (*TOPICS, "none"):
        data = PartitionProduceData(records=batch_bytes())
        if version >= 13:
            which = {"topic_id": known.get(topic, UNKNOWN_ID)}
        else:
            which = {"name": topic}
        topics.append(TopicProduceData(partition_data=[data], **which))
    answer = side.ask(ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=topics), version)
    names = {topic_id: topic for topic, topic_id in known.items()}
    return {
        topic.name or names.get(topic.topic_id, "none"): [
            name(part.error_code) for part in topic.partition_responses
        ]
        for topic in answer.responses
    }


def fetch(side: Side, version: int) -> object:
    known = ids(side)
    topics = []
    which: dict[str, Any]
    for topic in (*TOPICS, "none"):
        if version >= 13:
            which = {"topic_id": known.get(topic, UNKNOWN_ID)}
        else:
            which = {"topic": topic}
        wanted = FetchPartition(partition_max_bytes=1 << 20)
        topics.append(FetchTopic(partitions=[wanted], **which))
    answer = side.ask(FetchRequest(max_wait_ms=0, session_epoch=-1, topics=topics), version)
    names = {topic_id: topic for topic, topic_id in known.items()}
    return {
        topic.topic or names.get(topic.topic_id, "none"): [
            (name(part.error_code), part.high_watermark >= 0, bool(part.records))
            for part in topic.partitions
        ]
        for topic in answer.responses
    }


def list_offsets(side: Side, version: int) -> object:
    topics = [
        ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=-1)])
        for topic in (*TOPICS, "none")
    ]
    answer = side.ask(ListOffsetsRequest(topics=topics), version)
    return {
        topic.name: [(name(part.error_code), part.offset >= 0) for part in topic.partitions]
        for topic in answer.topics
    }


def metadata(side: Side, version: int) -> object:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic) for topic in (*TOPICS, "none", "b@d")],
        allow_auto_topic_creation=version < 4,
        include_cluster_authorized_operations=8 <= version <= 10,
        include_topic_authorized_operations=version >= 8,
    )
    return metadata_fields(side.ask(request, version))


def all_metadata(side: Side, version: int) -> object:
    request = MetadataRequest(
        topics=[] if version == 0 else None,
        include_topic_authorized_operations=version >= 8,
    )
    return metadata_fields(side.ask(request, version))


def metadata_by_id(side: Side, version: int) -> object:
    known = ids(side)
    wanted = [known[topic] for topic in TOPICS] + [UNKNOWN_ID]
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in wanted],
        include_topic_authorized_operations=True,
    )
    names = {topic_id: topic for topic, topic_id in known.items()}
    answer = side.ask(request, 12)
    return {
        names.get(topic.topic_id, "none"): (
            name(topic.error_code),
            topic.name,
            topic.topic_authorized_operations,
        )
        for topic in answer.topics
    }


def metadata_fields(answer: Any) -> object:
    topics = {
        topic.name: (
            name(topic.error_code),
            topic.topic_id == ZERO_UUID,
            len(topic.partitions),
            topic.topic_authorized_operations,
        )
        for topic in answer.topics
        if not topic.is_internal
    }
    return topics, answer.cluster_authorized_operations


def create_topics(side: Side, version: int) -> object:
    topics = [
        CreatableTopic(name=topic, num_partitions=2, replication_factor=1)
        for topic in ("new", "newer", "t", "other", "__cluster_metadata")
    ]
    answer = side.ask(
        CreateTopicsRequest(topics=topics, timeout_ms=9_000, validate_only=True), version
    )
    return {
        topic.name: (
            name(topic.error_code),
            name(topic.topic_config_error_code),
            topic.num_partitions,
            topic.replication_factor,
            topic.configs is None,
            bool(topic.configs),
        )
        for topic in answer.topics
    }


def delete_topics(side: Side, version: int) -> object:
    """Creates topics; returns the result of deleting these topics and topics that do not exist."""
    make_topics(side, "to-be-gone", "until-then")
    known = ids(side)
    if version >= 6:
        wanted = [
            DeleteTopicState(name="to-be-gone"),
            DeleteTopicState(name="none"),
            DeleteTopicState(name=None, topic_id=known["until-then"]),
            DeleteTopicState(name=None, topic_id=UNKNOWN_ID),
        ]
        request = DeleteTopicsRequest(topics=wanted, timeout_ms=9_000)
    else:
        request = DeleteTopicsRequest(
            topic_names=["to-be-gone", "none", "until-then"], timeout_ms=9_000
        )
    answer = side.ask(request, version)
    done = [topic for topic in answer.responses if topic.error_code == 0]
    wait_until(lambda: len(known) - len(done) == len(ids(side)))
    return sorted(
        (topic.name or "", name(topic.error_code), topic.topic_id in known.values())
        for topic in answer.responses
    )


def init_producer_id(side: Side, version: int) -> object:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)
    end = time.monotonic() + 20
    while True:  # the broker still requests its first block of producer ids
        found = name(side.ask(request, version).error_code)
        if found != "COORDINATOR_LOAD_IN_PROGRESS":
            return found
        assert time.monotonic() < end


def acls(side: Side, version: int) -> object:
    creation = AclCreation(
        resource_type=2,
        resource_name="",  # an invalid name, so that no ACL is created even if it is allowed
        principal="User:x",
        host="*",
        operation=3,
        permission_type=3,
    )
    deletion = DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="none",
        principal_filter="User:nobody",
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    description = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1 if version else 3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    created = side.ask(CreateAclsRequest(creations=[creation]), version)
    deleted = side.ask(DeleteAclsRequest(filters=[deletion]), version)
    described = side.ask(description, version)
    return (
        name(created.results[0].error_code),
        name(deleted.filter_results[0].error_code),
        name(described.error_code),
        sorted((it.resource_type, it.resource_name, len(it.acls)) for it in described.resources),
    )


QUESTIONS: Final[dict[Callable[[Side, int], object], tuple[int, ...]]] = {
    produce: (3, 9, 12, 13),
    fetch: (4, 11, 12, 13, 17),
    list_offsets: (1, 5, 8),
    metadata: (0, 1, 5, 8, 9, 12),
    all_metadata: (0, 1, 8, 10, 12),
    metadata_by_id: (12,),
    create_topics: (4, 5, 7),
    delete_topics: (3, 5, 6),
    init_producer_id: (0, 4),
    acls: (1, 2, 3),
}


@pytest.mark.slow
def test_equal_acls_give_equal_responses(sides: tuple[Theirs, Ours]) -> None:
    theirs, ours = sides
    chance = random.Random(SEED)
    answers: set[str] = set()
    for number in range(ROUNDS):
        wanted = list(dict.fromkeys(some_acls(chance)))
        for side in sides:
            set_acls(side, wanted)
        for question, versions in QUESTIONS.items():
            version = chance.choice(versions)
            if question is produce:  # Kafka 3.9 has no Produce version with topic ids
                version = min(version, theirs.versions[ProduceRequest.API_KEY])
            here, there = question(ours, version), question(theirs, version)
            assert here == there, (number, question.__name__, version, wanted)
            answers.update(error for error in ("NONE", "FAILED") if error in str(there))
    assert answers == {"NONE", "FAILED"}


# Quotas

KEYS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "nope",
)
VALUES: Final = (1e9, 1e12, 5e8)
#: Producer and consumer quotas must be whole numbers. Since 4.0 no quota may be in NONE_OF_THEM.
FRACTION: Final = 1e9 + 0.5
NONE_OF_THEM: Final = (0.0, -1.0, float("nan"))


def some_quotas(chance: random.Random, odd: Sequence[float]) -> AlterClientQuotasRequest:
    entries = []
    for _ in range(chance.randrange(1, 4)):
        kinds = chance.sample(("user", "client-id"), chance.randrange(3))
        names = [chance.choice(("alice", "c", None, "")) for _ in kinds]
        if chance.random() < 0.1:
            kinds, names = ["blub"], ["x"]
        entries.append(
            EntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=name)
                    for kind, name in zip(kinds, names, strict=True)
                ],
                ops=[
                    OpData(
                        key=chance.choice(KEYS if chance.random() < 0.1 else KEYS[:-1]),
                        value=chance.choice(odd if chance.random() < 0.3 else VALUES),
                        remove=chance.random() < 0.2,
                    )
                    for _ in range(chance.randrange(1, 4))
                ],
            )
        )
    return AlterClientQuotasRequest(entries=entries, validate_only=chance.random() < 0.1)


def some_filter(chance: random.Random) -> DescribeClientQuotasRequest:
    kinds = ["user", "client-id", "ip", "user", "", "blub"]
    weights = [40, 40, 4, 10, 3, 3]
    return DescribeClientQuotasRequest(
        components=[
            ComponentData(
                entity_type=kind,
                match_type=chance.choice((0, 1, 2, 2, 9) if chance.random() < 0.2 else (0, 1, 2)),
                match=chance.choice(("alice", "c", None, None)),
            )
            for kind in chance.choices(kinds, weights, k=chance.randrange(3))
        ],
        strict=chance.random() < 0.4,
    )


def entity_of(entry: Any) -> frozenset[tuple[str, str | None]]:
    return frozenset((it.entity_type, it.entity_name) for it in entry.entity)


def altered(side: Side, request: AlterClientQuotasRequest, *, as_root: bool) -> object:
    answer = side.ask(request, 1, as_root=as_root)
    return {entity_of(entry): name(entry.error_code) for entry in answer.entries}


def described(side: Side, request: DescribeClientQuotasRequest, *, as_root: bool) -> object:
    answer = side.ask(request, 1, as_root=as_root)
    if answer.entries is None:
        return name(answer.error_code)
    return {entity_of(entry): {it.key: it.value for it in entry.values} for entry in answer.entries}


@pytest.fixture
def removed_quotas(sides: tuple[Theirs, Ours]) -> Iterator[None]:
    """Removes all quotas after the test, because the tests share both brokers."""
    yield
    everything = DescribeClientQuotasRequest()
    for side in sides:
        entries = [
            EntryData(
                entity=[
                    EntityData(entity_type=it.entity_type, entity_name=it.entity_name)
                    for it in entry.entity
                ],
                ops=[OpData(key=it.key, remove=True) for it in entry.values],
            )
            for entry in side.ask(everything, 1, as_root=True).entries
        ]
        altered(side, AlterClientQuotasRequest(entries=entries), as_root=True)
        wait_until(lambda side=side: described(side, everything, as_root=True) == {})  # type: ignore[misc]


@pytest.mark.slow
@pytest.mark.usefixtures("removed_quotas")
def test_quotas_are_altered_and_described_alike(sides: tuple[Theirs, Ours]) -> None:
    theirs, ours = sides
    chance = random.Random(SEED)
    everything = DescribeClientQuotasRequest()
    is_new = theirs.versions[ApiVersionsRequest.API_KEY] >= 5
    odd = (FRACTION, *NONE_OF_THEM) if is_new else (FRACTION,)
    for side in sides:
        set_acls(side, [])
    for number in range(150):
        change, wanted = some_quotas(chance, odd), some_filter(chance)
        as_root = chance.random() < 0.9
        here, there = (
            altered(ours, change, as_root=as_root),
            altered(theirs, change, as_root=as_root),
        )
        assert here == there, (number, change)
        # The controller answers before the broker has applied the change.
        end = time.monotonic() + 20
        while (there := described(theirs, everything, as_root=True)) != (
            here := described(ours, everything, as_root=True)
        ):
            assert time.monotonic() < end, (number, change, here, there)
            time.sleep(0.005)
        assert described(ours, wanted, as_root=as_root) == described(
            theirs, wanted, as_root=as_root
        ), (number, wanted)


@pytest.fixture
def topic_of_theirs(sides: tuple[Theirs, Ours]) -> Iterator[str]:
    """Creates a topic on the real broker only, and deletes it after the test."""
    theirs, _ = sides
    topic = "q"  # the quota also counts the bytes of the name
    make_topics(theirs, topic)
    yield topic
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=9_000)
    theirs.ask(gone, 6, as_root=True)
    wait_until(lambda: topic not in ids(theirs))


@pytest.mark.slow
@pytest.mark.usefixtures("removed_quotas")
def test_clients_over_their_quota_are_throttled_equally(
    sides: tuple[Theirs, Ours], topic_of_theirs: str
) -> None:
    theirs, _ = sides
    topic = topic_of_theirs
    set_acls(theirs, [])
    with threaded_broker() as broker:
        broker.call(lambda it: it.create_topic(topic))
        throttle_times: list[list[int]] = []
        for bootstrap in (broker.bootstrap, theirs.bootstrap):
            throttle_times.append([])
            for number, limit in enumerate((5, 6, 8)):
                client = f"over-{number}"
                with RawConnection(bootstrap, client) as connection:
                    throttle_times[-1].append(throttled(connection, client, float(limit), topic))
    for here, there in zip(*throttle_times, strict=True):
        assert 1_000 < there < 20_000
        assert here == pytest.approx(there, abs=5), "a few ms pass between the measurements"


def throttled(connection: RawConnection, client: str, limit: float, topic: str) -> int:
    """Sets a producer quota of `limit` bytes/s, and sends one Produce request of 106 bytes.

    Returns the throttle time of the response in ms.
    """
    names = {"user": "ANONYMOUS", "client-id": client}
    of = [EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()]
    change = EntryData(entity=of, ops=[OpData(key="producer_byte_rate", value=limit)])
    answer = connection.exchange(AlterClientQuotasRequest(entries=[change]), 1)
    assert answer.entries[0].error_code == 0
    settle(connection)
    data = PartitionProduceData(records=batch_bytes())
    request = ProduceRequest(
        acks=1,
        timeout_ms=9_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    return connection.exchange(request, 9).throttle_time_ms
