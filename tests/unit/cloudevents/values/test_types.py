"""Tests the CloudEvents type system: the text of each type, native values, and times."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    Timestamp,
    Uri,
    UriReference,
    to_json,
    to_kafka,
)
from kproto_cloudevents.values import types as ce_types

RIGHT = {
    "Boolean": ["true", "false"],
    "Integer": ["0", "-0", "7", "-1", "2147483647", "-2147483648"],
    "String": ["", "a", "ünï", "\u00a0", "\u3000", "\U0001f600", "a\u200bb", "\ue000"],
    "Binary": ["", "AA==", "AAA=", "AAAA", "+/+/"],
    "URI": [
        "http://a",
        "https://github.com/cloudevents",
        "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66",
        "mailto:cncf-wg-serverless@lists.cncf.io",
        "http://[::1]:80/a?b=c",
        "http://[v7.a:b]/",
        "a:",
        "file:///etc/x",
        "http://user:pw@h/%20",
    ],
    "URI-reference": [
        "/cloudevents/spec/pull/123",
        "1-555-123-4567",
        "https://github.com/cloudevents#frag",
        "//host/x",
        "?q",
        "#f",
        "./a:b",
        "a/b:c",
        "",
        "http://[1080::8:800:200C:417A]/",
    ],
    "Timestamp": [
        "2018-04-05T17:31:00Z",
        "2018-04-05t17:31:00z",
        "1985-04-12T23:20:50.52Z",
        "1996-12-19T16:39:57-08:00",
        "1990-12-31T23:59:60Z",
        "1990-12-31T15:59:60-08:00",
        "1991-01-01T00:59:60+01:00",
        "2024-02-29T00:00:00.123456789Z",
        "2000-02-29T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "2018-04-30T00:00:00+23:59",
    ],
}

WRONG = {
    "Boolean": ["", "True", "1", "TRUE", " true"],
    "Integer": ["", "+1", "01", "1.0", "1e2", " 1", "2147483648", "-2147483649", "9" * 5000, "١"],
    "String": [
        "\x00",
        "a\nb",
        "\x7f",
        "\x85",
        "\ufdd0",
        "\uffff",
        "\U0010fffe",
        "\ud800",
        "\udead",
    ],
    "Binary": [
        "A",
        "AA",
        "AA=",
        "A===",
        "AA==AA==",
        "AAAA=",
        "AAAA====",
        "A-_=",
        "AA ==",
        "é",
        "AA==\n",
    ],
    "URI": [
        "",
        "/a",
        "a",
        "http://a#f",
        "http://a b",
        "1a:b",
        "http://[::1",
        "http://[:::]/",
        "é:b",
    ],
    "URI-reference": ["a b", "1a:b", "é", "%zz", "http://[12345::]/", "a\n", "\\", "http://a:b/"],
    "Timestamp": [
        "",
        "tomorrow",
        "2018-04-05",
        "2018-04-05T17:31:00",
        "2018-04-05 17:31:00Z",
        "2018-04-05T17:31Z",
        "2018-13-05T17:31:00Z",
        "2018-02-29T17:31:00Z",
        "1900-02-29T17:31:00Z",
        "2018-04-31T17:31:00Z",
        "2018-04-05T24:00:00Z",
        "2018-04-05T17:31:60Z",
        "2018-04-05T23:59:60Z",
        "2018-04-05T17:31:00+24:00",
        "2018-04-05T17:31:00.Z",
        "2018-04-05T17:31:00Z\n",
        "٢018-04-05T17:31:00Z",
    ],
}


def cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), cases(RIGHT))
def test_text_of_the_type(name: str, text: str) -> None:
    assert ce_types.TYPES[name].fault(text) is None
    assert str(ce_types.canonical(ce_types.TYPES[name].parse(text))) is not None


@pytest.mark.parametrize(("name", "text"), cases(WRONG))
def test_text_not_of_the_type(name: str, text: str) -> None:
    assert ce_types.TYPES[name].fault(text)


@given(st.text("AB+/=-_ ", max_size=12))
def test_base64_is_what_its_grammar_says(text: str) -> None:
    grammar = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
    right = re.fullmatch(grammar, text) is not None
    assert (ce_types.BINARY.fault(text) is None) is right


@given(st.text(max_size=30))
def test_quick_checks_never_pass_a_wrong_text(text: str) -> None:
    for each in ce_types.TYPES.values():
        if text and each.quick(text):
            assert each.fault(text) is None


@given(
    st.from_regex(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9][Tt][0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]{1,9})?([Zz]|[+-][0-2][0-9]:[0-5][0-9])",
        fullmatch=True,
    )
)
def test_quick_and_full_check_of_a_time_agree(text: str) -> None:
    kind = ce_types.TIMESTAMP
    if kind.quick(text):
        assert kind.fault(text) is None
    elif kind.fault(text) is None:
        assert text[8:10] in ("29", "30", "31") or text[17:19] == "60"


@pytest.mark.parametrize(
    "piece", ["a", "/a", "a/", "%41", ":", "@", "[", "0", "-", ";a=b", "A", "."]
)
@pytest.mark.parametrize("name", list(ce_types.TYPES))
def test_long_texts_are_checked_in_reasonable_time(name: str, piece: str) -> None:
    # A pattern that backtracks would take too long here.
    for end in ("!", " ", "\x00", ""):
        ce_types.TYPES[name].fault(piece * 5_000 + end)
        ce_types.TYPES[name].quick(piece * 5_000 + end)


@pytest.mark.slow
def test_every_disallowed_code_point_of_a_string() -> None:
    fault = ce_types.STRING.fault
    refused = {code for code in range(0x110000) if fault(chr(code))}
    controls = {*range(0x20), *range(0x7F, 0xA0)}
    surrogates = set(range(0xD800, 0xE000))
    nonchars = {*range(0xFDD0, 0xFDF0)} | {
        plane * 0x10000 + low for plane in range(17) for low in (0xFFFE, 0xFFFF)
    }
    assert refused == controls | surrogates | nonchars


@given(
    st.one_of(
        st.booleans(),
        st.integers(ce_types.INTEGER_MIN, ce_types.INTEGER_MAX),
        st.binary(),
    )
)
def test_canonical_string_and_back(value: bool | int | bytes) -> None:
    kind = ce_types.type_of(value)
    text = ce_types.canonical(value)
    assert kind.fault(text) is None
    back = kind.parse(text)
    assert back == value
    assert type(back) is type(value)


class Level(int, Enum):
    """An enumeration of integers; `str` returns a member's name."""

    HIGH = 7


