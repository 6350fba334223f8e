"""Tests that all frames between four clients and two broker releases are decoded fully.

librdkafka, aiokafka, kafka-python and Kafka's Java client each run a scripted scenario, called a
walk, through `kproto proxy` against a real broker. A walk uses topics, all codecs, headers,
transactions, groups, offsets and configs. Two independent decoders decode every recorded frame.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from kproto.messages import FetchResponse, ProduceRequest, ShareFetchResponse
from kproto.messages.base import Message
from kproto.records import Record, RecordBatch, read_batches
from kproto.study import Node, annotate_frame, faults, nodes
from kproto.study.conversations import EventKind, Side, TrafficEvent
from kproto.study.exchanges import Exchange, pair_exchanges
from kproto.study.flows import events_of_recording, events_of_segments
from kproto.study.pcap import read_segments
from kproto.study.recording import read_recording
from tests.support.availability import not_available, skip_untested
from tests.support.brokers import RunningKafka
from tests.support.packet_capture import Captured, captured
from tests.support.proxy_command import capture, proxy
from tests.unit.study.agreement import check_agreement, check_every_byte, check_values
from tools.kafka import VERSIONS
from tools.reference.classes import ReferenceUnavailableError, class_path
from tools.setup.java import java_home

pytestmark = pytest.mark.peers

WALKS: Final = Path(__file__).parent / "peer_walks"
WALK_TIMEOUT_S: Final = 240
CLIENTS: Final = ("confluent_kafka", "aiokafka", "kafka_python", "java")

#: The number of records that each walk writes: without those of aborted transactions, and in all.
READ: Final = {"committed": 135, "every": 145}

CODECS: Final = {"none", "gzip", "snappy", "lz4", "zstd"}

#: The APIs that every client calls.
COMMON_APIS: Final = {
    "ApiVersions",
    "CreatePartitions",
    "CreateTopics",
    "DeleteRecords",
    "DeleteTopics",
    "DescribeConfigs",
    "DescribeGroups",
    "EndTxn",
    "Fetch",
    "FindCoordinator",
    "Heartbeat",
    "InitProducerId",
    "JoinGroup",
    "LeaveGroup",
    "ListGroups",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "Produce",
    "SyncGroup",
    "TxnOffsetCommit",
}

#: Further APIs that each client calls.
CLIENT_APIS: Final = {
    "confluent_kafka": {"AddOffsetsToTxn", "AddPartitionsToTxn", "IncrementalAlterConfigs"},
    "aiokafka": {"AddOffsetsToTxn", "AddPartitionsToTxn", "AlterConfigs"},
    "kafka_python": {"AddOffsetsToTxn", "AddPartitionsToTxn", "DescribeQuorum", "ListTransactions"},
    "java": {"ConsumerGroupHeartbeat", "DescribeTopicPartitions", "DescribeProducers"},
}


#: Client ids of the broker's own requests, about transactions and share groups.
BROKER_CLIENT_IDS: Final = {
    "AddPartitionsManager-client-1",
    "Persister-client-1",
    "broker-1-txn-marker-sender",
}

#: Further APIs on current brokers: the protocols of KIP-848 and KIP-932.
MODERN_APIS: Final = {
    "confluent_kafka": {"ConsumerGroupHeartbeat"},
    "java": {"ShareAcknowledge", "ShareFetch", "ShareGroupHeartbeat"},
}


@dataclass
class Walk:
    """The result of a walk on one broker: the counts that the client printed, and the exchanges.

    The proxy has recorded the exchanges.
    """

    client: str
    version: str
    printed: dict[str, int]
    recording: Path
    packets: Captured
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def is_modern(self) -> bool:
        """Returns whether the broker is of a current release, not of 3.x."""
        return not self.version.startswith("3.")

    @property
    def events(self) -> Iterator[TrafficEvent]:
        """Yields every request and response whose bytes were recorded."""
        for one in self.exchanges:
            for event in (one.request, one.response):
                if event is not None and event.data:
                    yield event


@pytest.fixture(
    scope="module",
    # `make test` runs librdkafka alone: its requests have the most peculiarities.
    params=[
        CLIENTS[0],
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in CLIENTS[1:]),
    ],
)
def walk(
    request: pytest.FixtureRequest,
    kafka: RunningKafka,
    peers_python: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Walk:
    """Runs the scripted scenario of each client with each broker, once per module."""
    client, folder = request.param, tmp_path_factory.mktemp("walk")
    recording = folder / "recording"
    bootstrap = kafka.bootstrap.partition(",")[0]
    with (
        captured(bootstrap, folder / "packets") as packets,
        proxy(bootstrap, recording, "--show-secrets") as running,
    ):
        command = [*_command(client, kafka, peers_python), running.address, f"walk-{folder.name}"]
        if not kafka.version.startswith("3."):
            command.append("modern")
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=WALK_TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        running.end()
    with recording.open("rb") as file:
        found = list(pair_exchanges(events_of_recording(read_recording(file), keep_bytes=True)))
    printed = json.loads(done.stdout.splitlines()[-1])
    return Walk(client, kafka.version, printed, recording, packets, found)


def _command(client: str, kafka: RunningKafka, peers_python: Path) -> list[str]:
    if client != "java":
        return [str(peers_python), str(WALKS / f"with_{client}.py")]
    release = kafka.version if kafka.version in VERSIONS else VERSIONS[0]
    try:
        return [str(java_home() / "bin" / "java"), "-cp", class_path(release), "Walk"]
    except ReferenceUnavailableError as error:
        not_available("Kafka's Java client", error)


def frames_by_hand(recording: Path) -> dict[int, dict[str, list[bytes]]]:
    """Returns the frames that "client" and "broker" sent on each connection, by connection number.

    Splits the recorded bytes without the code under test.
    """
    streams: dict[int, dict[str, bytes]] = defaultdict(lambda: {"client": b"", "broker": b""})
    for line in recording.read_text("utf-8").splitlines()[1:]:
        entry = json.loads(line)
        for side in ("client", "broker"):
            if side in entry:
                streams[entry["c"]][side] += base64.b64decode(entry[side])
    return {
        number: {side: _cut(data) for side, data in sides.items()}
        for number, sides in streams.items()
    }


def _cut(stream: bytes) -> list[bytes]:
    found = []
    while stream:
        end = 4 + int.from_bytes(stream[:4], "big")
        assert end <= len(stream), "a frame was not recorded whole"
        found.append(stream[:end])
        stream = stream[end:]
    return found


# --- the exchanges ------------------------------------------------------------------------------


def test_client_calls_every_expected_api(walk: Walk) -> None:
    assert walk.printed == READ
    requests = {one.request.api for one in walk.exchanges if one.request is not None}
    answered = {one.response.api for one in walk.exchanges if one.response is not None}
    expected = COMMON_APIS | CLIENT_APIS[walk.client]
    if walk.is_modern:
        expected |= MODERN_APIS.get(walk.client, set())
    assert requests >= expected, expected - requests
    assert answered >= expected, expected - answered


def test_capture_pairs_each_request_with_its_response(walk: Walk) -> None:
    lines = [json.loads(line) for line in capture(str(walk.recording), "--json").splitlines()]
    assert {line["kind"] for line in lines} <= {"message", "unanswered"}
    by_connection: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        by_connection[line["connection"]].append(line)
    frames = {number: it for number, it in frames_by_hand(walk.recording).items() if it["client"]}
    assert by_connection.keys() == frames.keys()
    for number, mine in by_connection.items():
        requests = {_id(frame, 8): frame for frame in frames[number]["client"]}
        answers = {_id(frame, 4): frame for frame in frames[number]["broker"]}
        assert len(requests) == len(frames[number]["client"]) == len(mine)
        assert len(answers) == len(frames[number]["broker"])
        for line in mine:
            frame = requests.pop(line["correlation_id"])
            key, version = int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")
            assert (line["api_key"], line["version"]) == (key, version)
            assert line["request_size"] == len(frame) - 4
            answer = answers.pop(line["correlation_id"], None)
            assert line.get("response_size") == (None if answer is None else len(answer) - 4)
            if answer is None:  # a Produce with acks 0, or the connection closed before
                is_sent_only = line["api"] == "Produce" and line["kind"] == "message"
                assert is_sent_only or line["kind"] == "unanswered", line
        assert not requests
        assert not answers


def _id(frame: bytes, at: int) -> int:
    return int.from_bytes(frame[at : at + 4], "big", signed=True)


def test_only_requests_of_a_closing_client_stay_unanswered(walk: Walk) -> None:
    left = Counter(
        one.event.api for one in walk.exchanges if one.event.kind is EventKind.UNANSWERED
    )
    assert set(left) <= {
        "Fetch",
        "Heartbeat",
        "Metadata",
        "ConsumerGroupHeartbeat",
        "ShareFetch",
    }, left


def test_packets_and_recording_show_the_same_exchanges(walk: Walk) -> None:
    skip_without_packets(walk)
    assert walk.packets.dropped == 0
    recorded = talks(capture(str(walk.recording), "--json"))
    seen = talks(capture(str(walk.packets.file), "--json"))
    for talk in recorded:
        same = [other for other in seen if is_same(talk, other)]
        assert same, talk
        seen.remove(same[0])
        # Only the capture has the broker's requests to itself, and the last request of the test.
    others = {each[0]["client_id"] for each in seen}
    assert walk.packets.last in others
    assert others <= {walk.packets.last, *BROKER_CLIENT_IDS}


def is_same(recorded: list[dict[str, Any]], seen: list[dict[str, Any]]) -> bool:
    """Returns whether the proxy's recording and a packet capture of a connection agree.

    Only the capture contains a response that arrived after the client had closed the connection.
    """
    if len(recorded) != len(seen):
        return False
    requests = ("api", "version", "correlation_id", "client_id", "request_size")
    return all(
        mine == other
        or (mine["kind"] == "unanswered" and all(mine[key] == other[key] for key in requests))
        for mine, other in zip(recorded, seen, strict=True)
    )


def skip_without_packets(walk: Walk) -> None:
    if walk.packets.missing:
        skip_untested("a capture of tcpdump", walk.packets.missing, walk.packets.install)


def talks(printed: str) -> list[list[dict[str, Any]]]:
    """Returns each connection's printed lines without times, connection numbers and addresses."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in map(json.loads, printed.splitlines()):
        found[line["connection"]].append(line)
        for key in ("number", "us", "latency_us", "connection", "client", "broker"):
            line.pop(key, None)
    return [sorted(mine, key=lambda line: line["correlation_id"]) for mine in found.values()]


