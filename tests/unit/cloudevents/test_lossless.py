"""Tests that decoding and encoding keep all bytes and the order of headers.

Most tests run for every version. Kafka records are tested in binary and in structured mode.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kproto_cloudevents import (
    CloudEvent,
    JsonMap,
    KafkaRecord,
    LazyEvent,
    OpaqueEvent,
    Timestamp,
    from_json,
    from_json_batch,
    from_kafka,
    lazy_from_kafka,
    to_json,
    to_kafka,
)
from kproto_cloudevents.versions.spec_version import SpecVersion
from kproto_cloudevents.versions.version_tables import ALL_VERSIONS

from tests.support.examples import examples
from tests.support.selection import rest_slow

from .samples import event_of

pytestmark = pytest.mark.filterwarnings("ignore::kproto_cloudevents.CloudEventWarning")

TEXTS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=20)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
MAPS = st.dictionaries(st.text(max_size=5) | st.just("data"), JSON_VALUES, min_size=1, max_size=3)
#: Texts of each type of the core attributes.
BY_TYPE: dict[str, st.SearchStrategy[str]] = {
    "String": TEXTS,
    "URI": st.sampled_from(["http://a/b", "urn:x:1", "mailto:a@b"]),
    "URI-reference": st.sampled_from(["/a", "urn:x:1", "https://example.com/a?b#c", "1-555", "#"]),
    "Timestamp": st.from_regex(
        r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:"
        r"[0-5][0-9](\.[0-9]{1,12})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])",
        fullmatch=True,
    ),
    "Map": MAPS.map(json.dumps),
}
CONTENT_TYPES = st.sampled_from(
    ["application/json", "TEXT/XML; charset=utf-8", "application/x+json;", "a/b", "text/plain"]
)
PAYLOADS = st.none() | st.binary(max_size=40)
OTHER_HEADERS = st.lists(
    st.tuples(st.text(max_size=8).filter(lambda name: not name.startswith("ce_")), PAYLOADS).filter(
        lambda header: header[0] != "content-type"
    ),
    max_size=3,
)
#: Each property is checked for every version.
FEW = settings(max_examples=examples(20))
EVERY_VERSION = pytest.mark.parametrize(
    "version",
    rest_slow(ALL_VERSIONS, 1),
    ids=lambda version: f"{version.specversion} {version.label}",
)


@st.composite
def attribute_texts(draw: st.DrawFn, version: SpecVersion) -> dict[str, str]:
    """Draws the attributes of a valid event, as text, in any order."""
    names = st.text("xyz019", max_size=5).map(lambda rest: f"x{rest}")
    if version.name_pattern.fullmatch("9"):
        names |= st.text("xyz019", min_size=1, max_size=5)
    if version.name_pattern.fullmatch("xX"):
        names |= st.text("xYZ01", max_size=5).map(lambda rest: f"x{rest}")
    attributes = draw(st.dictionaries(names, TEXTS | st.just(""), max_size=3))
    for name, spec in version.attributes.items():
        if not spec.required and not draw(st.booleans()):
            continue
        attributes[name] = draw(BY_TYPE[spec.type.name])
    attributes[version.specversion] = version.label
    if version.content_type in attributes:
        attributes[version.content_type] = draw(CONTENT_TYPES)
    if version.data_encoding is not None and version.data_encoding in attributes:
        attributes[version.data_encoding] = draw(st.sampled_from(["base64", "Base64"]))
    return dict(draw(st.permutations(list(attributes.items()))))


@EVERY_VERSION
@FEW
@given(st.data())
def test_binary_records_round_trip_byte_for_byte(version: SpecVersion, data: st.DataObject) -> None:
    headers: list[tuple[str, bytes | None]] = [
        ("content-type" if name == version.content_type else f"ce_{name}", text.encode())
        for name, text in data.draw(attribute_texts(version)).items()
    ]
    unset = data.draw(st.lists(st.sampled_from(["ce_unset", "ce_UNSET", "ce_"]), max_size=2))
    more = [*data.draw(OTHER_HEADERS), *((name, None) for name in unset)]
    record = KafkaRecord(
        data.draw(PAYLOADS),
        data.draw(PAYLOADS),
        tuple(data.draw(st.permutations([*headers, *more]))),
    )
    event = from_kafka(*record)
    assert isinstance(event, CloudEvent)
    assert to_kafka(event) == record
    assert event.data == record.value
    lazy = lazy_from_kafka(*record)
    assert not isinstance(lazy, LazyEvent) or lazy.event() == event
    # An equal event without a record is written with the same event headers, in order.
    anew = to_kafka(CloudEvent(event.attributes, data=event.data))
    unsaid = f"ce_{version.data_encoding}"
    own = [
        header
        for header in record.headers
        if header[1] is not None
        and (header[0].startswith("ce_") or header[0] == "content-type")
        and (header[0] != unsaid or record.value is None)
    ]
    assert list(anew.headers) == own
    assert anew.value == record.value


@st.composite
def documents(draw: st.DrawFn, version: SpecVersion) -> str:
    """Draws valid events in the JSON format, in any notation."""
    members: dict[str, Any] = dict(draw(attribute_texts(version)))
    if version.extension_map in members:
        members[version.extension_map] = draw(MAPS)
    if version.has_maps and draw(st.booleans()):
        members["xmap"] = draw(MAPS)
    for name in draw(st.lists(st.sampled_from(["xnull", "xnil"]), unique=True)):
        members[name] = None
    content_type = members.get(version.content_type)
    is_json = content_type is None or "json" in content_type
    forms = ["none", "data", *(["base64"] if version.base64_member else [])]
    form = draw(st.sampled_from(forms))
    if form == "data":
        members["data"] = draw(JSON_VALUES if is_json else st.text(max_size=9))
        if version.data_encoding in members:
            members["data"] = draw(st.sampled_from(["AAE=", "MQ==", ""]))
    elif form == "base64":
        members["data_base64"] = "AAE="
    order = dict(draw(st.permutations(list(members.items()))))
    blanks = draw(st.sampled_from([None, 0, 2]))
    text = json.dumps(order, indent=blanks, ensure_ascii=draw(st.booleans()))
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(order)
    return draw(st.sampled_from(["", " ", "\n"])) + text + draw(st.sampled_from(["", "\t"]))


@EVERY_VERSION
@FEW
@given(st.data(), PAYLOADS, OTHER_HEADERS)
def test_structured_records_round_trip_byte_for_byte(
    version: SpecVersion,
    data: st.DataObject,
    key: bytes | None,
    others: list[tuple[str, bytes | None]],
) -> None:
    document = data.draw(documents(version)).encode()
    content_type = ("content-type", b"Application/CloudEvents+JSON; charset=utf-8")
    headers = tuple(data.draw(st.permutations([content_type, *others])))
    record = KafkaRecord(key, document, headers)
    event = event_of(record)
    assert to_kafka(event) == record
    assert to_json(event) == document
    # A new event with the same attributes and data is read as the same event.
    members = json.loads(document)
    again = from_json(to_json(event.replace({version.id: members[version.id]})))
    assert again == event
    assert dict(again.attributes) == dict(event.attributes)


@EVERY_VERSION
@FEW
@given(st.data())
def test_structured_events_round_trip_through_binary_mode(
    version: SpecVersion, data: st.DataObject
) -> None:
    event = from_json(data.draw(documents(version)))
    try:
        binary = to_kafka(event, "binary")
    except ValueError:
        # An error is allowed only if the string may be text or Base64.
        assert not version.marks_binary
        assert event.datacontenttype == "a/b"
        return
    through = event_of(binary)
    assert through.data_bytes() == event.data_bytes()
    kept = dict(event.attributes)
    if event.has_data:
        kept.pop(version.data_encoding or "", None)
    found = dict(through.attributes)
    if version.content_type not in kept:
        found.pop(version.content_type, None)
    assert {name: str(held) for name, held in found.items()} == kept
    back = from_json(to_json(through.replace(zback="x")))
    assert back.data_bytes() == event.data_bytes()


@EVERY_VERSION
@FEW
@given(st.data())
@pytest.mark.slow
def test_batches_keep_the_bytes_of_each_event(version: SpecVersion, data: st.DataObject) -> None:
    texts = data.draw(st.lists(documents(version), max_size=3))
    events = from_json_batch(f"[{','.join(texts)}]")
    assert [to_json(event) for event in events] == [text.strip().encode() for text in texts]


@given(
    st.sampled_from(["ce_specversion", "ce_cloudEventsVersion"]),
    st.text(min_size=1, max_size=4).filter(lambda text: text not in ("1.0", "0.3", "0.2", "0.1")),
    PAYLOADS,
    PAYLOADS,
    st.lists(st.tuples(st.sampled_from(["ce_Odd", "ce_id", "x", "ce_data"]), PAYLOADS), max_size=4),
)
def test_unknown_versions_round_trip_byte_for_byte(
    name: str,
    label: str,
    key: bytes | None,
    value: bytes | None,
    others: list[tuple[str, bytes | None]],
) -> None:
    unique = dict(others)
    record = KafkaRecord(key, value, ((name, label.encode()), *unique.items()))
    outcome = from_kafka(*record)
    assert isinstance(outcome, OpaqueEvent)
    assert to_kafka(outcome) == record


@given(BY_TYPE["Timestamp"])
def test_times_keep_their_text(text: str) -> None:
    event = CloudEvent(id="1", source="/s", type="t", time=text)
    for mode in ("binary", "structured"):
        assert event_of(to_kafka(event, mode)).time == text
    assert Timestamp(text).datetime.tzinfo is not None


@given(MAPS)
def test_maps_keep_their_value(entries: dict[str, Any]) -> None:
    event = CloudEvent(specversion="0.3", id="1", source="/s", type="t", m=JsonMap.of(entries))
    for mode in ("binary", "structured"):
        assert JsonMap(event_of(to_kafka(event, mode))["m"]).value() == entries
