"""Tests GetTelemetrySubscriptions and PushTelemetry, over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.push_telemetry_request import PushTelemetryRequest
from kproto.protocol.error_codes import error_code
from kproto.testing.clock import ManualClock
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection

Side = tuple[ThreadedBroker, RawConnection, ManualClock]


@pytest.fixture
def side() -> Iterator[Side]:
    clock = ManualClock()
    settings = BrokerSettings(client_telemetry=True)
    with (
        threaded_broker(settings, clock=clock) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        yield broker, connection, clock


def get(connection: RawConnection, instance: Uuid = ZERO_UUID) -> Any:
    return connection.exchange(GetTelemetrySubscriptionsRequest(client_instance_id=instance), 0)


def push(connection: RawConnection, instance: Uuid, subscription: int, **fields: Any) -> str:
    request = PushTelemetryRequest(
        client_instance_id=instance, subscription_id=subscription, **fields
    )
    return error_code(connection.exchange(request, 0).error_code).name


def subscribe(connection: RawConnection, name: str, **configs: str) -> None:
    resource = AlterConfigsResource(
        resource_type=16,
        resource_name=name,
        configs=[
            AlterableConfig(name=config.replace("_", "."), value=value)
            for config, value in configs.items()
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    assert connection.exchange(request, 1).responses[0].error_code == 0


@pytest.mark.parametrize("listed", [False, True])
def test_telemetry_is_listed_if_enabled(listed: bool) -> None:
    settings = BrokerSettings(client_telemetry=listed)
    with threaded_broker(settings) as broker, RawConnection(broker.bootstrap) as connection:
        keys = [it.api_key for it in connection.exchange(ApiVersionsRequest(), 0).api_keys]
        assert (71 in keys, 72 in keys) == (listed, listed)
        assert get(connection).error_code == 0, "as in Kafka, the requests are answered"


def test_subscription_has_the_metrics_that_match_the_client(side: Side) -> None:
    _, connection, _ = side
    nothing = get(connection)
    assert nothing.client_instance_id != ZERO_UUID
    assert (list(nothing.requested_metrics), nothing.push_interval_ms) == ([], 300_000)
    subscribe(connection, "a", metrics="org.a.,org.b.", interval_ms="2000")
    subscribe(connection, "b", metrics="org.c.", interval_ms="1000", match="client_id=raw")
    subscribe(connection, "c", metrics="org.d.", match="client_id=other")
    found = get(connection)
    assert list(found.requested_metrics) == ["org.a.", "org.b.", "org.c."]
    assert found.push_interval_ms == 1_000
    assert found.subscription_id != nothing.subscription_id
    assert list(found.accepted_compression_types) == [4, 3, 1, 2]


def test_requests_before_the_end_of_the_interval_are_throttled(side: Side) -> None:
    broker, connection, clock = side
    found = get(connection)
    instance, subscription = found.client_instance_id, found.subscription_id
    assert error_code(get(connection, instance).error_code).name == "THROTTLING_QUOTA_EXCEEDED"
    assert push(connection, instance, subscription) == "NONE"
    assert push(connection, instance, subscription) == "THROTTLING_QUOTA_EXCEEDED"
    broker.advance(clock, 300_000)
    assert push(connection, instance, subscription) == "NONE"
    assert push(connection, instance, subscription, terminating=True) == "NONE"
    assert push(connection, instance, subscription, terminating=True) == "INVALID_REQUEST"


def test_invalid_pushes_are_refused(side: Side) -> None:
    _, connection, _ = side
    found = get(connection)
    instance, subscription = found.client_instance_id, found.subscription_id
    assert push(connection, instance, 5) == "UNKNOWN_SUBSCRIPTION_ID"
    assert get(connection, instance).error_code == 0, "the client may ask at once"
    assert push(connection, Uuid.random(), subscription) == "UNKNOWN_SUBSCRIPTION_ID"
    assert push(connection, instance, subscription, compression_type=9) == (
        "UNSUPPORTED_COMPRESSION_TYPE"
    )
    assert push(connection, instance, subscription, metrics=bytes(1_048_577)) == (
        "TELEMETRY_TOO_LARGE"
    )
    assert push(connection, instance, subscription, metrics=b"x") == "NONE"