# --- the two readers ----------------------------------------------------------------------------


def check_frame(event: TrafficEvent) -> None:
    """Checks that the annotated tree and the message class decode the frame fully and equally.

    Also checks that kproto encodes the decoded message to the same bytes.
    """
    received = event.received
    assert event.kind is EventKind.MESSAGE
    assert received is not None
    assert received.message is not None
    cls, version = type(received.message), received.version
    tree = annotate_frame(
        event.data,
        event.api_key,
        event.version if event.request is None else event.request.version,
        response=event.side is Side.BROKER,
        part="frame",
    )
    assert faults(tree) == [], (cls.__name__, version)
    check_every_byte(tree, event.data)
    behind = b"".join(node.own_bytes for node in nodes(tree) if node.kind == "trailing")
    assert behind == received.trailing
    assert tree.children[-1 if not behind else -2].value == f"{cls.__name__} v{version}"
    body = bytes(received.body)
    check_values(cls, version, received.message, check_agreement(cls, version, body))
    assert received.message.encode(version) == body, (cls.__name__, version)
    assert received.to_frame() == event.data


def test_every_recorded_frame_is_decoded_alike_and_reencoded(walk: Walk) -> None:
    seen = 0
    for event in walk.events:
        check_frame(event)
        seen += 1
    by_hand = frames_by_hand(walk.recording).values()
    assert seen == sum(len(frames) for sides in by_hand for frames in sides.values())