class Zone(StrEnum):
    """An enumeration of strings."""

    EU = "eu"


def test_members_of_enumerations_are_their_values() -> None:
    event = CloudEvent(id="1", source="/s", type="t", level=Level.HIGH, zone=Zone.EU)
    assert to_json(event).endswith(b'"level":7,"zone":"eu"}')
    assert to_kafka(event).headers[-2:] == (("ce_level", b"7"), ("ce_zone", b"eu"))


def test_the_type_that_a_value_says() -> None:
    assert ce_types.type_of(True).name == "Boolean"
    assert ce_types.type_of(1).name == "Integer"
    assert ce_types.type_of(b"").name == "Binary"
    assert ce_types.type_of("x").name == "String"
    assert ce_types.type_of(Uri("a:")).name == "URI"
    assert ce_types.type_of(UriReference("a")).name == "URI-reference"
    assert ce_types.type_of(Timestamp("2018-04-05T17:31:00Z")).name == "Timestamp"


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 1.5, [], object(), None])
def test_values_of_no_type(value: Any) -> None:
    with pytest.raises(CloudEventError, match=r"CloudEvents 1\.0"):
        ce_types.canonical(value)


# --- times --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2018-04-05T17:31:00Z", datetime(2018, 4, 5, 17, 31, tzinfo=UTC)),
        ("1985-04-12t23:20:50.52z", datetime(1985, 4, 12, 23, 20, 50, 520000, UTC)),
        (
            "1996-12-19T16:39:57-08:00",
            datetime(1996, 12, 19, 16, 39, 57, tzinfo=timezone(timedelta(hours=-8))),
        ),
        ("2020-01-01T00:00:00.123456789Z", datetime(2020, 1, 1, 0, 0, 0, 123456, UTC)),
        ("2016-12-31T23:59:60Z", datetime(2017, 1, 1, tzinfo=UTC)),
        ("2016-12-31T23:59:60.5Z", datetime(2017, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_time_as_datetime(text: str, moment: datetime) -> None:
    seen = Timestamp(text).datetime
    assert seen == moment
    assert seen.utcoffset() == moment.utcoffset()


@pytest.mark.parametrize("text", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:60Z"])
def test_valid_times_that_no_datetime_holds(text: str) -> None:
    assert ce_types.TIMESTAMP.fault(text) is None
    with pytest.raises(CloudEventError, match="a datetime cannot hold"):
        _ = Timestamp(text).datetime


def test_a_wrong_time_has_no_datetime() -> None:
    with pytest.raises(CloudEventError, match='"tomorrow" is not RFC 3339'):
        _ = Timestamp("tomorrow").datetime


#: The first and last times that can be converted from every time zone to UTC.
FIRST = datetime(1, 1, 3, tzinfo=UTC).replace(tzinfo=None)
LAST = datetime(9999, 12, 29, tzinfo=UTC).replace(tzinfo=None)


@given(st.datetimes(FIRST, LAST, timezones=st.timezones()))
def test_datetime_to_text_and_back(moment: datetime) -> None:
    text = Timestamp.from_datetime(moment)
    assert ce_types.TIMESTAMP.fault(text) is None
    # Compared in UTC: Python finds times of two zones unequal in the hour that a clock repeats.
    assert text.datetime.astimezone(UTC) == moment.astimezone(UTC)


def test_a_datetime_that_utc_cannot_hold() -> None:
    odd = timezone(timedelta(minutes=30, seconds=15))
    with pytest.raises(CloudEventError, match="cannot be written"):
        Timestamp.from_datetime(datetime(1, 1, 1, tzinfo=odd))


def test_utc_is_written_z() -> None:
    assert Timestamp.from_datetime(datetime(2018, 4, 5, 17, 31, tzinfo=UTC)) == (
        "2018-04-05T17:31:00Z"
    )
    east = timezone(timedelta(hours=5, minutes=30))
    assert Timestamp.from_datetime(datetime(2018, 4, 5, tzinfo=east)).endswith("+05:30")


def test_a_datetime_without_offset_is_refused() -> None:
    with pytest.raises(CloudEventError, match="no UTC offset"):
        Timestamp.from_datetime(FIRST)


# --- a time beside a datetime -------------------------------------------------------------------

ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(timezones=ZONES | st.just(UTC))


@given(MOMENTS, MOMENTS)
def test_a_time_compares_with_a_datetime_by_the_moment(one: datetime, other: datetime) -> None:
    time = Timestamp.from_datetime(one)
    assert (time == other) is (one == other)
    assert (time != other) is (one != other)
    assert (time < other) is (one < other)
    assert (time <= other) is (one <= other)
    assert (time > other) is (one > other)
    assert (time >= other) is (one >= other)
    assert (other < time) is (other < one)
    assert time == one
    assert one == time
    assert not time < one
    assert time <= one


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2016-12-31T23:59:59.999999999Z", "2016-12-31T23:59:60Z"),
        ("2016-12-31T23:59:60.9Z", "2017-01-01T00:00:00Z"),
        ("0000-12-31T23:59:59Z", "0001-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00+00:01", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-00:01"),
        ("2000-02-29T00:00:00Z", "2000-03-01T00:00:00Z"),
        ("2018-04-05T12:00:00.05Z", "2018-04-05T12:00:00.1Z"),
        ("0400-01-01T00:00:00Z", "0800-01-01T00:00:00Z"),
    ],
)
def test_moments_are_in_order_beyond_what_a_datetime_holds(before: str, after: str) -> None:
    first, second = ce_types.exact_time(before), ce_types.exact_time(after)
    assert first is not None
    assert second is not None
    assert first < second


def test_a_time_beside_what_is_no_moment() -> None:
    time, moment = Timestamp("2018-04-05T12:00:00Z"), datetime(2018, 4, 5, 12, tzinfo=UTC)
    local = moment.replace(tzinfo=None)
    assert time != local
    assert (time == local) is False
    with pytest.raises(TypeError, match="without a UTC offset"):
        _ = time < local
    with pytest.raises(TypeError, match="not supported between"):
        _ = time < 5
    assert Timestamp("noon") != moment
    with pytest.raises(CloudEventError, match='"noon" is not RFC 3339'):
        _ = Timestamp("noon") < moment
    # Compared with a string, a Timestamp is a string.
    assert time == "2018-04-05T12:00:00Z"
    assert time != "2018-04-05T12:00:00.0Z"
    assert hash(time) == hash("2018-04-05T12:00:00Z")
    assert sorted([time, "2017", Timestamp("2019")]) == ["2017", time, "2019"]
    assert "2017" < time <= time >= "2018"
