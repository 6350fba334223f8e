"""Tests the demo's records: an event per flight, and deliberately repeated and broken records."""

from __future__ import annotations

from collections import Counter

import pytest
from kproto_cloudevents import CloudEvent, CloudEventError, KafkaRecord, from_kafka
from kproto_pipeline.demo.flights import CANCELLED, DEPARTED, Expected, flight_records, read_flights

LIMIT = 6_000


@pytest.fixture(scope="module")
def records() -> list[KafkaRecord]:
    return list(flight_records(read_flights(LIMIT)))


def verdict(record: KafkaRecord) -> str:
    try:
        return type(from_kafka(*record)).__name__
    except CloudEventError as error:
        return f"{error.where}: {error.reason}"


@pytest.mark.slow
def test_all_flights_are_there_and_unique() -> None:
    flights = read_flights()
    assert len(flights) == 336_776
    ids = {(each["time_hour"], each["carrier"], each["flight"]) for each in flights}
    assert len(ids) == len(flights)


@pytest.mark.slow
def test_records_are_as_many_as_expected(records: list[KafkaRecord]) -> None:
    expected = Expected(LIMIT)
    assert (expected.repeated, expected.broken, expected.records) == (6, 4, 6_010)
    assert len(records) == expected.records
    verdicts = Counter(map(verdict, records))
    assert verdicts.pop("CloudEvent") == expected.flights + expected.repeated
    assert verdicts.total() == expected.broken
    assert len(verdicts) == 4  # each broken record has a different fault


@pytest.mark.slow
def test_every_hundredth_is_structured(records: list[KafkaRecord]) -> None:
    event_format = ("content-type", b"application/cloudevents+json")
    structured = [r for r in records if event_format in r.headers and verdict(r) == "CloudEvent"]
    # Each 1,000th flight is also a 100th one, and is sent twice.
    assert len(structured) == LIMIT // 100 + LIMIT // 1_000


@pytest.mark.slow
def test_the_same_flights_give_the_same_records(records: list[KafkaRecord]) -> None:
    assert list(flight_records(read_flights(LIMIT))) == records


@pytest.mark.slow
def test_the_first_flight_as_an_event(records: list[KafkaRecord]) -> None:
    """The flight is United 1545 from Newark, scheduled on 1 January 2013 at 5:15 in New York."""
    event = from_kafka(*records[0])
    assert isinstance(event, CloudEvent)
    assert records[0].key == b"UA"
    assert event.id == "2013-01-01T10:00:00Z/UA/1545"
    assert event.source == "/nycflights13/EWR"
    assert event.type == DEPARTED
    assert event.time == "2013-01-01T10:15:00Z"
    assert event["partitionkey"] == "UA"
    assert event.json()["dep_delay"] == 2


@pytest.mark.slow
def test_a_flight_that_never_left_is_cancelled() -> None:
    flights = [each for each in read_flights(LIMIT) if each["dep_delay"] is None]
    events = [from_kafka(*record) for record in flight_records(flights[:5])]
    assert {event.type for event in events if isinstance(event, CloudEvent)} == {CANCELLED}