def test_every_captured_frame_is_decoded_alike_and_reencoded(walk: Walk) -> None:
    """Unlike the proxy's recording, the packet capture also has the broker's requests to itself."""
    skip_without_packets(walk)
    seen: set[str] = set()
    with walk.packets.file.open("rb") as file:
        for passed in events_of_segments(read_segments(file), keep_bytes=True):
            if passed.event.data:
                check_frame(passed.event)
                seen.add(passed.event.api)
    assert seen >= COMMON_APIS | {"WriteTxnMarkers"}
    if walk.is_modern and walk.client == "java":
        assert seen >= {"ReadShareGroupState", "WriteShareGroupState"}


def test_trailing_bytes_of_a_body_are_reported(walk: Walk) -> None:
    """Only librdkafka sends trailing bytes: three, after a Metadata request for all topics."""
    behind = {event.api for event in walk.events if event.received and event.received.trailing}
    assert behind == ({"Metadata"} if walk.client == "confluent_kafka" else set())


# --- the records --------------------------------------------------------------------------------


def record_fields(message: Message) -> Iterator[bytes]:
    """Yields the record bytes of each partition in a Produce request or a fetch response."""
    if isinstance(message, ProduceRequest):
        for topic in message.topic_data:
            yield from (each.records or b"" for each in topic.partition_data)
    elif isinstance(message, FetchResponse):
        for fetched in message.responses:
            yield from (each.records or b"" for each in fetched.partitions)
    elif isinstance(message, ShareFetchResponse):
        for shared in message.responses:
            yield from (each.records or b"" for each in shared.partitions)


