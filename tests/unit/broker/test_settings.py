"""Tests valid broker settings, and the errors of invalid broker settings."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kproto import ConfigurationError
from kproto.broker import Broker, BrokerSettings


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        BrokerSettings().port = 1  # type: ignore[misc]  # that it cannot be is the point


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": -1},
        {"port": 65_536},
        {"port": "9092"},
        {"port": True},
        {"advertised_port": 0},
        {"advertised_port": 65_536},
        {"advertised_port": "9092"},
        {"max_stored_bytes": 0},
        {"retention_check_interval_ms": 0},
        {"producer_id_expiration_ms": 0},
        {"num_partitions": 0},
        {"default_replication_factor": 0},
        {"default_replication_factor": True},
        {"idle_timeout_ms": 0},
        {"message_max_bytes": 1.5},
        {"host": "0.0.0.0"},
        {"host": ""},
        {"host": "::"},
        {"users": "alice:secret"},
        {"users": [("alice", "secret")]},
        {"users": {"alice": b"secret"}},
        {"delegation_token_secret_key": b"secret"},
        {"delegation_token_secret_key": "secret\ud800"},
        {"delegation_token_secret_key": ""},
        {"group_consumer_session_timeout_ms": 44_999},
        {"group_consumer_session_timeout_ms": 60_001},
        {"group_consumer_heartbeat_interval_ms": 4_999},
        {"group_consumer_heartbeat_interval_ms": 15_001},
        {"group_consumer_max_size": 0},
        {"group_consumer_assignment_interval_ms": -1},
        {"group_consumer_regex_refresh_interval_ms": 9_999},
        {"group_consumer_assignors": ("sticky",)},
        {"group_consumer_assignors": ()},
        {"group_consumer_migration_policy": "both"},
        {"group_coordinator_rebalance_protocols": ("consumer",)},
        {"group_coordinator_rebalance_protocols": ("classic", "share")},
    ],
    ids=str,
)
def test_wrong_settings_are_named(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ConfigurationError, match=name) as raised:
        BrokerSettings(**wrong)
    assert "secret'" not in str(raised.value), "no password is shown"


def test_heartbeat_interval_must_be_below_session_timeout() -> None:
    with pytest.raises(ConfigurationError, match="before its first heartbeat"):
        BrokerSettings(
            group_consumer_min_session_timeout_ms=1, group_consumer_session_timeout_ms=5_000
        )


@pytest.mark.parametrize(
    ("release", "given", "protocols"),
    [
        (None, None, ("classic", "consumer")),
        ("4.0", None, ("classic", "consumer")),
        ("3.9.2", None, ("classic",)),
        ("3.9.2", ("classic", "consumer"), ("classic", "consumer")),
        ({0: range(9)}, None, ("classic", "consumer")),
        ("4.4.0", ("classic",), ("classic",)),
    ],
)
def test_protocols_of_groups(
    release: Any, given: tuple[str, ...] | None, protocols: tuple[str, ...]
) -> None:
    settings = BrokerSettings(release=release, group_coordinator_rebalance_protocols=given)
    assert settings.rebalance_protocols == protocols


def test_a_wildcard_with_an_advertised_host() -> None:
    assert BrokerSettings(host="0.0.0.0", advertised_host="here").advertised_host == "here"


def test_named_settings_go_before_the_others() -> None:
    settings = BrokerSettings(num_partitions=2, node_id=7)
    broker = Broker(settings, num_partitions=5, auto_create_topics=True)
    assert (broker.settings.num_partitions, broker.settings.node_id) == (5, 7)
    assert broker.settings.auto_create_topics
    with pytest.raises(ConfigurationError, match="num_partitions"):
        Broker(num_partitions=0)
