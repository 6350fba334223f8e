"""Tests Kafka's names of settings: each is an alias of a short name; setting both is an error."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from kproto import Client, ConfigurationError
from kproto.client.groups.settings import GroupSettings
from kproto.client.kafka_names import (
    CONSUMER_NAMES,
    GROUP_CONSUMER_NAMES,
    PRODUCER_NAMES,
    resolve_aliases,
)
from kproto.client.producer.settings import ProducerSettings
from kproto.security.property_table import ROWS

VALUES: dict[str, Any] = {
    "auto_offset_reset": "latest",
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    "group_instance_id": "one",
    "group_remote_assignor": "range",
    "partition_assignment_strategy": ["range"],
    "fetch_max_wait_ms": 7,
    "compression_type": "gzip",
    "batch_size": 7,
    "buffer_memory": 7,
    "max_in_flight_requests_per_connection": 2,
    "enable_idempotence": False,
}


@pytest.mark.parametrize("names", [PRODUCER_NAMES, GROUP_CONSUMER_NAMES])
def test_kafka_name_is_the_property_of_its_setting(names: dict[str, str]) -> None:
    for kafka_name, name in names.items():
        rows = [row for row in ROWS if kafka_name.replace("_", ".") in row.names]
        assert [row.name for row in rows] == [name]


def test_every_short_name_is_a_setting() -> None:
    assert set(PRODUCER_NAMES.values()) <= {each.name for each in fields(ProducerSettings)}
    of_members = set(GROUP_CONSUMER_NAMES.values()) - set(CONSUMER_NAMES.values())
    assert of_members <= {each.name for each in fields(GroupSettings)}


def test_declared_types_have_the_names_of_the_tables() -> None:
    from kproto.client import kafka_names

    assert set(kafka_names.ProducerNames.__annotations__) == set(PRODUCER_NAMES)
    assert set(kafka_names.ConsumerNames.__annotations__) == set(CONSUMER_NAMES)
    assert set(kafka_names.GroupConsumerNames.__annotations__) == set(GROUP_CONSUMER_NAMES)
    assert set(get_type_hints(kafka_names.ConsumerNames)) == set(CONSUMER_NAMES)


@pytest.mark.parametrize("kafka_name", sorted(PRODUCER_NAMES))
async def test_producer_takes_a_kafka_name(kafka_name: str) -> None:
    client = Client("localhost:1")
    value = VALUES[kafka_name]
    producer = client.producer(**{kafka_name: value})
    assert getattr(producer.settings, PRODUCER_NAMES[kafka_name]) == value
    with pytest.raises(ConfigurationError, match=f"and {kafka_name} are the same setting"):
        client.producer(**{kafka_name: value, PRODUCER_NAMES[kafka_name]: value})


def test_group_consumer_takes_kafka_names() -> None:
    consumer = Client("localhost:1").consumer(
        "t",
        group="g",
        auto_offset_reset="latest",
        isolation_level="read_committed",
        enable_auto_commit=False,
        group_instance_id="one",
        partition_assignment_strategy=["sticky"],
    )
    short = Client("localhost:1").consumer(
        "t",
        group="g",
        start="latest",
        read_committed=True,
        auto_commit=False,
        instance_id="one",
        assignors=["sticky"],
    )
    assert consumer._settings == short._settings
    assert consumer._settings.instance_id == "one"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"isolation_level": "serializable"}, ConfigurationError, "isolation_level is"),
        ({"isolation_level": "read_committed", "read_committed": True}, ConfigurationError, "same"),
        ({"fetch_max_bites": 1}, TypeError, "fetch_max_bites"),
        ({"group_instance_id": "one"}, ConfigurationError, "is for a consumer of a group"),
    ],
)
def test_invalid_or_conflicting_arguments_are_refused(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Client("localhost:1").consumer("t", **arguments)


def test_name_with_the_value_none_is_ignored() -> None:
    assert (
        resolve_aliases("call", {"start": None}, {"auto_offset_reset": None}, CONSUMER_NAMES) == {}
    )


def test_the_error_of_a_setting_of_the_client_says_where_it_belongs() -> None:
    of_client: Any = {"delivery_timeout_ms": 1}
    unknown: Any = {"fetch_max_bites": 1}
    with pytest.raises(TypeError, match=r"Client\(…, ClientSettings\(delivery_timeout_ms=…\)\)"):
        Client("localhost:1").producer(**of_client)
    with pytest.raises(TypeError, match=r"has no argument 'fetch_max_bites'$"):
        Client("localhost:1").consumer("t", **unknown)
