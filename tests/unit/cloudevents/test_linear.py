"""Tests that reading many names takes time in proportion to their number."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from kproto_cloudevents import CloudEventError, from_json, from_json_batch, from_kafka
from kproto_cloudevents.pulsar import from_pulsar

from tests.support.selection import rest_slow

CURRENT = '"specversion":"1.0","id":"1","source":"/s","type":"t"'
WITH_MAPS = '"specversion":"0.3","id":"1","source":"/s","type":"t"'
OLD = '"cloudEventsVersion":"0.1","eventID":"1","source":"/s","eventType":"t"'

#: The allowed increase in time for four times the input: 4 is linear, 16 is quadratic.
MOST = 9
COUNT = 3000
ROUNDS = 20


def named(count: int, value: str = '"v"', name: str = "x") -> str:
    return ",".join(f'"{name}{each}":{value}' for each in range(count))


def twice(count: int) -> str:
    """Returns JSON members with `count` different names; the last name occurs twice."""
    return f'{named(count)},"x{count - 1}":"v"'


def headers_twice(count: int) -> list[tuple[str, bytes | None]]:
    required: list[tuple[str, bytes | None]] = [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"1"),
        ("ce_source", b"/s"),
        ("ce_type", b"t"),
    ]
    names = [*range(count), count - 1]
    return [*required, *((f"ce_x{each}", b"v") for each in names)]


def pulsar_properties(count: int) -> dict[str, str]:
    required = {
        "CE-CloudEventsVersion": '"0.1"',
        "CE-EventID": '"1"',
        "CE-Source": '"/s"',
        "CE-EventType": '"t"',
    }
    return {**required, **{f"CE-X-X{each}": '{"a":1,"a":2}' for each in range(count)}}


def extensions_of(text: str) -> object:
    return from_json(text).extensions


#: Each reading function, and the function that builds its input for a number of names.
SHAPES: dict[str, tuple[Callable[[Any], object], Callable[[int], Any]]] = {
    "the last name twice": (from_json, lambda n: f"{{{CURRENT},{twice(n)}}}"),
    "every name twice": (from_json, lambda n: f"{{{CURRENT},{named(n)},{named(n)}}}"),
    "every name once": (from_json, lambda n: f"{{{CURRENT},{named(n)}}}"),
    "null members": (from_json, lambda n: f"{{{CURRENT},{named(n, 'null')}}}"),
    "long names": (from_json, lambda n: f"{{{CURRENT},{named(n, name='x' * 30)}}}"),
    "maps": (from_json, lambda n: f"{{{WITH_MAPS},{named(n, '{}')}}}"),
    "a name of a map twice": (from_json, lambda n: f'{{{WITH_MAPS},"m":{{{twice(n)}}}}}'),
    "entries of 0.1": (extensions_of, lambda n: f'{{{OLD},"extensions":{{{named(n)}}}}}'),
    "an entry of 0.1 twice": (from_json, lambda n: f'{{{OLD},"extensions":{{{twice(n)}}}}}'),
    "a batch": (from_json_batch, lambda n: f"[{{{CURRENT}}},{{{CURRENT},{twice(n)}}}]"),
    "the last header twice": (lambda headers: from_kafka(None, b"", headers), headers_twice),
    "properties": (lambda properties: from_pulsar(properties, b""), pulsar_properties),
}


def seconds(read: Callable[[Any], object], input_of: Any) -> float:
    """Returns the CPU time in seconds of reading the input, whether it is accepted or refused."""
    start = time.thread_time()
    with suppress(CloudEventError):
        read(input_of)
    return time.thread_time() - start


@pytest.mark.parametrize("shape", rest_slow(SHAPES, 3))
def test_many_names_are_read_in_linear_time(shape: str) -> None:
    read, input_of = SHAPES[shape]
    few, many = input_of(COUNT), input_of(4 * COUNT)
    small = large = float("inf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The shortest of several times counts, because other processes only add time.
        for _ in range(ROUNDS):
            small, large = min(small, seconds(read, few)), min(large, seconds(read, many))
            if large < MOST * small:
                return
    pytest.fail(f"four times the names took {large / small:.1f} times as long")


def test_the_error_names_the_duplicate() -> None:
    with pytest.raises(CloudEventError, match=r"^x9: the member appears twice"):
        from_json(f"{{{CURRENT},{twice(10)}}}")
    with pytest.raises(CloudEventError, match=r"^x0: the member appears twice"):
        from_json(f"{{{CURRENT},{named(5)},{named(5)}}}")
