"""Tests plans for attributes: an event or error is the same with and without a plan.

A plan has the checks for one tuple of attribute names. It is learned from a valid event.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import CloudEvent, CloudEventError, JsonMap
from kproto_cloudevents.versions.check_plans import MAX_NAMES, MAX_PLANS
from kproto_cloudevents.versions.version_tables import ALL_VERSIONS, V1_0

BASE = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.placed"}

#: Attributes of all versions by name, with values that are valid in one of them.
RIGHT: dict[str, list[Any]] = {
    "specversion": ["1.0", "0.3", "0.2", "0.1"],
    "cloudEventsVersion": ["0.1"],
    "id": ["1", "é"],
    "eventID": ["1"],
    "source": ["/shop", "https://a/b?c#d"],
    "type": ["order.placed"],
    "eventType": ["order.placed"],
    "time": ["2020-01-01T00:00:00Z", "2020-02-29T00:00:00Z", datetime(2020, 1, 1, tzinfo=UTC)],
    "datacontenttype": ["application/json", "text/plain", "text/plain; charset=latin-1"],
    "datacontentencoding": ["base64"],
    "dataschema": ["https://a/b"],
    "subject": ["s"],
    "extensions": [JsonMap('{"a":1}'), '{"a": 2}'],
    "zone": ["x", 5, True, b"\x00", JsonMap('{"b":1}')],
}
#: Values that are invalid for some or all attributes.
WRONG: list[Any] = [
    None,
    "",
    "%",
    "\x00",
    "tomorrow",
    "2021-02-29T00:00:00Z",
    "9.9",
    2**40,
    1.5,
    [],
]


@st.composite
def attributes(draw: st.DrawFn) -> dict[Any, Any]:
    """Draws attributes: usually all required attributes, and at most one invalid value."""
    names = draw(
        st.permutations([*BASE, *draw(st.lists(st.sampled_from(list(RIGHT)), max_size=3))])
    )
    made: dict[Any, Any] = {name: draw(st.sampled_from(RIGHT[name])) for name in names}
    match draw(st.integers(0, 9)):
        case 0:
            del made[draw(st.sampled_from(list(made)))]
        case 1:
            made[draw(st.sampled_from(["Bad", "", "data", 1, "é"]))] = "x"
        case 2 | 3 | 4:
            made[draw(st.sampled_from(list(made)))] = draw(st.sampled_from(WRONG))
        case _:
            pass
    return made


DATA = st.sampled_from([None, b"x", "x", "eA==", {"a": 1}, [1.5], JsonMap("{}"), {1, 2}])


def forget() -> None:
    """Removes all plans, and all names that a version has stored as valid."""
    for version in ALL_VERSIONS:
        version.plans.clear()
        version._valid_names.clear()


@pytest.fixture(autouse=True)
def _without_plans() -> Iterator[None]:
    forget()
    yield
    forget()


def outcome(attributes: dict[Any, Any], data: Any) -> object:
    """Returns all visible results of making an event, or the error with its exact text."""
    try:
        event = CloudEvent(attributes, data=data)
    except CloudEventError as error:
        return type(error), str(error), error.reason, error.where, error.clauses
    shown = [(name, type(value), value) for name, value in event.items()]
    return event.specversion, shown, type(event.data), event.data


@given(attributes(), attributes(), DATA)
def test_an_event_is_the_same_with_and_without_a_plan(
    one: dict[Any, Any], other: dict[Any, Any], data: Any
) -> None:
    # `mixed` has the names of `one`, with values from which the plan was not learned.
    mixed = {name: other.get(name, value) for name, value in one.items()}
    forget()
    expected = []
    for each in (one, mixed):
        expected.append(outcome(each, data))
        forget()
    for _ in range(2):
        for each, wanted in zip((one, mixed), expected, strict=True):
            assert outcome(each, data) == wanted


def test_the_mapping_of_the_caller_is_not_changed() -> None:
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    for _ in range(2):
        attributes: dict[str, Any] = {
            "id": "1",
            "source": "/s",
            "type": "t",
            "time": moment,
            "subject": None,
        }
        assert "subject" not in CloudEvent(attributes)
        assert attributes["time"] is moment
        assert list(attributes) == ["id", "source", "type", "time", "subject"]


def test_a_plan_is_learned_once_from_valid_events_only() -> None:
    with pytest.raises(CloudEventError):
        CloudEvent(BASE, time="tomorrow")
    with pytest.raises(CloudEventError):
        CloudEvent(BASE, Bad="x")
    assert not V1_0.plans
    for _ in range(3):
        CloudEvent(BASE, zone="x")
    assert list(V1_0.plans) == [(*BASE, "zone")]


def test_plans_are_limited_in_number_and_length() -> None:
    for index in range(MAX_PLANS + 1):
        CloudEvent(BASE, **{f"x{index % 40}": "", f"y{index // 40}": ""})
    assert len(V1_0.plans) == MAX_PLANS
    forget()
    CloudEvent(BASE, **{f"z{index}": "" for index in range(MAX_NAMES)})
    assert not V1_0.plans
