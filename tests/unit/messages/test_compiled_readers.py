"""Tests that the readers for compiled code return what the messages' own `_read_fields` returns."""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from kproto_codegen.emit.kafka_messages import DATA_PATH

from kproto import messages
from kproto.messages.base import Message
from kproto.testing.instances import instances
from kproto.wire import number_reading
from kproto.wire.faults import READ_FAULTS

from .catalogue import class_of

FOLDER = Path(messages.__file__).parent / "readers"


def reader_of(cls: type[Message]) -> Any:
    name = cls.__module__.rpartition(".")[2]
    return import_module(f"kproto.messages.readers.{name}").read_fields


def outcome(read: Any, data: bytes, version: int) -> object:
    """Returns the message and the position after the message, or None if the bytes are refused."""
    try:
        message, end = read(data, 0, version)
    except READ_FAULTS:
        return None
    return (message, end) if end <= len(data) else None


def test_each_message_on_the_data_path_has_a_reader() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert modules == {messages.MODULES[name] for name in DATA_PATH}


@pytest.mark.parametrize("name", sorted(DATA_PATH))
def test_readers_read_equal_messages_and_refuse_equal_bytes(name: str) -> None:
    cls = class_of(name)
    reader = reader_of(cls)
    rng = random.Random(name)
    for version in cls.VALID_VERSIONS:
        for message in instances(cls, version):
            data = message.encode(version)

            def read(data: bytes, pos: int, version: int) -> Any:
                return reader(cls, data, pos, version)

            assert read(data, 0, version) == (message, len(data))
            shifted, end = read(b"before" + data, 6, version)
            assert (shifted, end) == (message, len(data) + 6)
            for _ in range(12):
                broken = bytearray(data[: rng.randint(0, len(data))])
                for _ in range(rng.randint(0, 2) if broken else 0):
                    broken[rng.randrange(len(broken))] = rng.choice((0, 1, 127, 128, 255))
                changed = bytes(broken)
                expected = outcome(cls._read_fields, changed, version)
                assert outcome(read, changed, version) == expected


@pytest.mark.parametrize(
    ("name", "size", "values"),
    [
        ("int8", 1, (-128, -1, 0, 127)),
        ("int16", 2, (-(2**15), -1, 0, 2**15 - 1)),
        ("uint16", 2, (0, 2**15, 2**16 - 1)),
        ("int32", 4, (-(2**31), -1, 0, 2**31 - 1)),
        ("uint32", 4, (0, 2**31, 2**32 - 1)),
        ("int64", 8, (-(2**63), -(2**32), -1, 0, 2**32, 2**63 - 1)),
    ],
)
def test_each_number_is_read_and_a_missing_byte_is_refused(
    name: str, size: int, values: tuple[int, ...]
) -> None:
    read = getattr(number_reading, f"read_{name}")
    for value in values:
        data = value.to_bytes(size, "big", signed=not name.startswith("u"))
        assert read(b"x" + data + b"y", 1) == value
        with pytest.raises(IndexError):
            read(data[:-1], 0)


def test_arrays_and_floats_are_read() -> None:
    data = b"\xff" * 4 + b"\0\0\0\x07"
    assert number_reading.read_int32s(data, 0, 2) == ([-1, 7], 8)
    assert number_reading.read_packed_int32s(data, 0, 2) == (data, 8)
    assert number_reading.read_packed_int32s(data, 0, 3) == (data, 12)
    assert number_reading.read_packed_int32s(data * 63, 0, 126) == (data * 63, 504)
    assert number_reading.read_packed_int32s(data * 64, 0, 127) == (([-1, 7] * 64)[:127], 508)
    with pytest.raises(IndexError):
        number_reading.read_int32s(data, 0, 3)
    assert number_reading.read_float64(b"\x3f\xf0" + b"\0" * 6, 0) == 1.0
    with pytest.raises(IndexError):
        number_reading.read_float64(b"\0" * 7, 0)
