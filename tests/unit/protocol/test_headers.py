"""Tests which header version each message version has, and the bytes of the headers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import messages
from kproto.messages.base import Request, Response
from kproto.protocol import headers
from kproto.wire.errors import DecodeError, EncodeError

GOLDEN_VERSIONS = Path(__file__).with_name("kafka_header_versions.csv")
SCHEMAS = Path(__file__).resolve().parents[3] / "schemas"

# Results of ApiKeys.requestHeaderVersion in kafka-clients 4.4.0 (3.9.2 for versions and keys that
# 4.4.0 has dropped): api key -> first version, first version with a flexible header, last version.
# The version of the response header is one below that of the request header, except that
# ApiVersions always has response header 0.
KAFKA = {
    0: (0, 9, 13), 1: (0, 12, 18), 2: (0, 6, 11), 3: (0, 9, 13), 4: (0, 4, 7), 5: (0, 2, 4),
    6: (0, 6, 8), 7: (0, 3, 3), 8: (0, 8, 10), 9: (0, 6, 10), 10: (0, 3, 6), 11: (0, 6, 9),
    12: (0, 4, 4), 13: (0, 4, 5), 14: (0, 4, 5), 15: (0, 5, 6), 16: (0, 3, 5), 17: (0, None, 1),
    18: (0, 3, 5), 19: (0, 5, 7), 20: (0, 4, 6), 21: (0, 2, 2), 22: (0, 2, 6), 23: (0, 4, 4),
    24: (0, 3, 5), 25: (0, 3, 4), 26: (0, 3, 5), 27: (0, 1, 2), 28: (0, 3, 6), 29: (0, 2, 3),
    30: (0, 2, 3), 31: (0, 2, 3), 32: (0, 4, 4), 33: (0, 2, 2), 34: (0, 2, 2), 35: (0, 2, 5),
    36: (0, 2, 2), 37: (0, 2, 3), 38: (0, 2, 3), 39: (0, 2, 2), 40: (0, 2, 2), 41: (0, 2, 3),
    42: (0, 2, 3), 43: (0, 2, 2), 44: (0, 1, 1), 45: (0, 0, 1), 46: (0, 0, 0), 47: (0, None, 0),
    48: (0, 1, 1), 49: (0, 1, 1), 50: (0, 0, 0), 51: (0, 0, 0), 52: (0, 0, 2), 53: (0, 1, 1),
    54: (0, 1, 1), 55: (0, 0, 2), 56: (0, 0, 3), 57: (0, 0, 2), 58: (0, 0, 0), 59: (0, 0, 1),
    60: (0, 0, 2), 61: (0, 0, 0), 62: (0, 0, 4), 63: (0, 0, 2), 64: (0, 0, 0), 65: (0, 0, 0),
    66: (0, 0, 2), 67: (0, 0, 0), 68: (0, 0, 1), 69: (0, 0, 1), 70: (0, 0, 0), 71: (0, 0, 0),
    72: (0, 0, 0), 73: (0, 0, 0), 74: (0, 0, 1), 75: (0, 0, 0), 76: (0, 0, 1), 77: (0, 0, 1),
    78: (0, 0, 2), 79: (0, 0, 2), 80: (0, 0, 1), 81: (0, 0, 0), 82: (0, 0, 0), 83: (0, 0, 0),
    84: (0, 0, 0), 85: (0, 0, 1), 86: (0, 0, 0), 87: (0, 0, 1), 88: (0, 0, 1), 89: (0, 0, 1),
    90: (0, 0, 1), 91: (0, 0, 0), 92: (0, 0, 0), 93: (0, 0, 0), 94: (0, 0, 0),
}  # fmt: skip

PAIRS = [
    (key, version) for key, (first, _, last) in KAFKA.items() for version in range(first, last + 1)
]


def classes(key: int) -> tuple[type[Request[Response]], type[Response]]:
    request, response = headers.request_class(key), headers.response_class(key)
    assert request is not None
    assert response is not None
    return request, response


def test_every_api_key_of_kafka_is_known_and_no_other() -> None:
    assert set(messages.API_KEYS) == set(KAFKA)


@pytest.mark.parametrize("key", KAFKA)
def test_versions_are_those_of_kafka(key: int) -> None:
    request, response = classes(key)
    first, _, last = KAFKA[key]
    released = range(first, last + 1)
    assert released == request.VALID_VERSIONS
    assert released == response.VALID_VERSIONS


def test_header_versions_are_those_of_kafka() -> None:
    found = {}
    for key, version in PAIRS:
        request, response = classes(key)
        found[key, version] = (
            headers.request_header_version(request, version),
            headers.response_header_version(response, version),
        )
    wanted = {}
    for key, version in PAIRS:
        flexible = KAFKA[key][1]
        is_flexible = flexible is not None and version >= flexible
        asked = 2 if is_flexible else 1
        answered = 1 if is_flexible else 0
        if key == headers.API_VERSIONS:
            answered = 0
        if (key, version) == (7, 0):
            asked = 0
        wanted[key, version] = (asked, answered)
    assert found == wanted


def test_header_versions_are_those_that_kafkas_own_table_gives() -> None:
    """Checks all versions that ApiMessageType of Kafka 3.9.2 or 4.4.0 lists as supported."""
    lines = GOLDEN_VERSIONS.read_text(encoding="utf-8").splitlines()
    rows = [tuple(map(int, line.split(","))) for line in lines if not line.startswith("#")]
    assert len(rows) == 368
    for key, version, asked, answered in rows:
        request, response = classes(key)
        found = (
            headers.request_header_version(request, version),
            headers.response_header_version(response, version),
        )
        assert found == (asked, answered), f"{request.__name__} v{version}"
    assert {key for key, *_ in rows} == set(messages.API_KEYS)


def definitions() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yields path and definition of each request and response in schemas/ that has versions."""
    for path in sorted(SCHEMAS.glob("*/*/*.json")):
        node = json.loads(path.read_text(encoding="utf-8"))
        if node["type"] in {"request", "response"} and node["validVersions"] != "none":
            yield path, node


