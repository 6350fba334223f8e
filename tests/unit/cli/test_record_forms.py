"""Tests the forms of records on the command line: JSON lines, formats, delimiters, times."""

from __future__ import annotations

import argparse
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.cli.record_format import compile_format
from kproto.cli.record_input import LineSplitter, keyed, keyed_records
from kproto.cli.record_json import input_line, record_line, record_of_line
from kproto.cli.text_arguments import delimiter, header
from kproto.cli.times import duration_ms, moment_ms
from kproto.client import ProducerRecord
from kproto.records.record import Record
from kproto.wire.errors import ConfigurationError, EncodeError

payloads = st.none() | st.binary(max_size=40) | st.text(max_size=20).map(lambda text: text.encode())
names = st.binary(max_size=12).map(lambda name: name.decode("utf-8", "surrogateescape"))
headers = st.lists(st.tuples(names, payloads), max_size=4)


@given(payloads, payloads, headers, st.integers(-1, 2**62), st.integers(0, 9))
def test_json_line_comes_back_byte_for_byte(
    key: bytes | None,
    value: bytes | None,
    found: list[tuple[str, bytes | None]],
    timestamp: int,
    partition: int,
) -> None:
    record = Record(7, timestamp, key, value, found, topic="t", partition=partition)
    line = record_line(record)
    assert b"\n" not in line
    back, found_topic = record_of_line(line)
    assert (back.key, back.value, list(back.headers)) == (key, value, found)
    assert back.timestamp == (timestamp if timestamp >= 0 else None)
    assert (back.partition, found_topic) == (partition, "t")
    assert record_of_line(input_line("t", back)) == (back, "t")


@given(st.lists(st.tuples(names, payloads), max_size=4), payloads)
def test_undelivered_record_without_a_partition_has_none(
    found: list[tuple[str, bytes | None]], value: bytes | None
) -> None:
    record = ProducerRecord(value, headers=found)
    assert record_of_line(input_line("t", record)) == (record, "t")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('{"value": {"a": [1, 2.5, null]}}', b'{"a":[1,2.5,null]}'),
        ('{"value": 7}', b"7"),
        (
            '{"value": {"a": 1.10, "b": 0.12345678901234567890, "c": 1E400, "a": -0}}',
            b'{"a":1.10,"b":0.12345678901234567890,"c":1E400,"a":-0}',
        ),
        ('{"value": "ü"}', "ü".encode()),
        ('{"value": null}', None),
        ('{"value_base64": "AP8="}', b"\x00\xff"),
    ],
)
def test_value_of_a_line(line: str, value: bytes | None) -> None:
    assert record_of_line(line.encode())[0].value == value


def test_headers_may_be_an_object() -> None:
    line = b'{"value": "v", "headers": {"a": "1", "b": null}}'
    assert record_of_line(line)[0].headers == [("a", b"1"), ("b", None)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "is no JSON"),
        ("[1]", "is no JSON object"),
        ('{"vlaue": 1}', "unknown name 'vlaue'; known: value"),
        ('{"value": "a", "value_base64": "YQ=="}', "both value and value_base64"),
        ('{"value_base64": "?"}', "value_base64 is no base64"),
        ('{"value_base64": 7}', "value_base64 is no base64"),
        ('{"partition": "1"}', "partition is '1', which is no whole number"),
        ('{"partition": 1.5}', "partition is 1.5, which is no whole number"),
        ('{"value": {"a": NaN}}', "NaN is no JSON number"),
        ('{"value": 1, "value": 2}', "has 'value' twice"),
        ('{"value": "\\ud800"}', "value has a lone surrogate"),
        ('{"headers": [["a", "\\udc00"]]}', "header 'a' has a lone surrogate"),
        ('{"timestamp": true}', "timestamp is True"),
        ('{"topic": 3}', "topic is no name"),
        ("{}", "has no value"),
        ('{"key": "k1"}', 'has no value; a tombstone is "value": null'),
        ('{"value_base64": null}', "has no value"),
        ('{"headers": "a"}', "headers should be an array"),
        ('{"headers": [["a"]]}', "headers should be an array"),
        ('{"headers": [["a", {"base64": "?"}]]}', "header 'a' is no base64"),
    ],
)
def test_invalid_line_is_refused(line: str, words: str) -> None:
    with pytest.raises(EncodeError) as caught:
        record_of_line(line.encode())
    assert words in str(caught.value)


