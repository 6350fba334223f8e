"""Tests the quota connection_creation_rate of an ip, over sockets."""

from __future__ import annotations

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from kproto.testing.clock import ManualClock
from tests.support.embedded import threaded_broker
from tests.support.raw_connection import ClosedByBrokerError, RawConnection


def set_rate(connection: RawConnection, ip: str | None, rate: float) -> int:
    entry = EntryData(
        entity=[EntityData(entity_type="ip", entity_name=ip)],
        ops=[OpData(key="connection_creation_rate", value=rate)],
    )
    answer = connection.exchange(AlterClientQuotasRequest(entries=[entry]), 1)
    return answer.entries[0].error_code


def test_connections_above_the_rate_are_closed_after_the_throttle_time() -> None:
    clock = ManualClock()
    settings = BrokerSettings(quota_window_num=2)
    with threaded_broker(settings, clock=clock) as broker:
        with RawConnection(broker.bootstrap) as first:
            assert set_rate(first, "127.0.0.1", 1.0) == 0
            with RawConnection(broker.bootstrap) as second:
                assert second.exchange(ApiVersionsRequest(), 0).error_code == 0
            with RawConnection(broker.bootstrap) as refused:
                refused.send(ApiVersionsRequest(), 0)
                broker.until(lambda it: it.connections == 1)  # the refused one has no session
                broker.advance(clock, 30_000)
                with pytest.raises(ClosedByBrokerError):
                    refused.receive()
            assert first.exchange(ApiVersionsRequest(), 0).error_code == 0
        with RawConnection(broker.bootstrap) as later:
            assert later.exchange(ApiVersionsRequest(), 0).error_code == 0


def test_a_quota_of_an_ip_is_described() -> None:
    with threaded_broker() as broker, RawConnection(broker.bootstrap) as connection:
        assert set_rate(connection, None, 100.0) == 0
        assert set_rate(connection, "10.0.0.1", 5.0) == 0
        assert set_rate(connection, "nowhere", 5.0) == 42
        request = DescribeClientQuotasRequest(
            components=[ComponentData(entity_type="ip", match_type=0, match="10.0.0.1")]
        )
        entries = connection.exchange(request, 1).entries
        assert entries is not None
        (found,) = entries
        assert [(it.key, it.value) for it in found.values] == [("connection_creation_rate", 5.0)]