def test_records_of_every_batch_match_the_annotated_tree(walk: Walk) -> None:
    seen: dict[Side, set[str]] = {Side.CLIENT: set(), Side.BROKER: set()}
    written: list[Record] = []
    for event in walk.events:
        assert event.received is not None
        message = event.received.message
        assert message is not None
        batches = [batch for data in record_fields(message) for batch in read_batches(data)]
        if not batches:
            continue
        side = event.side
        tree = annotate_frame(
            event.data, event.api_key, event.version, response=side is Side.BROKER, part="frame"
        )
        in_tree = [node for node in nodes(tree) if node.kind == "record batch"]
        for batch, node in zip(batches, in_tree, strict=True):
            assert isinstance(batch, RecordBatch)
            records = list(batch.records())
            check_records(records, node)
            seen[side] |= marks(batch, records)
            if side is Side.CLIENT:
                written += records
    assert len(written) >= READ["every"]
    for marked in seen.values():
        assert marked >= CODECS | {"headers", "idempotent", "transactional"}
    assert "control" in seen[Side.BROKER]


def marks(batch: RecordBatch, records: list[Record]) -> set[str]:
    found = {"control"} if batch.is_control else {batch.compression}
    found |= {"transactional"} if batch.is_transactional else set()
    found |= {"idempotent"} if batch.producer_id >= 0 and not batch.is_transactional else set()
    return found | ({"headers"} if any(record.headers for record in records) else set())


def check_records(records: list[Record], node: Node) -> None:
    """Checks that the annotated tree shows the records that `kproto.records` reads."""
    record_nodes = [each for each in nodes(node) if each.kind == "record"]
    assert len(record_nodes) == len(records)
    for record, each in zip(records, record_nodes, strict=True):
        assert each.value == record.offset
        for name, expected in (("key", record.key), ("value", record.value)):
            assert content(each.child(name), expected) == expected
        headers = each.child("headers").children
        assert [header.child("key").value for header in headers] == [
            name for name, _ in record.headers
        ]
        for header, (_, expected) in zip(headers, record.headers, strict=True):
            assert content(header.child("value"), expected) == expected


def content(node: Node, expected: bytes | None) -> bytes | None:
    return None if expected is None else node.source[node.end - len(expected) : node.end]
