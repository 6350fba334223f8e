"""Tests quotas by entity: which quota applies, which values are valid, and filters."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.quotas import (
    Entity,
    EntityFilter,
    QuotaTable,
    entity_error,
    value_error,
)

KEY = "producer_byte_rate"


def entity(**parts: str | None) -> Entity:
    """Returns the quota entity of a user, of a client id, of a user and a client id, or of an IP.

    The name None stands for the default user, the default client id or the default IP.
    """
    names = {"user": "user", "client": "client-id", "ip": "ip"}
    return tuple(sorted((names[kind], name) for kind, name in parts.items()))


#: The order in Kafka's documentation for user u and client c; the first has precedence.
ORDER = [
    entity(user="u", client="c"),
    entity(user="u", client=None),
    entity(user="u"),
    entity(user=None, client="c"),
    entity(user=None, client=None),
    entity(user=None),
    entity(client="c"),
    entity(client=None),
]


@given(st.sets(st.sampled_from(range(len(ORDER)))))
def test_most_specific_quota_applies(indexes: set[int]) -> None:
    table = QuotaTable()
    for index in indexes:
        table.set(ORDER[index], KEY, float(index + 1))
        table.set(ORDER[index], "consumer_byte_rate", 99.0)
    limit = table.limit(KEY, "u", "c")
    if not indexes:
        assert limit is None
        return
    assert limit is not None
    first = min(indexes)
    assert limit.value == first + 1
    kinds = dict(ORDER[first])
    assert limit.user == ("u" if "user" in kinds else "")
    assert limit.client_id == ("c" if "client-id" in kinds else "")


def test_quotas_of_other_entities_do_not_apply() -> None:
    table = QuotaTable()
    table.set(entity(user="v"), KEY, 1.0)
    table.set(entity(client="d"), KEY, 1.0)
    table.set(entity(user="u"), "request_percentage", 1.0)
    assert table.limit(KEY, "u", "c") is None


def test_quota_is_removed() -> None:
    table = QuotaTable()
    table.set(entity(user="u"), KEY, 1.0)
    table.set(entity(user="u"), KEY, None)
    table.set(entity(user="u"), KEY, None)
    assert len(table) == 0


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ((), "empty"),
        ((("user", ""),), "Empty user"),
        ((("ip", ""),), "Empty ip"),
        ((("ip", "blub"),), "not a valid IP"),
        ((("ip", "10.0.0.1"), ("user", "u")), "combination"),
        ((("blub", "x"),), "Unhandled client quota entity type: blub"),
    ],
)
def test_invalid_entities_are_rejected(parts: Entity, why: str) -> None:
    assert why in (entity_error(parts) or "")
    assert all(entity_error(of) is None for of in ORDER)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (KEY, 1.0, None),
        (KEY, 1e15, None),
        ("request_percentage", 0.5, None),
        ("controller_mutation_rate", 0.5, None),
        (KEY, 1.5, "fractional"),
        (KEY, 0.0, "greater than 0"),
        (KEY, -1.0, "greater than 0"),
        (KEY, float("nan"), "greater than 0"),
        ("request_percentage", float("inf"), "greater than 0"),
        ("nope", 1.0, "Invalid configuration key"),
        ("connection_creation_rate", 1.0, "Invalid configuration key"),
    ],
)
def test_quota_values_are_validated(key: str, value: float, why: str | None) -> None:
    fault = value_error(entity(user="u"), key, value)
    assert fault is None if why is None else why in (fault or "")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("connection_creation_rate", 1.0, None),
        ("connection_creation_rate", 1.5, "fractional"),
        ("connection_creation_rate", 0.0, "greater than 0"),
        (KEY, 1.0, "Invalid configuration key"),
    ],
)
def test_quota_values_of_an_ip_are_validated(key: str, value: float, why: str | None) -> None:
    fault = value_error((("ip", "10.0.0.1"),), key, value)
    assert fault is None if why is None else why in (fault or "")


def test_the_quota_of_an_ip_overrides_the_quota_of_the_default_ip() -> None:
    table = QuotaTable()
    assert table.connection_limit("10.0.0.1") is None
    table.set((("ip", None),), "connection_creation_rate", 5.0)
    table.set((("ip", "10.0.0.1"),), "connection_creation_rate", 2.0)
    table.set((("ip", "localhost"),), "connection_creation_rate", 3.0)
    table.set(entity(user="u"), KEY, 1.0)
    assert table.connection_limit("10.0.0.1") == 2
    assert table.connection_limit("127.0.0.1") == 3
    assert table.connection_limit("10.0.0.2") == 5


@pytest.mark.parametrize(
    ("named", "typed", "expected"),
    [
        ({}, (), ORDER),
        ({"user": "u"}, (), ORDER[:3]),
        ({"user": None}, (), ORDER[3:6]),
        ({}, ("user",), ORDER[:6]),
        ({"client-id": "c"}, ("user",), [ORDER[0], ORDER[3]]),
        ({"client-id": "x"}, (), []),
        ({}, ("ip",), []),
    ],
)
def test_filters_find_their_entities(
    named: Any, typed: tuple[str, ...], expected: list[Entity]
) -> None:
    table = QuotaTable()
    for one in ORDER:
        table.set(one, KEY, 1.0)
    for strict in (False, True):
        found = [of for of, _ in table.matching(EntityFilter(named, frozenset(typed), strict))]
        parts = len(named) + len(typed)
        assert found == [of for of in expected if not strict or (parts and len(of) == parts)]


def test_every_pair_of_names_is_one_entity() -> None:
    table = QuotaTable()
    for number, (user, client) in enumerate(itertools.product("ab", repeat=2)):
        table.set(entity(user=user, client=client), KEY, float(number + 1))
    values = [table.limit(KEY, *pair) for pair in ("aa", "ab", "ba", "bb")]
    assert [limit.value for limit in values if limit] == [1, 2, 3, 4]
