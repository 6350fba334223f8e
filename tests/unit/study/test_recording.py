"""Tests that a recording is read back as it was written, also if its end is cut off."""

from __future__ import annotations

import base64
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.study.conversations import Side
from kproto.study.recording import (
    DEFAULT_MAX_RECORDED_BYTES,
    Recorder,
    RecordingEntry,
    is_recording,
    read_recording,
)
from kproto.wire.errors import ConfigurationError, DecodeError

ENTRIES = st.one_of(
    st.builds(
        RecordingEntry,
        st.integers(0, 2**60),
        st.integers(1, 9),
        st.sampled_from(list(Side)),
        st.binary(min_size=1, max_size=50),
    ),
    st.builds(
        lambda us, c, text: RecordingEntry(us, c, client=text, target="b:1"),
        st.integers(0, 9),
        st.integers(1, 9),
        st.text(st.characters(codec="utf-8")),
    ),
    st.builds(
        lambda us, c, text: RecordingEntry(us, c, closed=text),
        st.integers(0, 9),
        st.integers(1, 9),
        st.text(st.characters(codec="utf-8")),
    ),
)


def recorded(entries: list[RecordingEntry], max_bytes: int = DEFAULT_MAX_RECORDED_BYTES) -> bytes:
    file = io.BytesIO()
    recorder = Recorder(file, max_bytes)
    for entry in entries:
        recorder.write(entry)
    return file.getvalue()


@given(st.lists(ENTRIES, max_size=8), st.data())
def test_it_gives_back_what_was_written_before_it_was_cut(
    entries: list[RecordingEntry], data: st.DataObject
) -> None:
    whole = recorded(entries)
    assert list(read_recording(io.BytesIO(whole))) == entries
    head = whole.index(b"\n") + 1
    cut = data.draw(st.integers(head, len(whole)))
    found = list(read_recording(io.BytesIO(whole[:cut])))
    assert found == entries[: whole[:cut].count(b"\n") - 1]


def test_much_in_one_entry_is_several_lines() -> None:
    large = bytes(range(256)) * 8_000
    found = list(read_recording(io.BytesIO(recorded([RecordingEntry(1, 2, Side.BROKER, large)]))))
    assert len(found) == 3
    assert b"".join(entry.data for entry in found) == large


@given(
    st.builds(
        RecordingEntry, st.integers(), st.integers(), st.sampled_from(list(Side)), st.binary()
    )
)
def test_bytes_are_a_line_of_json(entry: RecordingEntry) -> None:
    _, *lines = recorded([entry]).splitlines()
    assert len(lines) == bool(entry.data)
    for line in lines:
        assert entry.side is not None
        data = base64.b64encode(entry.data).decode()
        told = {"us": entry.time_us, "c": entry.connection, entry.side.value: data}
        assert line == json.dumps(told).encode()


def test_it_is_no_larger_than_its_bound() -> None:
    entries = [RecordingEntry(n, 1, Side.CLIENT, bytes(100)) for n in range(100)]
    for bound in (24, 1_000, 5_000):
        written = recorded(entries, bound)
        assert len(written) <= bound
        found = list(read_recording(io.BytesIO(written)))
        assert found == entries[: len(found)]
    with pytest.raises(ConfigurationError, match="max_bytes is 3"):
        Recorder(io.BytesIO(), 3)


def test_a_file_that_takes_less_ends_it() -> None:
    class Full(io.BytesIO):
        def write(self, data: object, /) -> int:
            return super().write(bytes(data)[:24])  # type: ignore[call-overload]

    recorder = Recorder(Full())
    with pytest.raises(OSError, match="No space left"):
        recorder.write(RecordingEntry(1, 1, closed="x" * 50))
    assert recorder.is_full


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[]", "line 2 of the recording: it is no JSON object"),
        (b"{", "it is no JSON object"),
        (b"[" * 100_000, "it is no JSON object"),
        (b'{"us": "1", "c": 1}', "`us` and `c` must be whole numbers"),
        (b'{"us": 1, "c": 1, "client": "%"}', "bytes must be text in base64"),
        (b'{"us": 1, "c": 1, "client": 5}', "bytes must be text in base64"),
        (b'{"us": 1, "c": 1, "close": 5}', "`close` must be text"),
        (b'\xff{"us": 1}', "it is no JSON object"),
    ],
)
def test_a_wrong_line_is_named(line: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        list(read_recording(io.BytesIO(recorded([]) + line + b"\n")))


@pytest.mark.parametrize("head", [b"", b"\xd4\xc3\xb2\xa1", b'{"kproto_recording": 2}\n'])
def test_other_files_are_refused(head: bytes) -> None:
    with pytest.raises(DecodeError, match="line 1 is not the first line of a recording"):
        list(read_recording(io.BytesIO(head)))
    assert is_recording(recorded([]))
    assert not is_recording(b"\xd4\xc3\xb2\xa1")
