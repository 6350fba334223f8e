"""Events of a stream of records, whoever yields them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import NamedTuple

import pytest
from kproto_cloudevents import (
    STRICT,
    CloudEvent,
    CloudEventError,
    Header,
    InvalidEvent,
    KafkaRecord,
    NotAnEvent,
    OpaqueEvent,
    Profile,
    Received,
    events,
    from_kafka,
    from_kafka_many,
    lazy_from_kafka,
    to_kafka,
)

from tests.support.pages import page_text

from ..samples import BINARY, EVENT, STRUCTURED


class Consumed(NamedTuple):
    """A record as some client gives it."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] | None = ()
    offset: int = 0


UNKNOWN = (("ce_specversion", b"9.9"),)
BROKEN = (("ce_specversion", b"1.0"),)

RECORDS = [
    Consumed(*BINARY, offset=5),
    Consumed(*STRUCTURED, offset=6),
    Consumed(None, b"x", UNKNOWN, offset=7),
    Consumed(b"k", None, None, offset=8),
    Consumed(None, b"x", BROKEN, offset=9),
    Consumed(None, b"x", 7, offset=10),  # type: ignore[arg-type]  # headers that are none
    Consumed(*BINARY, offset=11),
]


async def stream(records: Sequence[Consumed], closed: list[bool]) -> AsyncGenerator[Consumed, None]:
    try:
        for record in records:
            yield record
    finally:
        closed.append(True)


async def test_each_record_comes_with_what_it_is() -> None:
    found = [received async for received in events(stream(RECORDS, []))]
    assert [received.record for received in found] == RECORDS
    assert [type(received.outcome) for received in found] == [
        CloudEvent,
        CloudEvent,
        OpaqueEvent,
        NotAnEvent,
        InvalidEvent,
        InvalidEvent,
        CloudEvent,
    ]
    broken = found[4].outcome
    assert isinstance(broken, InvalidEvent)
    assert broken.error.where == "ce_id"
    assert broken.record == (None, b"x", BROKEN)


async def test_an_iterator_that_is_no_generator() -> None:
    class Once:
        left = RECORDS[:1]

        def __aiter__(self) -> AsyncIterator[Consumed]:
            return self

        async def __anext__(self) -> Consumed:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    assert [received.record.offset async for received in events(Once())] == [5]


async def test_closing_closes_the_source() -> None:
    closed: list[bool] = []
    async with aclosing(events(stream(RECORDS, closed))) as found:
        async for received in found:
            assert received.record.offset == 5
            break
        assert closed == []
    assert closed == [True]


async def test_an_error_of_the_source_passes_through() -> None:
    async def failing() -> AsyncGenerator[Consumed, None]:
        yield RECORDS[0]
        raise OSError("the broker is gone")

    found = events(failing())
    assert isinstance((await anext(found)).outcome, CloudEvent)
    with pytest.raises(OSError, match="gone"):
        await anext(found)


async def test_the_profile_and_the_mode_are_passed_on() -> None:
    (opaque,) = [each async for each in events(stream(RECORDS[2:3], []), profile=STRICT)]
    assert isinstance(opaque.outcome, InvalidEvent)
    headless = Consumed(None, STRUCTURED.value)
    (guessed,) = [each async for each in events(stream([headless], []))]
    assert isinstance(guessed.outcome, NotAnEvent)
    (told,) = [each async for each in events(stream([headless], []), mode="structured")]
    assert isinstance(told.outcome, CloudEvent)


#: As v1 of the official SDK writes an event in structured mode: the content type is the data's.
V1 = KafkaRecord(
    b"AA",
    b'{"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "partitionkey": "AA",'
    b' "time": "2018-04-05T03:56:24.10+02:00", "data": {"total": 12}}',
    (("content-type", b"application/json"),),
)
JSON_EVENTS = Profile(json_events=True)


async def outcome_of(record: KafkaRecord, profile: Profile) -> object:
    (received,) = [each async for each in events(stream([Consumed(*record)], []), profile=profile)]
    return received.outcome


