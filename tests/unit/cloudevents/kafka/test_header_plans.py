"""Tests plans for headers: with and without a plan, a record yields the same event or error.

A plan has the checks for one tuple of header names. It is learned from a valid event.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import CloudEvent, CloudEventError, from_kafka
from kproto_cloudevents.kafka import headers as header_room
from kproto_cloudevents.versions.check_plans import MAX_NAMES, MAX_PLANS
from kproto_cloudevents.versions.version_tables import V1_0

from tests.unit.cloudevents.samples import REQUIRED

NAMES = [
    *(name for name, _ in REQUIRED),
    *("ce_time", "content-type", "ce_datacontenttype", "ce_subject", "ce_zone", "ce_Bad", "trace"),
    *("ce_cloudEventsVersion", "ce_eventType", "ce_eventID", "ce_extensions"),
]
VALUES: list[bytes | None] = [
    *(b"1.0", b"0.3", b"0.1", b"x", b"/s", b"2020-01-01T00:00:00Z", b"text/plain", b'{"a":1}'),
    *(None, b"", b"%", b"\x00", b"\xff", "é".encode(), b"s" * 300),
]
Headers = tuple[tuple[str, bytes | None], ...]


@st.composite
def headers(draw: st.DrawFn) -> Headers:
    """Draws headers in any order; the headers that an event requires are usually valid."""
    table: dict[str, bytes | None] = dict(REQUIRED)
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=4)):
        table[name] = draw(st.sampled_from(VALUES))
    table.pop(draw(st.sampled_from(["", "", "", *table])), None)
    return tuple(draw(st.permutations(list(table.items()))))


def forget() -> None:
    """Removes all plans."""
    for plans in header_room._PLANS.values():
        plans.clear()


@pytest.fixture(autouse=True)
def _without_plans() -> Iterator[None]:
    forget()
    yield
    forget()


def outcome(given_headers: Headers) -> object:
    """Returns all visible results of reading the headers, or the error with its exact text."""
    try:
        event = from_kafka(None, b"v", given_headers)
    except CloudEventError as error:
        return type(error), str(error), error.reason, error.where, error.clauses
    if not isinstance(event, CloudEvent):
        return event
    return event.specversion, list(event.items()), event.data, event.mode


@given(headers(), st.data())
def test_headers_are_read_alike_by_a_plan_and_without(one: Headers, data: st.DataObject) -> None:
    other = tuple((name, data.draw(st.sampled_from([raw, *VALUES]))) for name, raw in one)
    forget()
    expected = []
    for each in (one, other):
        expected.append(outcome(each))
        forget()
    for _ in range(2):
        for each, wanted in zip((one, other), expected, strict=True):
            assert outcome(each) == wanted


def test_a_plan_is_learnt_only_of_what_is_right() -> None:
    plans = header_room._PLANS[V1_0]
    for wrong in (("ce_time", b"x"), ("ce_Bad", b"x"), ("ce_subject", b"")):
        with pytest.raises(CloudEventError):
            from_kafka(None, None, (*REQUIRED, wrong))
    assert not plans
    for _ in range(2):
        from_kafka(None, None, (*REQUIRED, ("trace", b"x")))
    assert list(plans) == [(*(name for name, _ in REQUIRED), "trace")]


def test_plans_are_few_and_short() -> None:
    plans = header_room._PLANS[V1_0]
    for index in range(MAX_PLANS + 1):
        from_kafka(None, None, (*REQUIRED, (f"trace{index}", b"x")))
    assert len(plans) == MAX_PLANS
    forget()
    from_kafka(None, None, (*REQUIRED, *((f"trace{index}", b"x") for index in range(MAX_NAMES))))
    from_kafka(None, None, (*REQUIRED, ("trace" * 50, b"x")))
    assert not plans
