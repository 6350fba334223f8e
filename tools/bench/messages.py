"""Compares kproto's codecs of messages with those of kafka-python and kio, in one process.

    python -m tools.bench.messages [--json FILE] [--rounds N] [CASE ...]

Runs itself in the environment of the other libraries. Each row is one message at one version,
decoded to objects and encoded from them. The libraries alternate, so that a busy machine slows them
alike, and the result is the median of the ratios of neighboring rounds. All checks of `kproto` are
active; the run first asserts that all libraries read and write the same bytes.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto.messages.base import Message

ROOT: Final = Path(__file__).resolve().parents[2]
#: The environment variable that marks the run with the other libraries' interpreter.
INNER: Final = "KPROTO_BENCH_MESSAGES"
#: The target duration of one round of one side.
ROUND_SECONDS: Final = 0.004

#: The minimum ratio of kafka-python's time to kproto's, for rows that are not in `WANTED_OF`.
WANTED: Final = {"decode": 1.5, "encode": 3.3}
WANTED_OF: Final = {
    ("Metadata response", "decode"): 4.0,
    ("Metadata response, every list read", "decode"): 2.0,
}


class Case(NamedTuple):
    """A message at one version."""

    name: str
    message: Message
    version: int
    #: A function that is measured together with decoding; its argument is the decoded message.
    read: Callable[[Any], object] | None = None


class LibraryCodec(NamedTuple):
    """The decoder and the encoder of one library for a message."""

    name: str
    decode: Callable[[], object]
    encode: Callable[[], bytes]


def cases() -> list[Case]:
    """Returns messages of typical sizes."""
    from kproto import messages as m
    from kproto.wire.uuid import Uuid

    rng = random.Random(3)  # the same bytes on every run
    topics = [f"flights-{number:03}" for number in range(100)]
    records = rng.randbytes(1000)

    metadata = m.MetadataResponse(
        brokers=[_broker(number) for number in range(3)],
        cluster_id="d4f2xJ8sTkK5lqHc0uBvRg",
        controller_id=1,
        topics=[_topic(name, Uuid(rng.randbytes(16))) for name in topics],
    )
    produce = m.ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[_produced(name, records) for name in topics[:10]],
    )
    join = m.JoinGroupResponse(
        generation_id=7,
        protocol_type="consumer",
        protocol_name="range",
        leader="consumer-0",
        member_id="consumer-0",
        members=[_member(number, rng.randbytes(100)) for number in range(20)],
    )
    heartbeat = m.HeartbeatRequest(
        group_id="flights-by-airport",
        generation_id=7,
        member_id="consumer-7d1e6c1b-53f5-4ac4-8fb1-6c0b14ac0a59",
    )
    return [
        Case("Metadata response", metadata, 12),
        Case("Metadata response, every list read", metadata, 12, _read_lists),
        Case("Fetch response", _fetch(topics, records), 12),
        Case("Fetch response", _fetch(topics, records), 6),
        Case("Produce request", produce, 9),
        Case("JoinGroup response", join, 9),
        Case("OffsetFetch response", _committed(topics), 8),
        Case("ListOffsets response", _listed(topics), 7),
        Case("Heartbeat request", heartbeat, 4),
        Case("Heartbeat response", m.HeartbeatResponse(), 4),
    ]


def _read_lists(metadata: Any) -> None:
    """Reads the lists that kproto decodes lazily; they have the same names in all libraries."""
    for topic in metadata.topics:
        for partition in topic.partitions:
            partition.replica_nodes  # noqa: B018
            partition.isr_nodes  # noqa: B018
            partition.offline_replicas  # noqa: B018


def _broker(number: int) -> Any:
    from kproto.messages.metadata_response import MetadataResponseBroker

    host = f"broker-{number}.example.com"
    return MetadataResponseBroker(node_id=number, host=host, port=9092, rack=f"rack-{number}")


def _topic(name: str, topic_id: Any) -> Any:
    from kproto.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic

    partitions = [
        MetadataResponsePartition(
            partition_index=index,
            leader_id=index % 3,
            leader_epoch=5,
            replica_nodes=[index % 3, (index + 1) % 3, (index + 2) % 3],
            isr_nodes=[index % 3, (index + 1) % 3, (index + 2) % 3],
        )
        for index in range(10)
    ]
    return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions)


def _fetch(topics: list[str], records: bytes) -> Message:
    from kproto.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData

    responses = [
        FetchableTopicResponse(
            topic=name,
            partitions=[
                PartitionData(
                    partition_index=index,
                    high_watermark=1_000_000 + index,
                    last_stable_offset=1_000_000 + index,
                    log_start_offset=500,
                    aborted_transactions=None,
                    records=records,
                )
                for index in range(10)
            ],
        )
        for name in topics[:10]
    ]
    return FetchResponse(responses=responses)


def _produced(name: str, records: bytes) -> Any:
    from kproto.messages.produce_request import PartitionProduceData, TopicProduceData

    partitions = [PartitionProduceData(index=index, records=records) for index in range(10)]
    return TopicProduceData(name=name, partition_data=partitions)


def _member(number: int, metadata: bytes) -> Any:
    from kproto.messages.join_group_response import JoinGroupResponseMember

    return JoinGroupResponseMember(member_id=f"consumer-{number}", metadata=metadata)


def _committed(topics: list[str]) -> Message:
    from kproto.messages.offset_fetch_response import (
        OffsetFetchResponse,
        OffsetFetchResponseGroup,
        OffsetFetchResponsePartitions,
        OffsetFetchResponseTopics,
    )

    entries = [
        OffsetFetchResponseTopics(
            name=name,
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=index, committed_offset=123_456 + index, metadata=""
                )
                for index in range(10)
            ],
        )
        for name in topics[:10]
    ]
    return OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(group_id="flights-by-airport", topics=entries)]
    )


def _listed(topics: list[str]) -> Message:
    from kproto.messages.list_offsets_response import (
        ListOffsetsPartitionResponse,
        ListOffsetsResponse,
        ListOffsetsTopicResponse,
    )

    entries = [
        ListOffsetsTopicResponse(
            name=name,
            partitions=[
                ListOffsetsPartitionResponse(
                    partition_index=index, offset=1_000_000 + index, leader_epoch=5
                )
                for index in range(10)
            ],
        )
        for name in topics[:10]
    ]
    return ListOffsetsResponse(topics=entries)


def sides(case: Case) -> list[LibraryCodec]:
    """Returns each library's codec, after a check that all codecs read and write the same bytes."""
    message, version = case.message, case.version
    data = message.encode(version)
    kind = type(message)
    made = [
        LibraryCodec(
            "kproto",
            partial(kind.decode, data, version),
            partial(kind.decode(data, version).encode, version),
        ),
        _kafka_python(kind.__name__, data, version),
        _kio(kind.__name__, data, version),
    ]
    assert kind.decode(data, version) == message
    assert all(side.encode() == data for side in made), f"{case.name}: the sides differ"
    return made


