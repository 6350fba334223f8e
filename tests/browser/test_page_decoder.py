"""Tests that the page reads frames and records as Python does, and does not fail on any bytes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ControlledShutdownRequest,
    FetchResponse,
    MetadataRequest,
)
from kproto.messages.base import Message
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.protocol.headers import encode_request_header, encode_response_header
from kproto.records import NewRecord, encode_batch, encode_message_set, read_batches
from tests.support.environment import ROOT
from tests.support.selection import rest_slow
from tests.unit.messages.test_broken_bytes import mutations

from .conftest import Open

pytestmark = pytest.mark.browser

SEED = 20_260_102
CASES = 1500  # cases of each kind; reading a case takes well under a millisecond

READ = """
const [cases, done] = arguments;
Promise.all(cases.map((one) => kproto.read(...one)))
  .then((all) => done({ all }), (error) => done({ error: `${error.message} ${error.stack}` }));
"""

RECORDS: list[NewRecord] = [
    (b"k1", b"one", [("h", b"1"), ("h", None), ("", b"")], 1_700_000_000_000),
    (None, b"two", [], 1_700_000_000_001),
    (b"", None, [], 1_699_999_999_000),
    ("ключ".encode(), bytes(range(256)) * 3, [("kind", b"\xff\x00")], 1_700_000_000_002),
]


def read(browser: Any, *cases: tuple[Any, ...]) -> list[Any]:
    """Returns, for each case, the nodes into which the page's function `kproto.read` decodes it.

    A case is (kind, data), or (kind, data, name, version).
    """
    requested = [[kind, data.hex(), *named] for kind, data, *named in cases]
    answered = browser.execute_async_script(READ, requested)
    assert "error" not in answered, answered
    made: list[Any] = answered["all"]
    return made


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def request(message: Message, version: int, client: str = "c") -> bytes:
    header = encode_request_header(type(message), version, 7, client)
    return framed(header + message.encode(version))


def named(nodes: list[Any], name: str) -> list[Any]:
    """Returns every node of this name, in the order of the bytes."""
    found = []
    for node in nodes:
        if node["name"] == name:
            found.append(node)
        found += named(node["children"], name)
    return found


def record_of(node: Any) -> tuple[Any, ...]:
    """Returns the fields of a record node, with bytes as hex.

    The fields are offset delta, timestamp delta, key, value and the list of headers.
    """
    fields = {child["name"]: child for child in node["children"]}
    headers = [child for child in node["children"] if child["name"].startswith("Header [")]
    pairs = [(one["children"][0]["value"], one["children"][1]["value"]) for one in headers]
    return (
        fields["OffsetDelta"]["note"],
        fields["TimestampDelta"]["note"],
        fields["Key"]["value"],
        fields["Value"]["value"],
        pairs,
    )


def hexed(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


@pytest.mark.parametrize("compression", rest_slow(["gzip", "none"], 1, 1))
def test_records_of_a_batch_equal_those_of_python(opened: Open, compression: str) -> None:
    data = encode_batch(RECORDS, compression=compression, base_offset=40)
    data += encode_batch(RECORDS[:1], compression=compression, base_offset=44, is_control=True)
    (part,) = read(opened(), ("records", data))[0]
    assert part["fault"] is None
    batches = part["trees"]
    assert [batch["size"] for batch in batches] == [b.size_in_bytes for b in read_batches(data)]
    ours = [record for batch in read_batches(data) for record in batch.records()]
    theirs = [
        node for batch in batches for node in every_record([batch]) if node["kind"] == "record"
    ]
    assert len(theirs) == len(ours) == 5
    for record, node in zip(ours, theirs, strict=True):
        offset, time, key, value, headers = record_of(node)
        assert offset == f"offset {record.offset}"
        assert time.startswith("2023-11-14T22:13:")
        assert (key, value) == (hexed(record.key), hexed(record.value))
        assert headers == [(name, hexed(fields)) for name, fields in record.headers]
    assert [node["note"] for node in named(batches, "Crc")] == ["right", "right"]
    assert named(batches, "Attributes")[0]["note"].startswith(compression)


def every_record(nodes: list[Any]) -> list[Any]:
    found = []
    for node in nodes:
        found += [node] if node["kind"] == "record" else every_record(node["children"])
    return found


def test_broken_batch_is_shown_up_to_the_fault(opened: Open) -> None:
    whole = encode_batch(RECORDS)
    changed = bytearray(whole)
    changed[70] ^= 0xFF
    cut, wrong = read(opened(), ("records", whole + whole[:-9]), ("records", bytes(changed)))
    assert [node["kind"] for node in cut[0]["trees"]] == ["batch", "fault"]
    assert cut[0]["trees"][1]["value"].startswith("a truncated batch: ")
    assert named(wrong[0]["trees"], "Crc")[0]["note"].startswith("wrong: the bytes give ")


@pytest.mark.parametrize("magic", rest_slow([1, 0], 1, 1))
def test_message_sets_are_read(opened: Open, magic: int) -> None:
    plain: list[NewRecord] = [(key, value, [], time) for key, value, _, time in RECORDS]
    data = encode_message_set(plain, magic=magic)
    (part,) = read(opened(), ("records", data))[0]
    fields = [
        (named([node], "Key")[0]["value"], named([node], "Value")[0]["value"])
        for node in part["trees"]
    ]
    assert fields == [(hexed(key), hexed(value)) for key, value, _, _ in plain]


def test_request_frames_are_read(opened: Open) -> None:
    first = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    body = ControlledShutdownRequest(broker_id=5).encode(0)
    old = framed(bytes.fromhex("0007000000000007") + body)
    several = request(first, 4) + request(MetadataRequest(), 12) + old
    behind = request(first, 3)[4:] + b"\x01\x02\x03"
    parts, (one,) = read(opened(), ("request", several), ("request", behind))
    assert [part["title"] for part in parts] == [
        "ApiVersionsRequest v4",
        "MetadataRequest v12",
        "ControlledShutdownRequest v0",
    ]
    assert [part["fault"] for part in parts] == [None, None, None]
    assert named(parts[2]["trees"], "BrokerId")[0]["value"] == 5
    assert [tree["name"] for tree in one["trees"]] == [
        "RequestHeader",
        "ApiVersionsRequest",
        "After the body",
    ]
    assert one["trees"][-1]["value"] == "010203"


def test_response_frames_are_read_with_their_records(opened: Open) -> None:
    answer = ApiVersionsResponse(throttle_time_ms=9)
    plain = encode_response_header(ApiVersionsResponse, 4, 7) + answer.encode(4)
    records = PartitionData(partition_index=1, records=encode_batch(RECORDS))
    fetched = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[records])])
    framed_fetch = framed(encode_response_header(FetchResponse, 12, 8) + fetched.encode(12))
    (first,), (second,) = read(
        opened(),
        ("response", plain, "ApiVersionsResponse", 4),
        ("response", framed_fetch, "FetchResponse", 12),
    )
    assert named(first["trees"], "ThrottleTimeMs")[0]["value"] == 9
    assert second["fault"] is None
    inside = every_record(named(second["trees"], "Records"))
    assert [record_of(node)[3] for node in inside] == [hexed(value) for _, value, _, _ in RECORDS]
    for node in inside:  # offsets count from the first pasted byte
        at = named([node], "Value")[0]
        if at["value"]:
            assert at["value"] in framed_fetch[at["offset"] : at["offset"] + at["size"]].hex()


def test_example_of_the_documentation_works(opened: Open) -> None:
    said = opened().execute_script('return kproto.decode("MetadataRequest", 1, "ffffffff")')
    assert said == {"json": '{"topics":null}'}


@pytest.mark.exhaustive
def test_no_bytes_make_the_page_fail(opened: Open) -> None:
    source = random.Random(SEED)
    records = [
        encode_batch(RECORDS),
        encode_batch(RECORDS, compression="gzip"),
        encode_message_set([(b"k", b"v", [], 1)], magic=1),
    ]
    frames = [request(MetadataRequest(), 12), request(ApiVersionsRequest(), 3)]
    answer = encode_response_header(ApiVersionsResponse, 4, 7) + ApiVersionsResponse().encode(4)
    cases: list[tuple[Any, ...]] = [("request", source.randbytes(n % 60)) for n in range(CASES)]
    kinds: list[tuple[str, list[bytes], tuple[Any, ...]]] = [
        ("records", records, ()),
        ("request", frames, ()),
        ("response", [answer, framed(answer)], ("ApiVersionsResponse", 4)),
    ]
    for kind, wholes, more in kinds:
        for whole in wholes:
            cases += [
                (kind, changed, *more) for changed in mutations(whole, source, CASES // len(wholes))
            ]
    answers = read(opened(), *cases)
    assert len(answers) == len(cases)
    for (_, data, *_), parts in zip(cases, answers, strict=True):
        for part in parts:
            fault = part["fault"]
            assert fault is None or 0 <= fault["offset"] <= len(data)
            assert part["trees"] or fault
    # The page can show every vector.
    browser = opened("#/decode")
    for kind, data, *named_as in source.sample(cases, 60):
        path = [kind, *map(str, named_as or ("-", "-")), ""]
        browser.execute_script(
            "const hex = arguments[1]; const raw = hex.match(/../g) || [];"
            "const text = btoa(String.fromCharCode(...raw.map((one) => parseInt(one, 16))));"
            "location.hash = '#/decode/' + arguments[0].join('/') + text.replaceAll('+', '-')"
            ".replaceAll('/', '_').replaceAll('=', '')",
            path,
            data.hex(),
        )
        assert browser.find_elements("css selector", "#decoded > *")


LINKS = {
    "3q2-7w": "deadbeef",
    "deadbeef": "75e69d6de79f",
    "AAAAAAAA": "000000000000",
    "AAA": "0000",
}


@pytest.mark.parametrize("encoded", rest_slow(LINKS, 1, 1))
def test_link_carries_base64_of_any_letters(opened: Open, encoded: str) -> None:
    browser = opened(f"#/decode/body/HeartbeatResponse/1/{encoded}")
    fields = browser.find_element("css selector", "#bytes").get_attribute("value")
    assert fields == LINKS[encoded]
    assert browser.current_url.endswith(f"/{encoded}")


@pytest.mark.parametrize("text", rest_slow(["fff", "00 0", "0xAAA"], 1, 1))
def test_odd_hex_digits_are_not_read_as_base64(opened: Open, text: str) -> None:
    answered = opened().execute_async_script(READ, [["request", text]])
    assert "odd number of digits" in answered["error"]


@pytest.mark.parametrize("size", rest_slow([31, -1, 2**31 - 1], 1, 1))
def test_wrong_size_is_reported_and_the_request_is_read(opened: Open, size: int) -> None:
    data = request(ApiVersionsRequest(), 3)[4:]
    ((part,),) = read(opened(), ("request", size.to_bytes(4, "big", signed=True) + data))
    assert part["title"] == "ApiVersionsRequest v3"
    assert part["fault"]["path"] == "size"
    assert part["fault"]["offset"] == 0
    assert f"{len(data)} bytes follow it" in part["fault"]["reason"]
    assert [node["name"] for node in part["trees"]] == [
        "Size",
        "RequestHeader",
        "ApiVersionsRequest",
    ]


READ_TEXT = """
return arguments[0].map(([text, form]) => {
  try {
    return kproto.bytes(text, form);
  } catch (error) {
    return null;
  }
});
"""


def test_pasted_text_is_read_as_in_python(opened: Open) -> None:
    cases = json.loads((ROOT / "tests" / "vectors" / "pasted_text.json").read_text())
    given = [(case["text"], case["form"]) for case in cases]
    read = opened().execute_script(READ_TEXT, given)
    assert read == [case["hex"] for case in cases]
