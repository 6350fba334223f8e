"""Tests the fetch settings: their defaults, and the size of a response that follows from them."""

from __future__ import annotations

import inspect
from typing import Any, get_overloads

import pytest

from kproto import Client
from kproto.client.fetch.fetch_options import DEFAULT_FETCH_OPTIONS


def test_defaults_of_the_overloads_are_those_of_the_settings() -> None:
    overloads = get_overloads(Client.consumer)
    assert len(overloads) == 2
    defaults = DEFAULT_FETCH_OPTIONS._asdict()
    del defaults["reset_policy"]  # follows from `start`
    for overload in overloads:
        parameters = inspect.signature(overload).parameters
        assert {name: parameters[name].default for name in defaults} == defaults


def test_implementation_has_no_defaults_of_its_own() -> None:
    parameters = inspect.signature(Client.consumer).parameters
    for name in DEFAULT_FETCH_OPTIONS._fields:
        assert name == "reset_policy" or parameters[name].default is None


@pytest.mark.parametrize(
    ("settings", "brokers", "partitions", "limit"),
    [
        ({}, 1, 1, 4 * 1_048_576),
        ({}, 1, 2_000, 4 * 1_048_576),
        ({}, 1, 4_000, 4_000 * 2_048),
        ({}, 1, 100_000, 67_108_864 // 4),
        ({}, 100, 100_000, 67_108_864 // 400),
        ({"fetch_max_bytes": 100_000}, 1, 100_000, 100_000),
        ({"max_partition_fetch_bytes": 3_000_000}, 1, 1, 12_000_000),
        ({"queued_max_bytes": 1}, 1, 1, 1),
        ({}, 0, 0, 4 * 1_048_576),
    ],
)
def test_limit_of_a_response(
    settings: dict[str, Any], brokers: int, partitions: int, limit: int
) -> None:
    options = DEFAULT_FETCH_OPTIONS._replace(**settings)
    assert options.response_limit(brokers, partitions) == limit
