"""Tests ApiVersions, Metadata, CreateTopics, DeleteTopics and InitProducerId in each version.

The requests are sent over a socket. Other modules have the other APIs, for example Produce, Fetch
and ListOffsets (test_records_in_every_version.py), groups (test_groups_in_every_version.py) and
committed offsets (test_offsets_in_every_version.py). Also tests that each handler module is
named after its API, and that the module's docstring has the name, key and versions of the API.
"""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules

import pytest

from kproto import messages
from kproto.broker import BrokerSettings, handlers
from kproto.broker.registry import by_key, served_versions
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kproto.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.metadata_response import MetadataResponseTopic
from kproto.protocol.error_codes import error_code
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.support.embedded import UNKNOWN_TOPIC_ID, ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection

APIS = by_key(handlers.KAFKA_APIS)

#: ShareGroupHeartbeat, ShareGroupDescribe, ShareFetch and ShareAcknowledge.
EARLY_ACCESS = frozenset({76, 77, 78, 79})


def test_handler_modules_are_named_and_documented() -> None:
    modules = [
        module for module in iter_modules(handlers.__path__) if module.name.startswith("api_")
    ]
    assert len(modules) == len(APIS)
    for module in modules:
        text = import_module(f"kproto.broker.handlers.{module.name}").__doc__ or ""
        number = int(module.name.split("_")[1])
        request = APIS[number].request
        versions = APIS[number].versions
        name = request.__name__.removesuffix("Request")
        assert module.name == f"api_{number:02}_" + re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        assert text.startswith(f"{name} ({number}), v{versions.start} to v{versions.stop - 1}.")
        assert "Left out:" in text


def test_every_version_of_the_union_is_answered() -> None:
    for number, api in APIS.items():
        # v0 of the APIs of share group members was for early access, and was never final.
        first = 1 if number in EARLY_ACCESS else 0
        assert api.versions == range(first, api.request.VALID_VERSIONS.stop)
        assert number == api.request.API_KEY
        assert served_versions(api, BrokerSettings(unstable_versions=True)) == api.versions