@pytest.mark.parametrize(
    "content_type",
    [b"application/json", b"Application/JSON; charset=UTF-8", b"application/json; charset=ascii"],
)
async def test_events_in_values_of_plain_json(content_type: bytes) -> None:
    record = V1._replace(headers=(("content-type", content_type), ("trace", b"1")))
    assert isinstance(await outcome_of(record, Profile()), NotAnEvent)
    event = await outcome_of(record, JSON_EVENTS)
    assert isinstance(event, CloudEvent)
    assert event == CloudEvent(
        id="1",
        source="/s",
        type="t",
        time="2018-04-05T03:56:24.10+02:00",
        partitionkey="AA",
        data={"total": 12},
    )
    assert event.mode == "structured"
    assert to_kafka(event) == to_kafka(event, "structured") == record
    binary = to_kafka(event, "binary")
    assert (binary.key, binary.value) == (b"AA", b'{"total": 12}')
    assert dict(binary.headers)["content-type"] == b"application/json"
    assert dict(binary.headers)["trace"] == b"1"
    for read in (from_kafka, lazy_from_kafka):
        assert read(*record, profile=JSON_EVENTS) == event
    assert from_kafka_many([record], profile=JSON_EVENTS) == [event]
    assert from_kafka(*record, mode="structured") == event


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (b'{"total": 12}', V1.headers),
        (b'[{"specversion": "1.0"}]', V1.headers),
        (b'{"specversion": null}', V1.headers),
        (b'{"specversion": 7}', V1.headers),
        (b'{"specversion": "1.0"', V1.headers),
        (b'{"specversion": "1.0"} more', V1.headers),
        (b'"specversion"', V1.headers),
        (b"\xff", V1.headers),
        (b"", V1.headers),
        (None, V1.headers),
        (V1.value, ()),
        (V1.value, (("content-type", b"text/plain"),)),
        (V1.value, (("content-type", b"application/json; charset=latin-1"),)),
        (V1.value, (("content-type", b"\xff"),)),
        (V1.value, (("content-type", None),)),
    ],
)
async def test_other_values_are_no_events(value: bytes | None, headers: tuple[Header, ...]) -> None:
    record = KafkaRecord(None, value, headers)
    for profile in (JSON_EVENTS, JSON_EVENTS._replace(any_case_headers=True)):
        assert isinstance(await outcome_of(record, profile), NotAnEvent)


async def test_events_in_values_of_plain_json_keep_the_rules() -> None:
    broken = V1._replace(value=b'{"specversion": "1.0", "id": "1"}')
    assert isinstance(await outcome_of(broken, JSON_EVENTS), InvalidEvent)
    unknown = V1._replace(value=b'{"specversion": "7"}')
    outcome = await outcome_of(unknown, JSON_EVENTS)
    assert isinstance(outcome, OpaqueEvent)
    assert outcome.unknown == "version"
    assert to_kafka(outcome) == unknown
    strict = await outcome_of(unknown, JSON_EVENTS._replace(refuse_unknown=True))
    assert isinstance(strict, InvalidEvent)
    # An event in binary mode has such values as its data.
    binary = KafkaRecord(None, V1.value, (*BINARY.headers[:4], *V1.headers))
    event = await outcome_of(binary, JSON_EVENTS)
    assert isinstance(event, CloudEvent)
    assert event.data == V1.value
    assert event.mode == "binary"
    half = KafkaRecord(None, V1.value, (("ce_id", b"1"), *V1.headers))
    assert isinstance(await outcome_of(half, JSON_EVENTS), InvalidEvent)


def test_outcomes_say_what_record_they_are() -> None:
    for record in RECORDS[:4]:
        outcome = from_kafka(record.key, record.value, record.headers)
        assert outcome.to_kafka_record() == to_kafka(outcome)
        assert outcome.to_kafka_record(key=b"mine").key == b"mine"
    assert EVENT.to_kafka_record("structured") == to_kafka(EVENT, "structured")
    with pytest.raises(CloudEventError, match="as it came in"):
        from_kafka(*RECORDS[2][:3]).to_kafka_record("binary")


def test_which_outcomes_say_what_record_they_are() -> None:
    (invalid,) = from_kafka_many([RECORDS[4][:3]])
    lazy = lazy_from_kafka(*BINARY)
    outcomes = [from_kafka(*record[:3]) for record in RECORDS[:4]]
    named = {type(each).__name__: hasattr(each, "to_kafka_record") for each in outcomes}
    named |= {type(each).__name__: hasattr(each, "to_kafka_record") for each in (invalid, lazy)}
    assert named == {
        "CloudEvent": True,
        "OpaqueEvent": True,
        "NotAnEvent": True,
        "LazyEvent": True,
        "InvalidEvent": False,
    }
    said = page_text("docs/cloudevents.md")
    having = ", ".join(f"`{name}`" for name in ("CloudEvent", "LazyEvent", "OpaqueEvent"))
    assert f"{having} and `NotAnEvent` have `to_kafka_record`" in said
    assert "`InvalidEvent` has none" in said


def test_what_was_received_shows_no_content() -> None:
    received = Received(
        NotAnEvent(KafkaRecord(b"s3cr3t", b"s3cr3t"), "r"), Consumed(b"s3cr3t", b"")
    )
    assert "s3cr3t" not in repr(received)
    assert repr(received).endswith("record=<Consumed>)")
