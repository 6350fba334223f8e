"""Plans: with and without one an event is the same, and so is what is refused."""

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

#: Attributes of all versions that are right in one of them, by name.
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
#: What is wrong for some or all of them.
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
    """Attributes, usually all that are required, usually right but for one."""
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
    """Leave no plan, and no name that stands for one: only so many are remembered as right."""
    for version in ALL_VERSIONS:
        version.plans.clear()
        version._names_found_right.clear()


@pytest.fixture(autouse=True)
def _without_plans() -> Iterator[None]:
    forget()
    yield
    forget()


def outcome(attributes: dict[Any, Any], data: Any) -> object:
    """All that can be seen of an event, or the error to the word."""
    try:
        event = CloudEvent(attributes, data=data)
    except CloudEventError as error:
        return type(error), str(error), error.reason, error.where, error.clauses
    shown = [(name, type(value), value) for name, value in event.items()]
    return event.specversion, shown, type(event.data), event.data


@given(attributes(), attributes(), DATA)
def test_an_event_is_made_alike_by_a_plan_and_without(
    one: dict[Any, Any], other: dict[Any, Any], data: Any
) -> None:
    # The values of the other under the names of the one: its plan meets what it was not made of.
    mixed = {name: other.get(name, value) for name, value in one.items()}
    forget()
    expected = []
    for each in (one, mixed):
        expected.append(outcome(each, data))
        forget()
    for _ in range(2):
        for each, wanted in zip((one, mixed), expected, strict=True):
            assert outcome(each, data) == wanted


def test_the_given_mapping_stays_as_it_is() -> None:
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


def test_a_plan_is_learnt_once_and_only_of_what_is_right() -> None:
    with pytest.raises(CloudEventError):
        CloudEvent(BASE, time="tomorrow")
    with pytest.raises(CloudEventError):
        CloudEvent(BASE, Bad="x")
    assert not V1_0.plans
    for _ in range(3):
        CloudEvent(BASE, zone="x")
    assert list(V1_0.plans) == [(*BASE, "zone")]


def test_plans_are_few_and_short() -> None:
    for index in range(MAX_PLANS + 1):
        CloudEvent(BASE, **{f"x{index % 40}": "", f"y{index // 40}": ""})
    assert len(V1_0.plans) == MAX_PLANS
    forget()
    CloudEvent(BASE, **{f"z{index}": "" for index in range(MAX_NAMES)})
    assert not V1_0.plans