def _kafka_python(name: str, data: bytes, version: int) -> LibraryCodec:
    found = None
    for group in ("metadata", "consumer", "producer"):
        found = found or getattr(importlib.import_module(f"kafka.protocol.{group}"), name, None)
    assert found is not None, f"kafka-python has no {name}"
    decoded = found.decode(data, version=version)
    decoded._header = None  # otherwise kafka-python fails to encode a decoded message
    return LibraryCodec(
        "kafka-python",
        partial(found.decode, data, version=version),
        partial(decoded.encode, version=version),
    )


def _kio(name: str, data: bytes, version: int) -> LibraryCodec:
    from io import BytesIO

    from kio.serial import entity_reader, entity_writer

    words = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
    api, _, kind = words.removeprefix("_").rpartition("_")
    message = getattr(importlib.import_module(f"kio.schema.{api}.v{version}.{kind}"), name)
    read, write = entity_reader(message), entity_writer(message)

    def encode(entity: Any) -> bytes:
        buffer = BytesIO()
        write(buffer, entity)
        return buffer.getvalue()

    entity, _ = read(data, 0)
    return LibraryCodec("kio", partial(read, data, 0), partial(encode, entity))


def _then(decode: Callable[[], object], read: Callable[[Any], object]) -> None:
    decoded = decode()
    # kio returns the message together with the number of bytes read.
    read(decoded[0] if isinstance(decoded, tuple) else decoded)


def measure(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Returns the CPU seconds per call by name, one value per round; the calls alternate."""
    counts = {}
    for name, call in calls.items():
        call()
        started = time.perf_counter()
        call()
        counts[name] = max(1, round(ROUND_SECONDS / (time.perf_counter() - started)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            repeats = range(counts[name])
            started = time.process_time()
            for _ in repeats:
                call()
            times[name].append((time.process_time() - started) / counts[name])
    return times


def run(rounds: int, wanted_cases: list[str]) -> dict[str, dict[str, float]]:
    """Measures the cases, prints a line for each, and returns the figures.

    If `wanted_cases` is not empty, measures only the cases whose title contains one of its texts.
    """
    figures = {}
    print(f"{'case':38} {'':6} {'kproto µs':>10} {'x kafka-python':>15} {'target':>7} {'x kio':>7}")
    for case in cases():
        name, *what = case.name.split(", ")
        title = ", ".join([f"{name} v{case.version}", *what])
        if wanted_cases and not any(part.lower() in title.lower() for part in wanted_cases):
            continue
        made = sides(case)
        gc.collect()
        gc.freeze()
        for action in ("decode", "encode") if case.read is None else ("decode",):
            calls = {side.name: getattr(side, action) for side in made}
            if case.read is not None:
                calls = {name: partial(_then, call, case.read) for name, call in calls.items()}
            times = measure(calls, rounds)
            ours = times.pop("kproto")
            ratios = {
                name: statistics.median(a / b for a, b in zip(theirs, ours, strict=True))
                for name, theirs in times.items()
            }
            micros = statistics.median(ours) * 1e6
            wanted = WANTED_OF.get((case.name, action), WANTED[action])
            figures[f"{title}, {action}"] = {"kproto_us": micros, **ratios}
            reached = "" if ratios["kafka-python"] >= wanted else "  below"
            print(
                f"{title:38} {action:6} {micros:10.1f} {ratios['kafka-python']:14.2f}x "
                f"{wanted:6.1f}x {ratios['kio']:6.2f}x{reached}",
                flush=True,
            )
    return figures


def main() -> int:
    """Measures and prints every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help="only rows whose name contains CASE"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--rounds", type=int, default=41, help="rounds of each side per case")
    arguments = parser.parse_args()
    if INNER not in os.environ:
        return run_in_peers(sys.argv[1:], ROOT)
    figures = run(arguments.rounds, arguments.cases)
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