RECORD = Record(
    5,
    1_700_000_000_123,
    b"k",
    None,
    [("a", b"1"), ("b", None)],
    topic="orders",
    partition=2,
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (r"%t [%p] at %o: %k\n", b"orders [2] at 5: k\n"),
        ("%s|%S|%K", b"|-1|1"),
        ("%T %D", b"1700000000123 2023-11-14T22:13:20.123Z"),
        ("%h", b"a=1,b=NULL"),
        ("%R", b"\xff\xff\xff\xff"),
        (r"100%% \x41\t\\\0", b"100% A\t\\\0"),
        ("ü", "ü".encode()),
        ("", b""),
    ],
)
def test_record_is_printed_by_a_format(text: str, printed: bytes) -> None:
    assert compile_format(text)(RECORD) == printed


@pytest.mark.parametrize("text", ["%x", "%", r"\q", "\\"])
def test_format_with_an_unknown_letter_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="has no meaning"):
        compile_format(text)


@given(st.binary(max_size=60), st.sampled_from([b"\n", b"\r\n", b"ab", b"\0"]), st.data())
def test_lines_do_not_depend_on_the_chunks(data: bytes, end: bytes, drawn: st.DataObject) -> None:
    splitter = LineSplitter(end)
    lines: list[bytes] = []
    at = 0
    while at < len(data):
        size = drawn.draw(st.integers(1, 8))
        lines += splitter.feed(data[at : at + size])
        at += size
    lines += splitter.finish()
    wanted = data.split(end)
    assert lines == (wanted[:-1] if wanted[-1] == b"" else wanted)


def test_too_long_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto.cli.record_input.MAX_LINE_BYTES", 10)
    splitter = LineSplitter()
    assert splitter.feed(b"12345678\n90") == [b"12345678"]
    with pytest.raises(EncodeError, match="--delimiter"):
        splitter.feed(b"123456789")


def test_key_stands_before_the_first_separator() -> None:
    assert keyed(b"a:b:c", b":") == ProducerRecord(b"b:c", b"a")
    assert keyed(b"abc", b":") == ProducerRecord(b"abc", None)
    assert keyed(b":abc", b":") == ProducerRecord(b"abc", b"")


@given(st.lists(st.binary(max_size=6)), st.binary(min_size=1, max_size=2))
def test_keyed_records_are_those_of_the_lines(lines: list[bytes], separator: bytes) -> None:
    found = keyed_records(lines, separator)
    assert [type(record) for record in found] == [ProducerRecord] * len(lines)
    for line, record in zip(lines, found, strict=True):
        assert record.value is not None
        if separator in line:
            assert record.key is not None
            assert separator not in record.key
            assert record.key + separator + record.value == line
        else:
            assert record == ProducerRecord(line)


@pytest.mark.parametrize(
    ("text", "found"), [(r"\t", b"\t"), (r"\x00\n", b"\0\n"), ("::", b"::"), (r"\\", b"\\")]
)
def test_delimiter_has_escapes(text: str, found: bytes) -> None:
    assert delimiter(text) == found


@pytest.mark.parametrize("text", ["", r"\q"])
def test_invalid_delimiter_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        delimiter(text)


def test_header_without_a_value_is_null() -> None:
    assert header("a=1=2") == ("a", b"1=2")
    assert header("a") == ("a", None)
    with pytest.raises(argparse.ArgumentTypeError):
        header("=1")


NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("10m", NOW - 600_000),
        ("-1h30m", NOW - 5_400_000),
        ("2 d ago", NOW - 172_800_000),
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
        ("20231114", 1_699_920_000_000),
    ],
)
def test_time_is_read(text: str, moment: int) -> None:
    assert moment_ms(text, NOW) == moment


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1767225604", "for seconds since 1970 write 1767225604000"),
        ("1767225604000000", "for microseconds leave out the last 3 digits"),
        ("99999999999999999", "after the year 9999"),
        ("1969-12-31", "before 1970"),
        ("9999w", "before 1970"),
    ],
)
def test_time_in_another_unit_is_refused_with_advice(text: str, words: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=words):
        moment_ms(text, NOW)


@pytest.mark.parametrize("text", ["", "soon", "10", "10x", "2023-13-01", "m"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no time"):
        moment_ms(text, NOW)


@pytest.mark.parametrize(("text", "ms"), [("90s", 90_000), ("1.5h", 5_400_000), ("250ms", 250)])
def test_duration_is_read(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "5", "h", "5 parsecs", "-5s"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no duration"):
        duration_ms(text)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3))
def test_json_of_any_object_is_read_or_refused(entries: dict[str, str]) -> None:
    try:
        record_of_line(json.dumps(entries).encode())
    except EncodeError:
        assert "value" not in entries or len(entries) > 1


def test_format_keeps_bytes_that_are_no_utf8() -> None:
    record = Record(7, 0, b"k", b"v", (), topic="t", partition=0)
    assert compile_format("\udcff%k\udcfe")(record) == b"\xffk\xfe"
