"""Tests conversion between versions: an attribute is renamed, kept, dropped or refused."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import CloudEvent, CloudEventError, JsonMap, UnknownVersionError

#: The same event in each version.
SAME: dict[str, dict[str, Any]] = {
    "1.0": {
        "specversion": "1.0",
        "id": "1",
        "source": "/s",
        "type": "t",
        "time": "2018-04-05T17:31:00Z",
        "datacontenttype": "application/json",
        "dataschema": "http://a/b",
        "zone": "x",
    },
    "0.3": {
        "specversion": "0.3",
        "id": "1",
        "source": "/s",
        "type": "t",
        "time": "2018-04-05T17:31:00Z",
        "datacontenttype": "application/json",
        "schemaurl": "http://a/b",
        "zone": "x",
    },
    "0.2": {
        "specversion": "0.2",
        "id": "1",
        "source": "/s",
        "type": "t",
        "time": "2018-04-05T17:31:00Z",
        "contenttype": "application/json",
        "schemaurl": "http://a/b",
        "zone": "x",
    },
    "0.1": {
        "cloudEventsVersion": "0.1",
        "eventID": "1",
        "source": "/s",
        "eventType": "t",
        "eventTime": "2018-04-05T17:31:00Z",
        "contentType": "application/json",
        "schemaURL": "http://a/b",
        "extensions": JsonMap('{"zone":"x"}'),
    },
}


@pytest.mark.parametrize(("one", "other"), list(permutations(SAME, 2)))
def test_common_attributes_are_converted_between_all_versions(one: str, other: str) -> None:
    event = CloudEvent(SAME[one], data={"a": 1.50})
    converted = event.to_version(other)
    assert dict(converted.attributes) == SAME[other]
    assert converted.data == event.data
    assert converted == CloudEvent(SAME[other], data=event.data)
    assert converted.to_version(one) == event


@pytest.mark.parametrize("label", SAME)
def test_conversion_to_the_same_version_returns_the_event(label: str) -> None:
    event = CloudEvent(SAME[label])
    assert event.to_version(label) is event


def test_the_draft_is_a_separate_version() -> None:
    draft = CloudEvent({**SAME["0.2"], "specversion": "0.1"})
    assert draft.to_version("0.2") == CloudEvent(SAME["0.2"])
    assert dict(draft.to_version("0.1").attributes) == SAME["0.1"]


OLD = CloudEvent(
    cloudEventsVersion="0.1",
    eventType="t",
    eventTypeVersion="2",
    source="/s",
    eventID="1",
    schemaURL="/relative",
    extensions=JsonMap('{"comExample":"v","n":5,"on":true,"list":[1],"m":{"a":1},"none":null}'),
)


def test_every_impossible_attribute_is_named() -> None:
    with pytest.raises(CloudEventError) as caught:
        OLD.to_version("1.0")
    said = str(caught.value)
    for part in (
        "version 1.0 cannot carry ",
        "eventTypeVersion (it has another meaning, or none, there)",
        'schemaURL (dataschema: "/relative" is not an absolute URI',
        "comExample (comExample: an attribute name has only lower-case letters",
        "list (an array or a fraction is no attribute value)",
        "m (m: Map is no type of this version",
        ": replace, rename or drop it",
    ):
        assert part in said
    for carried in ("n (", "on (", "none ("):
        assert f"; {carried}" not in said
    assert caught.value.clauses == ('CloudEvents 1.0 "Naming Conventions"',)


def test_attributes_are_renamed_and_dropped() -> None:
    new = OLD.to_version(
        "1.0",
        drop=["list", "m", "schemaURL"],
        rename={"eventTypeVersion": "eventtypeversion", "comExample": "comexample"},
    )
    assert dict(new.attributes) == {
        "specversion": "1.0",
        "type": "t",
        "eventtypeversion": "2",
        "source": "/s",
        "id": "1",
        "comexample": "v",
        "n": 5,
        "on": True,
    }


def test_wrong_arguments_are_refused_and_drop_nothing() -> None:
    event = CloudEvent(SAME["1.0"], event="x")
    with pytest.raises(CloudEventError, match=r'not one str: pass \["eventTypeVersion"\]'):
        event.to_version("0.3", drop="eventTypeVersion")
    no_labels: list[Any] = [1.0, None, []]
    for no_label in no_labels:
        with pytest.raises(UnknownVersionError, match="is no version known here"):
            event.to_version(no_label)


def test_renaming_to_an_attribute_of_the_target_is_refused() -> None:
    old = CloudEvent(specversion="0.2", id="1", source="/s", type="t", about="x")
    assert old.to_version("1.0", rename={"about": "subject"}).subject == "x"
    with pytest.raises(CloudEventError, match=r"about \(id is there already\)"):
        old.to_version("1.0", rename={"about": "id"})
    with pytest.raises(CloudEventError, match=r'about .*"x" is not RFC 3339'):
        old.to_version("1.0", rename={"about": "time"})


def test_names_that_mean_something_else_there() -> None:
    old = CloudEvent(specversion="0.2", id="1", source="/s", type="t", subject="x")
    with pytest.raises(CloudEventError, match=r"subject \(it has another meaning, or none, there"):
        old.to_version("1.0")
    new = CloudEvent(id="1", source="/s", type="t", subject="x")
    with pytest.raises(CloudEventError, match=r"subject \(it has another meaning, or none, there"):
        new.to_version("0.1")
    carried = new.to_version("0.1", rename={"subject": "subject"})
    assert carried.extensions == {"subject": "x"}


def test_types_missing_in_the_target_are_refused() -> None:
    new = CloudEvent(id="1", source="/s", type="t", ok=True, raw=b"\x00", n=5)
    for label in ("0.3", "0.2", "0.1"):
        with pytest.raises(CloudEventError, match=r"ok .*Boolean is no type of this version"):
            new.to_version(label)
        assert dict(new.to_version(label, drop=["ok"]).extensions)["n"] == 5
    assert new.to_version("0.1", drop=["ok"])["extensions"] == '{"raw":"AA==","n":5}'


def test_two_schemas_for_one_name() -> None:
    old = CloudEvent(
        cloudEventsVersion="0.1",
        eventType="t",
        source="/s",
        eventID="1",
        schemaURL="http://a",
        schemaURI="http://b",
    )
    with pytest.raises(CloudEventError, match=r"schemaURI \(dataschema is there already\)"):
        old.to_version("1.0")
    assert old.to_version("1.0", drop=["schemaURI"]).dataschema == "http://a"


def test_names_in_a_map_may_be_any() -> None:
    old = CloudEvent(
        cloudEventsVersion="0.1",
        eventType="t",
        source="/s",
        eventID="1",
        extensions=JsonMap('{"a b":"x"}'),
    )
    with pytest.raises(CloudEventError, match='cannot carry "a b" '):
        old.to_version("1.0")
    assert old.to_version("1.0", rename={"a b": "ab"})["ab"] == "x"


VALUES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=9)


@given(
    st.sampled_from(sorted(SAME)),
    st.sampled_from(sorted(SAME)),
    st.dictionaries(
        st.from_regex("[a-z]x[a-z0-9]{0,9}", fullmatch=True),
        VALUES | st.integers(-(2**31), 2**31 - 1) | st.binary(max_size=5),
        max_size=4,
    ),
    st.none() | st.binary(max_size=9) | st.lists(st.integers()),
)
def test_conversion_there_and_back_loses_nothing(
    one: str, other: str, extensions: dict[str, Any], data: Any
) -> None:
    attributes = dict(SAME["1.0"]) | extensions
    event = CloudEvent(attributes, data=data).to_version(one)
    back = event.to_version(other).to_version(one)
    assert back == event
    assert back.data_bytes() == event.data_bytes()
