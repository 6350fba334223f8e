"""Tests a broker that imitates a Kafka release: its versions and record formats."""

from __future__ import annotations

from typing import Any

import pytest

from kproto import ConfigurationError
from kproto.broker import BrokerSettings
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.registry import by_key, served_apis
from kproto.broker.releases import advertised_versions, supported_versions
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.base import Request
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.list_offsets_request import ListOffsetsRequest
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.protocol.error_codes import error_code
from kproto.records import read_batches
from kproto.schema.release_table import newest_release, releases
from tests.support.batches import batch_bytes
from tests.support.embedded import threaded_broker
from tests.support.raw_connection import ClosedByBrokerError, RawConnection

ASK = MetadataRequest(topics=[])


def taken(release: Any, **settings: Any) -> dict[int, range]:
    return {
        key: api.versions
        for key, api in served_apis(KAFKA_APIS, BrokerSettings(release=release, **settings)).items()
    }


@pytest.mark.parametrize(
    ("release", "key", "expected"),
    [
        ("0.8.2", 0, range(1)),
        ("0.8.2", 1, range(1)),
        ("0.9", 0, range(2)),
        ("0.9.0", 1, range(2)),
        ("0.10.0", 1, range(3)),
        ("0.10", 1, range(4)),
        ("0.11", 1, range(6)),
        ("1.1", 1, range(8)),
        ("2.4.0", 1, range(12)),
        ("3.9.2", 0, range(12)),
        ("3.9.2", 1, range(18)),
        ("4.4", 0, range(3, 14)),
        ("4.4", 1, range(4, 19)),
        ("4.4", 2, range(1, 12)),
    ],
)
def test_the_versions_of_a_release(release: str, key: int, expected: range) -> None:
    assert taken(release)[key] == expected


def test_without_a_release_all_are_taken() -> None:
    assert taken(None) == {
        key: range(api.versions.start, min(api.versions.stop, api.request.LATEST_STABLE + 1))
        for key, api in by_key(KAFKA_APIS).items()
    }


@pytest.mark.parametrize("release", releases())
def test_every_release_is_supported(release: str) -> None:
    its = taken(release)
    assert {0, 1, 2, 3} <= set(its), "what every broker answers"
    assert (18 in its) == (not release.startswith(("0.8", "0.9")))


def test_a_release_by_its_beginning() -> None:
    assert newest_release("0.9") == "0.9.0.1"
    assert newest_release("0.10.2") == "0.10.2.2"
    assert newest_release("4.4.0") == "4.4.0"
    assert newest_release("1") == "1.1.1"


def test_custom_version_ranges() -> None:
    own = {0: range(2, 5), 1: range(100), 99: range(1)}
    assert taken(own) == {0: range(2, 5), 1: range(19)}
    assert advertised_versions(own, taken(own))[0] == range(2, 5)


def test_zookeeper_only_versions_are_left_out() -> None:
    assert 38 in supported_versions("2.8"), "delegation tokens"
    assert 4 not in supported_versions("3.9.2"), "LeaderAndIsr"


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ("5.0", "release: no release is called '5.0'"),
        ("0.9.", "release: no release is called"),
        ({0: (0, 3)}, "release: the versions of api key 0 are"),
        ({0: range(0)}, "release: the versions of api key 0 are"),
        ({0: range(0, 4, 2)}, "release: the versions of api key 0 are"),
    ],
)
def test_unknown_release_raises(release: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        BrokerSettings(release=release)


@pytest.mark.parametrize("release", ["0.8.2", "0.9"])
def test_before_0_10_api_versions_ends_the_connection(release: str) -> None:
    with threaded_broker(settings=BrokerSettings(release=release)) as broker:
        with RawConnection(broker.bootstrap) as connection, pytest.raises(ClosedByBrokerError):
            connection.exchange(ApiVersionsRequest(), 0)
        with RawConnection(broker.bootstrap) as connection:
            assert connection.exchange(MetadataRequest(), 0).brokers


@pytest.mark.parametrize(
    ("release", "asked", "listed"),
    [("0.10", 3, None), ("2.3", 3, None), ("2.4", 4, (0, 3)), ("3.9.2", 5, (0, 4))],
)
def test_a_version_of_api_versions_that_a_release_does_not_know(
    release: str, asked: int, listed: tuple[int, int] | None
) -> None:
    with (
        threaded_broker(settings=BrokerSettings(release=release)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        connection.send(
            ApiVersionsRequest(client_software_name="x", client_software_version="1"), asked
        )
        answer: Any = connection.receive()
        assert error_code(answer.error_code).name == "UNSUPPORTED_VERSION"
        found = [(it.api_key, it.min_version, it.max_version) for it in answer.api_keys]
        assert found == ([] if listed is None else [(18, *listed)])
        first = connection.exchange(ApiVersionsRequest(), 0)
        assert error_code(first.error_code).name == "NONE"


def test_since_4_0_old_versions_of_produce_are_listed_and_not_taken() -> None:
    with threaded_broker(settings=BrokerSettings(release="4.4")) as broker:
        with RawConnection(broker.bootstrap) as connection:
            keys = connection.exchange(ApiVersionsRequest(), 0).api_keys
            assert (keys[0].min_version, keys[0].max_version) == (0, 13)
        with RawConnection(broker.bootstrap) as connection, pytest.raises(ClosedByBrokerError):
            connection.exchange(ProduceRequest(), 0)


@pytest.mark.parametrize(
    ("release", "produce", "fetch", "magic"),
    [("0.8.2", 0, 0, 0), ("0.9", 1, 1, 0), ("0.10.0", 2, 2, 1), ("0.10.2", 2, 3, 1)],
)
def test_records_come_in_the_format_of_the_release(
    release: str, produce: int, fetch: int, magic: int
) -> None:
    with (
        threaded_broker(settings=BrokerSettings(release=release)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        broker.call(lambda it: it.create_topic("t"))
        data = PartitionProduceData(records=batch_bytes(2))
        topic = TopicProduceData(name="t", partition_data=[data])
        request = ProduceRequest(acks=1, topic_data=[topic])
        assert connection.exchange(request, produce).responses
        wanted = FetchPartition(partition_max_bytes=1 << 20)
        answer = connection.exchange(
            FetchRequest(topics=[FetchTopic(topic="t", partitions=[wanted])]), fetch
        )
        batches = list(read_batches(answer.responses[0].partitions[0].records or b""))
        assert {batch.magic for batch in batches} == {magic}
        assert sum(len(list(batch.records())) for batch in batches) == 2
        later: tuple[tuple[Request[Any], int], ...] = (
            (request, produce + 1),
            (ListOffsetsRequest(), 7),
        )
        for newer, version in later:
            with RawConnection(broker.bootstrap) as another, pytest.raises(ClosedByBrokerError):
                another.exchange(newer, version)