@pytest.mark.parametrize("version", ApiVersionsRequest.VALID_VERSIONS)
def test_api_versions(connection: RawConnection, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    answer = connection.exchange(request, version)
    assert answer.error_code == 0
    offered = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
    assert offered == {
        0: (0, 13),
        1: (0, 18),
        2: (0, 11),
        3: (0, 13),
        8: (0, 10),
        9: (0, 10),
        10: (0, 6),
        11: (0, 9),
        12: (0, 4),
        13: (0, 5),
        14: (0, 5),
        15: (0, 6),
        16: (0, 5),
        17: (0, 1),
        18: (0, 5),
        19: (0, 7),
        20: (0, 6),
        21: (0, 2),
        22: (0, 5),
        23: (0, 4),
        24: (0, 5),
        25: (0, 4),
        26: (0, 5),
        27: (0, 2),
        28: (0, 6),
        29: (0, 3),
        30: (0, 3),
        31: (0, 3),
        32: (0, 4),
        33: (0, 2),
        34: (0, 2),
        35: (0, 5),
        36: (0, 2),
        37: (0, 3),
        38: (0, 3),
        39: (0, 2),
        40: (0, 2),
        41: (0, 3),
        42: (0, 3),
        43: (0, 2),
        44: (0, 1),
        45: (0, 1),
        46: (0, 0),
        47: (0, 0),
        48: (0, 1),
        49: (0, 1),
        50: (0, 0),
        51: (0, 0),
        55: (0, 2),
        57: (0, 2),
        60: (0, 2),
        61: (0, 0),
        64: (0, 0),
        65: (0, 0),
        66: (0, 2),
        68: (0, 1),
        69: (0, 1),
        74: (0, 1),
        75: (0, 0),
        76: (1, 1),
        77: (1, 1),
        78: (1, 2),
        79: (1, 2),
        83: (0, 0),
        84: (0, 0),
        85: (0, 1),
        86: (0, 0),
        87: (0, 1),
        90: (0, 1),
        91: (0, 0),
        92: (0, 0),
    }


def test_unstable_versions_are_listed_if_enabled() -> None:
    with (
        threaded_broker(BrokerSettings(unstable_versions=True)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        answer = connection.exchange(ApiVersionsRequest(), 0)
        offered = answer.api_keys.find(api_key=22)
        assert offered is not None
        assert offered.max_version == 6
        assert connection.exchange(InitProducerIdRequest(transactional_id=None), 6).error_code == 0


@pytest.mark.parametrize(
    ("name", "software"), [("", "1"), ("a b", "1"), ("-a", "1"), ("a", ""), ("a", "1 2")]
)
def test_api_versions_of_software_without_a_proper_name(
    connection: RawConnection, name: str, software: str
) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software)
    answer = connection.exchange(request, 4)
    assert error_code(answer.error_code).name == "INVALID_REQUEST"
    assert connection.exchange(request, 2).error_code == 0, "older versions do not say it"


@pytest.mark.parametrize(
    ("ours", "node_id", "expected"),
    [
        (True, 1, "NONE"),
        (True, 7, "REBOOTSTRAP_REQUIRED"),
        (False, 1, "REBOOTSTRAP_REQUIRED"),
        (True, -1, "INVALID_REQUEST"),
        (None, 1, "INVALID_REQUEST"),
        (None, -1, "NONE"),
    ],
)
def test_api_versions_for_another_node(
    broker: ThreadedBroker,
    connection: RawConnection,
    ours: bool | None,
    node_id: int,
    expected: str,
) -> None:
    cluster_id = broker.call(lambda it: it.cluster_id) if ours else "other"
    request = ApiVersionsRequest(
        client_software_name="raw",
        client_software_version="1",
        cluster_id=None if ours is None else cluster_id,
        node_id=node_id,
    )
    assert error_code(connection.exchange(request, 5).error_code).name == expected


@pytest.mark.parametrize("version", MetadataRequest.VALID_VERSIONS)
def test_metadata(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    broker.call(lambda it: (it.create_topic("t", 2), it.create_topic("u")))

    def ask(*names: str) -> list[MetadataResponseTopic]:
        wanted = [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(
            topics=wanted,
            include_topic_authorized_operations=version >= 8,
            include_cluster_authorized_operations=8 <= version <= 10,
        )
        answer = connection.exchange(request, version)
        (node,) = answer.brokers
        assert (node.node_id, f"{node.host}:{node.port}") == (1, broker.bootstrap)
        assert answer.controller_id == (1 if version >= 1 else -1)
        assert answer.cluster_id == (
            broker.call(lambda it: it.cluster_id) if version >= 2 else None
        )
        if 8 <= version <= 10:
            assert answer.cluster_authorized_operations == 8096
        return list(answer.topics)

    (found,) = ask("t")
    assert (found.error_code, found.name, found.is_internal) == (0, "t", False)
    assert found.topic_id == (broker.topic_id("t") if version >= 10 else ZERO_UUID)
    assert found.topic_authorized_operations == (3576 if version >= 8 else -(2**31))
    for index, partition in enumerate(found.partitions):
        assert (partition.partition_index, partition.leader_id) == (index, 1)
        assert partition.leader_epoch == (0 if version >= 7 else -1)
        assert partition.replica_nodes == partition.isr_nodes == [1]
        assert partition.offline_replicas == []
    assert len(found.partitions) == 2
    missing, illegal = ask("nope", "a b")
    assert error_code(missing.error_code).name == "UNKNOWN_TOPIC_OR_PARTITION"
    assert error_code(illegal.error_code).name == "INVALID_TOPIC_EXCEPTION"
    nothing = [topic.name for topic in ask()]
    if version == 0:
        assert nothing == ["t", "u"], "v0 asks for all by an empty list"
    else:
        assert nothing == []
        every = connection.exchange(MetadataRequest(topics=None), version)
        assert [topic.name for topic in every.topics] == ["t", "u"]


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_metadata_by_id(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    broker.call(lambda it: it.create_topic("t"))

    def ask(name: str | None, wanted: Uuid) -> tuple[str, str | None]:
        request = MetadataRequest(
            topics=[
                MetadataRequestTopic(name=name if version > 11 else name or "", topic_id=wanted)
            ]
        )
        (found,) = connection.exchange(request, version).topics
        return error_code(found.error_code).name, found.name

    if version < 12:
        assert ask("t", broker.topic_id("t")) == ("INVALID_REQUEST", "t")
        return
    assert ask(None, broker.topic_id("t")) == ("NONE", "t")
    assert ask(None, UNKNOWN_TOPIC_ID) == ("UNKNOWN_TOPIC_ID", None)
    assert ask("t", UNKNOWN_TOPIC_ID) == ("UNKNOWN_TOPIC_ID", None)


@pytest.mark.parametrize("version", [0, 4, 13])
def test_metadata_creates_topics_if_enabled(version: int) -> None:
    with (
        threaded_broker(BrokerSettings(auto_create_topics=True, num_partitions=3)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name="new"), MetadataRequestTopic(name="a b")]
        )
        made, illegal = connection.exchange(request, version).topics
        assert (made.error_code, len(made.partitions)) == (0, 3)
        assert error_code(illegal.error_code).name == "INVALID_TOPIC_EXCEPTION"
        assert broker.call(lambda it: list(it.topics)) == ["new"]
        if version >= 4:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name="other")], allow_auto_topic_creation=False
            )
            (missing,) = connection.exchange(request, version).topics
            assert error_code(missing.error_code).name == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize("version", CreateTopicsRequest.VALID_VERSIONS)
def test_create_topics(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    def create(*names: str, validate_only: bool = False) -> dict[str, str]:
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=2,
                    replication_factor=1,
                    configs=[CreatableTopicConfig(name="retention.ms", value="5")],
                )
                for name in names
            ],
            validate_only=validate_only,
        )
        answer = connection.exchange(request, version)
        for topic in answer.topics:
            if topic.error_code and version >= 1:
                assert topic.error_message
            if version >= 5 and not topic.error_code:
                assert (topic.num_partitions, topic.replication_factor) == (2, 1)
                configs = {config.name: config for config in topic.configs or ()}
                assert configs["retention.ms"].value == "5"
                assert (configs["retention.ms"].config_source, len(configs)) == (1, 37)
            if version >= 7 and not (topic.error_code or validate_only):
                assert topic.topic_id == broker.topic_id(topic.name)
        return {topic.name: error_code(topic.error_code).name for topic in answer.topics}

    if version >= 1:
        assert create("t", validate_only=True) == {"t": "NONE"}
        assert broker.call(lambda it: it.topics) == {}
    assert create("t", "u") == {"t": "NONE", "u": "NONE"}
    assert create("t", "v", "v", "a b") == {
        "t": "TOPIC_ALREADY_EXISTS",
        "v": "INVALID_REQUEST",
        "a b": "INVALID_TOPIC_EXCEPTION",
    }
    assert broker.call(
        lambda it: {name: len(it.topics[name].partitions) for name in it.topics}
    ) == {
        "t": 2,
        "u": 2,
    }


