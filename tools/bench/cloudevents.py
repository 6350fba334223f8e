"""Compare `kproto_cloudevents` with the official `cloudevents` SDK, in one process.

    python -m tools.bench.cloudevents [--json FILE] [--rounds N]

Runs itself in the peers' environment, where the SDK is installed, with our package on the path.
Both sides read and write the same record, by turns, and the fastest round of each counts, so that
a busy machine slows both alike. The output is one line a case: microseconds of each side, their
ratio, and the ratio we want.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import timeit
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
#: Set for the run inside the peers' environment.
INNER = "KPROTO_BENCH_CLOUDEVENTS"

HEADERS: tuple[tuple[str, bytes | None], ...] = (
    ("ce_specversion", b"1.0"),
    ("ce_id", b"2013-01-01T05:00:00Z-UA-1545"),
    ("ce_source", b"https://example.com/airports/EWR"),
    ("ce_type", b"com.example.flight.departed"),
    ("ce_time", b"2013-01-01T05:15:00Z"),
    ("ce_partitionkey", b"UA"),
    ("content-type", b"application/json"),
)
VALUE = b'{"carrier":"UA","flight":1545,"origin":"EWR","dest":"IAH","dep_delay":2.0,"air_time":227}'


class Case(NamedTuple):
    """One comparison: what both do, and the ratio that we want at least."""

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    wanted: float


def cases() -> list[Case]:
    """The comparisons; imports both packages."""
    import kproto_cloudevents as ours

    # By name, because a type checker looks for the SDK in our folder of that name.
    sdk = import_module("cloudevents.core.bindings.kafka")
    sdk_event = import_module("cloudevents.core.v1.event").CloudEvent
    sdk_format = import_module("cloudevents.core.formats.json").JSONFormat()
    sdk_headers = {name: raw for name, raw in HEADERS if raw is not None}
    sdk_message = sdk.KafkaMessage(sdk_headers, None, VALUE)

    def sdk_read() -> object:
        event = sdk.from_kafka(sdk_message, sdk_format)
        return (
            event.get_specversion(),
            event.get_id(),
            event.get_source(),
            event.get_type(),
            event.get_time(),
            event.get_datacontenttype(),
            event.get_extension("partitionkey"),
        )

    def our_read() -> object:
        event = ours.from_kafka(None, VALUE, HEADERS)
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

    def our_read_with_json() -> object:
        event = ours.from_kafka(None, VALUE, HEADERS)
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

    def our_lazy() -> object:
        event = ours.lazy_from_kafka(None, VALUE, HEADERS)
        assert isinstance(event, ours.LazyEvent)
        return event.type, event.id

    read_by_sdk = sdk.from_kafka(sdk_message, sdk_format)
    sdk_structured = sdk.to_structured(read_by_sdk, sdk_format)
    document = sdk_structured.value
    structured_headers = tuple(sdk_structured.headers.items())
    sdk_structured_message = sdk.KafkaMessage(sdk_structured.headers, None, document)

    def our_structured() -> object:
        event = ours.from_kafka(None, document, structured_headers)
        assert isinstance(event, ours.CloudEvent)
        return event.id, event.type

    def our_structured_with_data() -> object:
        event = ours.from_kafka(None, document, structured_headers)
        assert isinstance(event, ours.CloudEvent)
        return event.id, event.type, event.data

    def sdk_structured_read() -> object:
        event = sdk.from_kafka(sdk_structured_message, sdk_format)
        return event.get_id(), event.get_type(), event.get_data()

    read_by_us = ours.from_kafka(None, VALUE, HEADERS)
    assert isinstance(read_by_us, ours.CloudEvent)
    attributes = dict(read_by_us.attributes)
    fresh = ours.CloudEvent(attributes, data=VALUE)
    fresh_json = ours.CloudEvent(attributes, data=json.loads(VALUE))
    sdk_attributes = read_by_sdk.get_attributes()
    sdk_data = json.loads(VALUE)
    sdk_bytes = sdk_event(dict(sdk_attributes), VALUE)

    return [
        Case("binary: decode, check, read every attribute", our_read, sdk_read, 3.0),
        Case("binary: the same and parse the JSON data", our_read_with_json, sdk_read, 1.0),
        Case("binary: lazy decode, read type and id", our_lazy, sdk_read, 8.0),
        Case("structured: decode, read id and type", our_structured, sdk_structured_read, 1.5),
        Case("structured: the same and data", our_structured_with_data, sdk_structured_read, 1.0),
        Case(
            "binary: encode, data bytes",
            lambda: ours.to_kafka(fresh, "binary", key=b"UA"),
            lambda: sdk.to_binary(sdk_bytes, sdk_format),
            3.0,
        ),
        Case(
            "structured: encode, JSON data",
            lambda: ours.to_kafka(fresh_json, "structured", key=b"UA"),
            lambda: sdk.to_structured(read_by_sdk, sdk_format),
            3.0,
        ),
        Case(
            "create an event from attributes and bytes",
            lambda: ours.CloudEvent(attributes, data=VALUE),
            lambda: sdk_event(dict(sdk_attributes), VALUE),
            1.0,
        ),
        Case(
            "create an event with JSON data, encode it binary",
            lambda: ours.to_kafka(ours.CloudEvent(attributes, data=sdk_data), "binary"),
            lambda: sdk.to_binary(sdk_event(dict(sdk_attributes), sdk_data), sdk_format),
            1.0,
        ),
    ]


def measure(case: Case, rounds: int) -> tuple[float, float]:
    """The fastest round of each side, in microseconds a call; the sides take turns."""
    calls = 500
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(timeit.timeit(case.ours, timer=time.process_time, number=calls))
        theirs.append(timeit.timeit(case.theirs, timer=time.process_time, number=calls))
    return min(ours) / calls * 1e6, min(theirs) / calls * 1e6


def main() -> int:
    """Measure every case and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of each side a case")
    arguments = parser.parse_args()
    if INNER not in os.environ:
        return run_in_peers()
    print(f"{'case':54} {'ours µs':>8} {'SDK µs':>8} {'ratio':>6}  wanted")
    figures = {}
    for case in cases():
        ours, theirs = measure(case, arguments.rounds)
        figures[case.name] = {"ours_us": ours, "sdk_us": theirs, "ratio": theirs / ours}
        print(f"{case.name:54} {ours:8.2f} {theirs:8.2f} {theirs / ours:6.2f}  {case.wanted}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def run_in_peers() -> int:
    """Run this file again with the peers' interpreter, its own folder off the import path."""
    from tools.setup.peers import peers_python

    environment = {**os.environ, INNER: "1", "PYTHONPATH": str(ROOT / "cloudevents")}
    command = [str(peers_python()), "-P", __file__, *sys.argv[1:]]
    return subprocess.call(command, cwd=ROOT, env=environment)


if __name__ == "__main__":
    sys.exit(main())