def bounds(text: str) -> range:
    first, _, last = text.partition("-")
    if text.endswith("+"):
        return range(int(text[:-1]), 1 << 15)
    return range(int(first), int(last or first) + 1)


def test_header_versions_follow_the_definitions() -> None:
    """Checks all definitions in schemas/, so that the test covers a new release at once."""
    checked = 0
    for path, node in definitions():
        is_request = node["type"] == "request"
        request, response = classes(node["apiKey"])
        flexible = node["flexibleVersions"]
        for version in bounds(node["validVersions"]):
            is_flexible = flexible != "none" and version in bounds(flexible)
            if is_request:
                found = headers.request_header_version(request, version)
                wanted = 2 if is_flexible else 1
                if (node["apiKey"], version) == (7, 0):
                    wanted = 0
            else:
                found = headers.response_header_version(response, version)
                wanted = 1 if is_flexible and node["apiKey"] != headers.API_VERSIONS else 0
            assert found == wanted, f"{path.parent} {node['name']} v{version}"
            checked += 1
    assert checked > 1000


# Written by RequestHeaderData and ResponseHeaderData of kafka-clients 4.4.0.
GOLDEN = [
    (3, 8, "kproto-test", 42, "000300080000002a000b6b70726f746f2d74657374", "0000002a"),
    (3, 9, "kproto-test", 42, "000300090000002a000b6b70726f746f2d7465737400", "0000002a00"),
    (0, 8, None, 7, "0000000800000007ffff", "00000007"),
    (18, 0, "", 0x7FFFFFFF, "001200007fffffff0000", "7fffffff"),
    (18, 3, "é", -1, "00120003ffffffff0002c3a900", "ffffffff"),
    (1, 12, None, 1, "0001000c00000001ffff00", "0000000100"),
]


@pytest.mark.parametrize(
    ("key", "version", "client_id", "correlation_id", "asked", "answered"), GOLDEN
)
def test_bytes_of_kafka_s_own_classes(
    key: int, version: int, client_id: str | None, correlation_id: int, asked: str, answered: str
) -> None:
    request, response = classes(key)
    data = headers.encode_request_header(request, version, correlation_id, client_id)
    assert data.hex() == asked
    parsed = headers.parse_request_header(data + b"body")
    assert parsed == (key, version, correlation_id, client_id, (), len(data))
    data = headers.encode_response_header(response, version, correlation_id)
    assert data.hex() == answered
    found = headers.parse_response_header(response, version, data + b"body")
    assert found == (correlation_id, len(data))


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    request, _ = classes(7)
    data = headers.encode_request_header(request, 0, 5, "left out: the field is ignorable")
    assert data == b"\x00\x07\x00\x00\x00\x00\x00\x05"
    assert headers.parse_request_header(data) == (7, 0, 5, None, (), 8)


@pytest.mark.parametrize(("key", "version"), [(3, 14), (18, 6), (18, -1), (999, 0), (-1, 3)])
def test_header_of_an_unknown_api_key_is_read(key: int, version: int) -> None:
    """The header is read for any version, too: a broker must answer an unknown ApiVersions version.

    The answer lists the versions that the broker supports (KIP-511).
    """
    data = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    parsed = headers.parse_request_header(data + b"\x00\x00\x00\x09\x00\x03new\x00body")
    assert parsed[:4] == (key, version, 9, "new")
    if key in {999, -1}:
        assert headers.request_class(key) is None
        assert headers.response_class(key) is None


def test_unknown_tags_of_a_header_are_kept() -> None:
    data = bytes.fromhex("0003000900000001ffff" + "01" + "07" + "02" + "abcd") + b"body"
    parsed = headers.parse_request_header(data)
    assert [(tag.tag, tag.data) for tag in parsed.unknown_tagged_fields] == [(7, b"\xab\xcd")]
    assert data[parsed.body :] == b"body"


@pytest.mark.parametrize("size", range(8))
def test_a_request_too_short_for_a_header(size: int) -> None:
    with pytest.raises(DecodeError, match=f"a request of {size} bytes has no header"):
        headers.parse_request_header(bytes.fromhex("0003000900000001")[:size])


def test_a_client_id_too_long() -> None:
    request, _ = classes(3)
    with pytest.raises(EncodeError, match="client_id"):
        headers.encode_request_header(request, 9, 1, "x" * 32768)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_header_or_a_decode_error(data: bytes) -> None:
    try:
        parsed = headers.parse_request_header(data)
    except DecodeError:
        return
    assert 8 <= parsed.body <= len(data)