@pytest.mark.parametrize("version", DeleteTopicsRequest.VALID_VERSIONS)
def test_delete_topics(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    broker.call(lambda it: (it.create_topic("t"), it.create_topic("u")))

    def delete(*names: str) -> dict[str | None, str]:
        states = [DeleteTopicState(name=name) for name in names]
        request = (
            DeleteTopicsRequest(topics=states)
            if version >= 6
            else DeleteTopicsRequest(topic_names=names)
        )
        answer = connection.exchange(request, version)
        assert all(
            bool(topic.error_message) == (topic.error_code != 0 and version >= 5)
            for topic in answer.responses
        )
        return {topic.name: error_code(topic.error_code).name for topic in answer.responses}

    assert delete("t", "u", "u") == {"t": "NONE", "u": "INVALID_REQUEST"}
    assert delete("t") == {"t": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert broker.call(lambda it: list(it.topics)) == ["u"]


def test_delete_topics_by_id(broker: ThreadedBroker, connection: RawConnection) -> None:
    broker.call(lambda it: it.create_topic("t"))
    ours = broker.topic_id("t")

    def delete(*states: DeleteTopicState) -> list[tuple[str | None, str]]:
        answer = connection.exchange(DeleteTopicsRequest(topics=states), 6)
        return [(topic.name, error_code(topic.error_code).name) for topic in answer.responses]

    by_id = DeleteTopicState(name=None, topic_id=ours)
    assert delete(DeleteTopicState(name="t", topic_id=ours)) == [("t", "INVALID_REQUEST")]
    assert delete(DeleteTopicState(name=None)) == [(None, "INVALID_REQUEST")]
    assert delete(DeleteTopicState(name="t"), by_id) == [(None, "INVALID_REQUEST")]
    assert delete(DeleteTopicState(name=None, topic_id=UNKNOWN_TOPIC_ID)) == [
        (None, "UNKNOWN_TOPIC_ID")
    ]
    assert delete(by_id) == [("t", "NONE")]
    assert delete(by_id) == [(None, "UNKNOWN_TOPIC_ID")]


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id(connection: RawConnection, version: int) -> None:
    def ask(**fields: int | str | None) -> tuple[str, int, int]:
        request = InitProducerIdRequest(transaction_timeout_ms=1000)
        for name, value in {"transactional_id": None, **fields}.items():
            setattr(request, name, value)
        answer = connection.exchange(request, version)
        return error_code(answer.error_code).name, answer.producer_id, answer.producer_epoch

    assert [ask(), ask()] == [("NONE", 0, 0), ("NONE", 1, 0)]
    assert ask(transactional_id="") == ("INVALID_REQUEST", -1, -1)
    assert ask(transactional_id="mine") == ("NOT_COORDINATOR", -1, -1), "no lookup came before"
    if version >= 3:
        assert ask(producer_id=0, producer_epoch=0) == ("NONE", 2, 0), "always a new one"
        assert ask(producer_id=0) == ("INVALID_REQUEST", -1, -1)


def test_the_names_of_all_handled_requests_are_known() -> None:
    assert {messages.API_KEYS[key][0] for key in APIS} == {
        api.request.__name__ for api in APIS.values()
    }
