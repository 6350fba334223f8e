"""Compares `kproto.records` with kafka-python and aiokafka on the same bytes, in one process.

    python -m tools.bench.records [--json FILE] [--rounds N]

Runs itself in the environment of the other libraries. The libraries alternate, so that a busy
machine slows them alike, and the fastest round of each library counts. Prints three tables: CRC-32C
compared with kafka-python's pure-Python fallback; decoding and encoding of 1,000 records without
checksums; decoding and encoding with checksums in pure Python. The second table also has columns
for aiokafka's Python code and C extension, whose encoders compute the checksum. Compare the times
of `tools.bench.compiled` with the column of the C extension.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto.records import NewRecord

ROOT = Path(__file__).resolve().parents[2]
#: The environment variable that marks the run with the other libraries' interpreter.
INNER = "KPROTO_BENCH_RECORDS"

RECORDS = 1000
TIMESTAMP = 1_767_225_600_000
ROUND_SECONDS = 0.02


class Case(NamedTuple):
    """A comparison: a function for each library, and the target ratio to kafka-python."""

    name: str
    sides: dict[str, Callable[[], object]]
    wanted: float | None


def new_records(header_count: int) -> list[NewRecord]:
    """Returns 1,000 records: 8-byte keys, 100-byte values, and 0, 2 or CloudEvents' 6 headers."""
    rng = random.Random(2)  # the same bytes on every run
    records: list[NewRecord] = []
    for number in range(RECORDS):
        minutes, seconds = divmod(number, 60)
        cloudevents = [
            ("ce_specversion", b"1.0"),
            ("ce_id", f"{number:08x}-{rng.getrandbits(32):08x}".encode()),
            ("ce_source", b"https://example.com/airports/EWR"),
            ("ce_type", b"com.example.flight.departed"),
            ("ce_time", f"2026-01-01T05:{minutes:02}:{seconds:02}Z".encode()),
            ("content-type", b"application/json"),
        ]
        two = [("trace", rng.randbytes(16)), ("retries", b"0")]
        headers = {0: [], 2: two, 6: cloudevents}[header_count]
        key = f"k{number:07}".encode()
        records.append((key, rng.randbytes(100), headers, TIMESTAMP + number // 4))
    return records


def crc_cases() -> list[Case]:
    """Returns the cases of CRC-32C: the functions of kproto and kafka-python, without packages."""
    from kafka.record import _crc32c

    from kproto.records.magic2.crc import own_crc32c

    cases = []
    sizes = ((100, "100 B", 2.5), (1024, "1 KB", 12), (16384, "16 KB", 45), (1 << 20, "1 MB", 65))
    for size, label, wanted in sizes:
        data = random.Random(size).randbytes(size)
        assert own_crc32c(data) == _crc32c.crc(data)
        cases.append(
            Case(
                f"CRC-32C of {label}",
                {
                    "kproto": partial(own_crc32c, data),
                    "kafka-python": partial(_crc32c.crc, data),
                },
                wanted,
            )
        )
    return cases


def decode_cases(header_count: int) -> list[Case]:
    """Returns the comparisons of decoding a batch; no library verifies the checksum."""
    from aiokafka.record import default_records as aiokafka
    from kafka.record.default_records import DefaultRecordBatch

    from kproto.records import RecordBatch, encode_batch

    data = encode_batch(new_records(header_count))

    def contents(records: Any) -> list[object]:
        return [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in records]

    sides: dict[str, Callable[[], Any]] = {
        "kproto": lambda: RecordBatch(data).records(eager_headers=True),
        "kafka-python": lambda: list(DefaultRecordBatch(data)),
        "aiokafka, Python": lambda: list(aiokafka._DefaultRecordBatchPy(data)),
        "aiokafka, C": lambda: list(aiokafka.DefaultRecordBatch(data)),
    }
    expected = contents(RecordBatch(data).records())
    assert all(contents(read()) == expected for read in sides.values())
    lazy = {**sides, "kproto": lambda: RecordBatch(data).records()}
    title = f"decode 1,000 records, {header_count} headers"
    cases = [Case(title, sides, 2.2)]
    if header_count:
        cases.append(Case(f"{title}, not looked at", lazy, 4.0))
    return cases


def encode_case(header_count: int) -> Case:
    """Returns the comparison of encoding a batch.

    `set_checksums` replaces the checksum functions of kproto and kafka-python only; aiokafka uses
    its own.
    """
    from aiokafka.record import default_records as aiokafka
    from kafka.record.default_records import DefaultRecordBatchBuilder

    from kproto.records import encode_batch

    records = new_records(header_count)

    def kafka_python() -> bytes:
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
        for offset, (key, value, headers, timestamp) in enumerate(records):
            builder.append(offset, timestamp, key, value, headers)
        return bytes(builder.build())

    def aiokafka_builder(kind: Any) -> Callable[[], bytes]:
        def build() -> bytes:
            builder = kind(2, 0, 0, -1, -1, 0, 1 << 30)
            for offset, (key, value, headers, timestamp) in enumerate(records):
                builder.append(offset, timestamp, key, value, headers)
            return bytes(builder.build())

        return build

    sides: dict[str, Callable[[], bytes]] = {
        "kproto": lambda: encode_batch(records),
        "kafka-python": kafka_python,
        "aiokafka, Python": aiokafka_builder(aiokafka._DefaultRecordBatchBuilderPy),
        "aiokafka, C": aiokafka_builder(aiokafka.DefaultRecordBatchBuilder),
    }
    assert len({build()[61:] for build in sides.values()}) == 1, "the sides differ"
    return Case(f"encode 1,000 records, {header_count} headers", dict(sides), 2.7)


def end_to_end_cases(header_count: int) -> list[Case]:
    """Returns the comparisons of decoding and encoding a batch, both with the batch's checksum."""
    from kafka.record.default_records import DefaultRecordBatch

    from kproto.records import encode_batch, read_batches, read_records

    data = encode_batch(new_records(header_count))

    def kafka_python() -> object:
        batch = DefaultRecordBatch(data)
        assert batch.validate_crc()
        return list(batch)

    def ours() -> object:
        return [batch.records(eager_headers=True) for batch in read_batches(data)]

    def ours_lazily() -> object:
        records = list(read_records(data))
        for record in records:
            _ = record.headers
        return records

    encode = encode_case(header_count)
    return [
        Case(
            f"CRC and decode 1,000 records, {header_count} headers",
            {"kproto": ours, "kafka-python": kafka_python},
            8.0,
        ),
        Case(
            f"CRC and decode 1,000 records, {header_count} headers one by one",
            {"kproto": ours_lazily, "kafka-python": kafka_python},
            8.0,
        ),
        Case(
            f"CRC and encode 1,000 records, {header_count} headers",
            {name: encode.sides[name] for name in ("kproto", "kafka-python")},
            8.0,
        ),
    ]


def set_checksums(ours: Callable[..., int], theirs: Callable[..., int]) -> None:
    """Replaces the checksum functions: kproto then uses `ours`, and kafka-python `theirs`."""
    from kafka.record import default_records

    from kproto.records.magic2 import batch_builder, record_batch

    record_batch.crc32c = batch_builder.crc32c = ours  # type: ignore[attr-defined]  # measured so
    default_records.calc_crc32c = theirs


def measure(case: Case, rounds: int) -> dict[str, float]:
    """Returns the CPU seconds per call in the fastest round of each function in `case.sides`.

    The functions run in turn, so that a busy machine slows them alike.
    """
    calls = {}
    for name, side in case.sides.items():
        started = time.perf_counter()
        side()
        calls[name] = max(1, round(ROUND_SECONDS / (time.perf_counter() - started)))
    best = dict.fromkeys(case.sides, float("inf"))
    for _ in range(rounds):
        for name, side in case.sides.items():
            started = time.process_time()
            for _ in range(calls[name]):
                side()
            best[name] = min(best[name], (time.process_time() - started) / calls[name])
    return best


def run(rounds: int) -> dict[str, dict[str, float]]:
    """Measures all cases, prints a line for each, and returns the figures."""
    from kafka.record import _crc32c

    from kproto.records.magic2.crc import own_crc32c

    no_checksum: Callable[..., int] = lambda data, crc=0: 0  # noqa: E731  # a one-off
    figures = {}
    heading = f"{'case':58} {'kproto µs':>10} {'kafka-python':>13} {'target':>7}"
    print(f"{heading} {'aiokafka Py':>12} {'aiokafka C':>11}")

    def show(case: Case) -> None:
        best = measure(case, rounds)
        ours = best["kproto"]
        ratios = {name: seconds / ours for name, seconds in best.items() if name != "kproto"}
        figures[case.name] = {"kproto_us": ours * 1e6, **ratios}
        wanted = "" if case.wanted is None else f"{case.wanted:.1f}x"
        shown = [
            f"{ratios[name]:.2f}x" if name in ratios else ""
            for name in ("kafka-python", "aiokafka, Python", "aiokafka, C")
        ]
        line = f"{case.name:58} {ours * 1e6:10.1f} {shown[0]:>13} {wanted:>7}"
        print(f"{line} {shown[1]:>12} {shown[2]:>11}".rstrip(), flush=True)

    for case in crc_cases():
        show(case)
    for header_count in (0, 2, 6):
        for case in decode_cases(header_count):
            show(case)
    set_checksums(no_checksum, no_checksum)
    for header_count in (0, 2, 6):
        show(encode_case(header_count))
    set_checksums(own_crc32c, _crc32c.crc)
    for header_count in (0, 2, 6):
        for case in end_to_end_cases(header_count):
            show(case)
    return figures


def main() -> int:
    """Measures and prints every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each side per case")
    arguments = parser.parse_args()
    if INNER not in os.environ:
        return run_in_peers(sys.argv[1:], ROOT)
    figures = run(arguments.rounds)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def run_in_peers(arguments: Sequence[str], package: Path) -> int:
    """Runs this file with the other libraries' interpreter; `package` is the folder of `kproto`."""
    from tools.setup.peers import peers_python

    environment = {**os.environ, INNER: "1", "PYTHONPATH": str(package)}
    command = [str(peers_python()), "-P", __file__, *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
