"""Tests reading events from a stream of records of any consumer."""

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
    Received,
    event_of,
    events,
    from_kafka,
    from_kafka_many,
    lazy_from_kafka,
    to_kafka,
)

from tests.support.pages import page_text

from ..samples import BINARY, EVENT, STRUCTURED


class Consumed(NamedTuple):
    """A record as another client's consumer returns it."""

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
    Consumed(None, b"x", 7, offset=10),  # type: ignore[arg-type]  # no sequence of headers
    Consumed(*BINARY, offset=11),
]


async def stream(records: Sequence[Consumed], closed: list[bool]) -> AsyncGenerator[Consumed, None]:
    try:
        for record in records:
            yield record
    finally:
        closed.append(True)


async def test_each_record_has_its_outcome() -> None:
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


async def test_an_iterator_need_not_be_a_generator() -> None:
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


async def test_an_error_of_the_source_is_raised() -> None:
    async def failing() -> AsyncGenerator[Consumed, None]:
        yield RECORDS[0]
        raise OSError("the broker is gone")

    found = events(failing())
    assert isinstance((await anext(found)).outcome, CloudEvent)
    with pytest.raises(OSError, match="gone"):
        await anext(found)


async def test_the_profile_and_the_mode_are_used() -> None:
    (opaque,) = [each async for each in events(stream(RECORDS[2:3], []), profile=STRICT)]
    assert isinstance(opaque.outcome, InvalidEvent)
    headless = Consumed(None, STRUCTURED.value)
    (guessed,) = [each async for each in events(stream([headless], []))]
    assert isinstance(guessed.outcome, NotAnEvent)
    (forced,) = [each async for each in events(stream([headless], []), mode="structured")]
    assert isinstance(forced.outcome, CloudEvent)


def test_outcomes_return_their_record() -> None:
    for record in RECORDS[:4]:
        outcome = from_kafka(record.key, record.value, record.headers)
        assert outcome.to_kafka_record() == to_kafka(outcome)
        assert outcome.to_kafka_record(key=b"mine").key == b"mine"
    assert EVENT.to_kafka_record("structured") == to_kafka(EVENT, "structured")
    with pytest.raises(CloudEventError, match="only be forwarded unchanged"):
        from_kafka(*RECORDS[2][:3]).to_kafka_record("binary")


def test_invalid_events_return_no_record() -> None:
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
    page = page_text("docs/how-to/cloudevents.md")
    having = ", ".join(f"`{name}`" for name in ("CloudEvent", "LazyEvent", "OpaqueEvent"))
    assert f"{having} and `NotAnEvent` have `to_kafka_record`" in page
    assert "`InvalidEvent` does not have this method" in page


def test_repr_of_a_received_record_hides_its_content() -> None:
    received = Received(
        NotAnEvent(KafkaRecord(b"s3cr3t", b"s3cr3t"), "r"), Consumed(b"s3cr3t", b"")
    )
    assert "s3cr3t" not in repr(received)
    assert repr(received).endswith("record=<Consumed>)")


def test_event_of_returns_the_event_or_raises_with_the_reason() -> None:
    assert event_of(RECORDS[0]) == from_kafka(*BINARY)
    assert event_of(RECORDS[1]) == from_kafka(*STRUCTURED)
    for record, why in (
        (RECORDS[2], "^an event that cannot be read: "),
        (RECORDS[3], "^no event: "),
        (RECORDS[4], "ce_"),
        (RECORDS[5], "headers"),
    ):
        with pytest.raises(CloudEventError, match=why):
            event_of(record)
    old = Consumed(None, STRUCTURED[1])
    assert event_of(old, mode="structured") == event_of(RECORDS[1])
    with pytest.raises(CloudEventError, match=r"9\.9"):
        event_of(RECORDS[2], profile=STRICT)
