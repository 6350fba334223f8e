"""The demo's records: every flight an event, the others as many as promised."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from kproto_cloudevents import CloudEvent, CloudEventError, KafkaRecord, from_kafka
from kproto_pipeline import demo
from kproto_pipeline.demo import Check
from kproto_pipeline.flights import CANCELLED, DEPARTED, Expected, flight_records, read_flights
from kproto_pipeline.progress import Stage

from kproto.wire.errors import BrokerConnectionError

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


def test_records_are_as_many_as_expected(records: list[KafkaRecord]) -> None:
    expected = Expected(LIMIT)
    assert (expected.repeated, expected.broken, expected.records) == (6, 4, 6_010)
    assert len(records) == expected.records
    verdicts = Counter(map(verdict, records))
    assert verdicts.pop("CloudEvent") == expected.flights + expected.repeated
    assert verdicts.total() == expected.broken
    assert len(verdicts) == 4  # a different fault each time


def test_every_hundredth_is_structured(records: list[KafkaRecord]) -> None:
    event_format = ("content-type", b"application/cloudevents+json")
    structured = [r for r in records if event_format in r.headers and verdict(r) == "CloudEvent"]
    # Each 1,000th is also a 100th, and goes twice.
    assert len(structured) == LIMIT // 100 + LIMIT // 1_000


def test_the_same_flights_give_the_same_records(records: list[KafkaRecord]) -> None:
    assert list(flight_records(read_flights(LIMIT))) == records


def test_the_first_flight_as_an_event(records: list[KafkaRecord]) -> None:
    """United 1545 from Newark on New Year's Day, scheduled for 5:15 in New York."""
    event = from_kafka(*records[0])
    assert isinstance(event, CloudEvent)
    assert records[0].key == b"UA"
    assert event.id == "2013-01-01T10:00:00Z/UA/1545"
    assert event.source == "/nycflights13/EWR"
    assert event.type == DEPARTED
    assert event.time == "2013-01-01T10:15:00Z"
    assert event["partitionkey"] == "UA"
    assert event.json()["dep_delay"] == 2


def test_a_flight_that_never_left_is_cancelled() -> None:
    flights = [each for each in read_flights(LIMIT) if each["dep_delay"] is None]
    events = [from_kafka(*record) for record in flight_records(flights[:5])]
    assert {event.type for event in events if isinstance(event, CloudEvent)} == {CANCELLED}


@pytest.mark.parametrize(("found", "code"), [(3, 0), (2, 1)])
def test_a_wrong_count_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, found: int, code: int
) -> None:
    monkeypatch.setattr(demo, "run", lambda *_: [Check("valid", 3, 3), Check("read", 3, found)])
    assert demo.main([]) == code


def test_an_error_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> list[Check]:
        raise BrokerConnectionError("refused", address="h:1")

    monkeypatch.setattr(demo, "run", fail)
    assert demo.main([]) == 1
    assert capsys.readouterr().err == "error: h:1: refused\n"


def test_a_stage_is_one_line_in_a_log() -> None:
    out = io.StringIO()
    with Stage("publish", 1_000, out=out) as stage:
        stage.advance_to(500)
    assert out.getvalue().startswith("publish: 1,000 events in 0.")
    assert out.getvalue().count("\n") == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_stage_is_a_bar_on_a_terminal() -> None:
    out = Terminal()
    with Stage("publish", 1_000, out=out) as stage:
        stage._drawn = 0.0
        stage.advance_to(500)
    assert " 50%" in out.getvalue()
    assert out.getvalue().count("█") == 15
