"""Compares `kproto_cloudevents` with the official `cloudevents` SDK, in one process.

    python -m tools.bench.cloudevents [--json FILE] [--rounds N]

Runs itself in the environment of the other libraries, which has the SDK. Both libraries read and
write the same 400 different records; the library that runs first alternates. Prints one line per
case: each library's median CPU time in microseconds per record, the median of the rounds' ratios
(the SDK's time divided by kproto's), and the target ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import timeit
from collections import deque
from importlib import import_module
from itertools import starmap
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
#: The environment variable that marks the run with the other libraries' interpreter.
INNER = "KPROTO_BENCH_CLOUDEVENTS"

#: The number of records. As in a topic, the records have different times, ids, keys and data, and
#: share a few sources and types.
COUNT = 400
AIRPORTS = ("EWR", "JFK", "LGA", "IAH", "MIA", "ATL", "ORD", "FLL", "IAD", "MCO")
TYPES = ("departed", "landed", "delayed", "cancelled")

Headers = tuple[tuple[str, bytes], ...]


def headers_of(index: int) -> Headers:
    """Returns the headers of one record."""
    time_of_day = f"2013-01-{1 + index % 28:02}T05:{index // 60:02}:{index % 60:02}Z"
    return (
        ("ce_specversion", b"1.0"),
        ("ce_id", f"{time_of_day}-UA-{1545 + index}".encode()),
        ("ce_source", f"https://example.com/airports/{AIRPORTS[index % 10]}".encode()),
        ("ce_type", f"com.example.flight.{TYPES[index % 4]}".encode()),
        ("ce_time", time_of_day.encode()),
        ("ce_partitionkey", f"UA{index}".encode()),
        ("content-type", b"application/json"),
    )


def value_of(index: int) -> bytes:
    """Returns the data of one record."""
    return (
        f'{{"carrier":"UA","flight":{1545 + index},"origin":"{AIRPORTS[index % 10]}",'
        f'"dest":"{AIRPORTS[index // 10 % 10]}","dep_delay":{index}.5,"air_time":{100 + index}}}'
    ).encode()


class LibraryFunction(NamedTuple):
    """The measured function of one library, and its inputs."""

    call: Callable[..., object]
    inputs: list[tuple[Any, ...]]

    def run(self) -> None:
        """Calls the function once with each input."""
        deque(starmap(self.call, self.inputs), maxlen=0)


class Case(NamedTuple):
    """A comparison: the functions of kproto and of the SDK, and the target ratio."""

    name: str
    ours: LibraryFunction
    theirs: LibraryFunction
    wanted: float


def cases() -> list[Case]:
    """Returns the comparisons of kproto_cloudevents with the official SDK; imports both."""
    import kproto_cloudevents as ours

    # Imported by name, because type checkers would find our folder with the SDK's name.
    sdk = import_module("cloudevents.core.bindings.kafka")
    sdk_event = import_module("cloudevents.core.v1.event").CloudEvent
    sdk_format = import_module("cloudevents.core.formats.json").JSONFormat()

    def sdk_read(message: Any) -> object:
        event = sdk.from_kafka(message, sdk_format)
        return (
            event.get_specversion(),
            event.get_id(),
            event.get_source(),
            event.get_type(),
            event.get_time(),
            event.get_datacontenttype(),
            event.get_extension("partitionkey"),
        )

    def read(value: bytes, headers: Headers) -> ours.CloudEvent:
        event = ours.from_kafka(None, value, headers)
        assert isinstance(event, ours.CloudEvent)
        return event

    def our_read(value: bytes, headers: Headers) -> object:
        event = ours.from_kafka(None, value, headers)
        assert isinstance(event, ours.CloudEvent)
        return (
            event.specversion,
            event.id,
            event.source,
            event.type,
            event.time,
            event.datacontenttype,
            event["partitionkey"],
        )

    def our_read_with_json(value: bytes, headers: Headers) -> object:
        event = ours.from_kafka(None, value, headers)
        assert isinstance(event, ours.CloudEvent)
        return (
            event.specversion,
            event.id,
            event.source,
            event.type,
            event.time,
            event.datacontenttype,
            event["partitionkey"],
            event.json(),
        )

    def our_lazy(value: bytes, headers: Headers) -> object:
        event = ours.lazy_from_kafka(None, value, headers)
        assert isinstance(event, ours.LazyEvent)
        return event.type, event.id

    def our_structured(document: bytes, headers: Headers) -> object:
        event = ours.from_kafka(None, document, headers)
        assert isinstance(event, ours.CloudEvent)
        return event.id, event.type

    def our_structured_with_data(document: bytes, headers: Headers) -> object:
        event = ours.from_kafka(None, document, headers)
        assert isinstance(event, ours.CloudEvent)
        return event.id, event.type, event.data

    def sdk_structured_read(message: Any) -> object:
        event = sdk.from_kafka(message, sdk_format)
        return event.get_id(), event.get_type(), event.get_data()

    records = [(value_of(index), headers_of(index)) for index in range(COUNT)]
    messages = [sdk.KafkaMessage(dict(headers), None, value) for value, headers in records]
    read_by_sdk = [sdk.from_kafka(message, sdk_format) for message in messages]
    in_json = [sdk.to_structured(event, sdk_format) for event in read_by_sdk]
    documents = [(each.value, tuple(each.headers.items())) for each in in_json]
    sdk_documents = [sdk.KafkaMessage(each.headers, None, each.value) for each in in_json]

    attributes = [dict(read(*record).attributes) for record in records]
    sdk_attributes = [event.get_attributes() for event in read_by_sdk]
    values = [value for value, _ in records]
    parsed = [json.loads(value) for value in values]

    binary = LibraryFunction(our_read, records)
    structured = LibraryFunction(our_structured, documents)
    sdk_binary = LibraryFunction(sdk_read, _each(messages))
    sdk_structured = LibraryFunction(sdk_structured_read, _each(sdk_documents))
    return [
        Case("binary: decode, check, read every attribute", binary, sdk_binary, 4.5),
        Case(
            "binary: decode, check, read every attribute, parse the JSON data",
            LibraryFunction(our_read_with_json, records),
            sdk_binary,
            1.0,
        ),
        Case(
            "binary: lazy decode, read type and id",
            LibraryFunction(our_lazy, records),
            sdk_binary,
            8.0,
        ),
        Case("structured: decode, read id and type", structured, sdk_structured, 1.8),
        Case(
            "structured: decode, read id, type and data",
            LibraryFunction(our_structured_with_data, documents),
            sdk_structured,
            1.45,
        ),
        Case(
            "binary: encode, data bytes",
            LibraryFunction(
                lambda event: ours.to_kafka(event, "binary", key=b"UA"),
                [
                    (ours.CloudEvent(each, data=value),)
                    for each, value in zip(attributes, values, strict=True)
                ],
            ),
            LibraryFunction(
                lambda event: sdk.to_binary(event, sdk_format),
                [
                    (sdk_event(dict(each), value),)
                    for each, value in zip(sdk_attributes, values, strict=True)
                ],
            ),
            3.0,
        ),
        Case(
            "structured: encode, JSON data",
            LibraryFunction(
                lambda event: ours.to_kafka(event, "structured", key=b"UA"),
                [
                    (ours.CloudEvent(each, data=value),)
                    for each, value in zip(attributes, parsed, strict=True)
                ],
            ),
            LibraryFunction(lambda event: sdk.to_structured(event, sdk_format), _each(read_by_sdk)),
            3.0,
        ),
        Case(
            "create an event from attributes and bytes",
            LibraryFunction(
                lambda each, value: ours.CloudEvent(each, data=value),
                list(zip(attributes, values, strict=True)),
            ),
            LibraryFunction(
                lambda each, value: sdk_event(dict(each), value),
                list(zip(sdk_attributes, values, strict=True)),
            ),
            1.8,
        ),
        Case(
            "create an event with JSON data, encode it binary",
            LibraryFunction(
                lambda each, value: ours.to_kafka(ours.CloudEvent(each, data=value), "binary"),
                list(zip(attributes, parsed, strict=True)),
            ),
            LibraryFunction(
                lambda each, value: sdk.to_binary(sdk_event(dict(each), value), sdk_format),
                list(zip(sdk_attributes, parsed, strict=True)),
            ),
            1.7,
        ),
    ]


def _each(inputs: list[Any]) -> list[tuple[Any, ...]]:
    return [(each,) for each in inputs]


def measure(case: Case, rounds: int) -> tuple[float, float, float]:
    """Returns the median CPU µs per record of kproto and of the SDK, and the median ratio.

    A ratio is the time of the SDK divided by the time of kproto in the same round.
    """
    ours: list[float] = []
    theirs: list[float] = []
    sides = [(case.ours, ours), (case.theirs, theirs)]
    for _ in range(rounds):
        for side, times in sides:
            took = timeit.timeit(side.run, timer=time.process_time, number=1)
            times.append(took / len(side.inputs) * 1e6)
        sides.reverse()
    ratio = median(their / our for our, their in zip(ours, theirs, strict=True))
    return median(ours), median(theirs), ratio


def main() -> int:
    """Measures and prints every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--rounds", type=int, default=101, help="rounds of each side per case")
    arguments = parser.parse_args()
    if INNER not in os.environ:
        return run_in_peers()
    print(f"{'case':54} {'ours µs':>8} {'SDK µs':>8} {'ratio':>6}  target")
    figures = {}
    for case in cases():
        ours, theirs, ratio = measure(case, arguments.rounds)
        figures[case.name] = {"ours_us": ours, "sdk_us": theirs, "ratio": ratio}
        print(f"{case.name:54} {ours:8.2f} {theirs:8.2f} {ratio:6.2f}  {case.wanted}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def run_in_peers() -> int:
    """Runs this file again with the interpreter of the other libraries.

    `-P` keeps the folder of this file off the import path.
    """
    from tools.setup.peers import peers_python

    environment = {**os.environ, INNER: "1", "PYTHONPATH": str(ROOT / "cloudevents")}
    command = [str(peers_python()), "-P", __file__, *sys.argv[1:]]
    return subprocess.call(command, cwd=ROOT, env=environment)


if __name__ == "__main__":
    sys.exit(main())
