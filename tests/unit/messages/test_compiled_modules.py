"""Tests that the functions for compiled code read and write as the messages' own methods do."""

from __future__ import annotations

import random
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from kproto_codegen.emit.kafka_messages import DATA_PATH

from kproto import messages
from kproto.messages.base import Message, decode_in_python, pieces_in_python
from kproto.testing.instances import instances
from kproto.wire import number_reading
from kproto.wire.c_functions import has_slots
from kproto.wire.errors import DecodeError, EncodeError
from kproto.wire.faults import READ_FAULTS

from .catalogue import class_of

FOLDER = Path(messages.__file__).parent / "compiled"


def module_of(cls: type[Message]) -> Any:
    name = cls.__module__.rpartition(".")[2]
    return import_module(f"kproto.messages.compiled.{name}")


def reader_of(cls: type[Message]) -> Any:
    return module_of(cls).read_fields


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


@pytest.mark.parametrize("name", sorted(DATA_PATH))
def test_writers_write_equal_bytes(name: str) -> None:
    cls = class_of(name)
    module = module_of(cls)
    sub = type(cls.__name__, (cls,), {})
    for version in cls.VALID_VERSIONS:
        for message in instances(cls, version):
            data = b"".join(pieces_in_python(message, version))
            assert module.encode(message, version) == data
            assert b"".join(module.encoded_pieces(message, version)) == data
            for kind in (cls, sub):
                decoded = module.decode(kind, data, version)
                assert type(decoded) is kind
                assert module.encode(decoded, version) == data


@pytest.mark.parametrize("name", sorted(DATA_PATH))
def test_faults_raise_the_errors_of_interpreted_code(name: str) -> None:
    cls = class_of(name)
    module = module_of(cls)
    version = cls.VALID_VERSIONS[-1]
    message = next(iter(instances(cls, version)))
    data = message.encode(version)
    for broken, wanted in ((data[:-1], version), (data + b"x", version), (data, 99), (data, "1")):
        with pytest.raises((DecodeError, TypeError)) as expected:
            decode_in_python(cls, broken, wanted)
        with pytest.raises(expected.type) as raised:
            module.decode(cls, broken, wanted)
        assert str(raised.value) == str(expected.value)
    for field in message._names():
        value = getattr(message, field)
        setattr(message, field, object())
        try:
            expected_pieces = pieces_in_python(message, version)
        except EncodeError as error:
            with pytest.raises(EncodeError, match=re.escape(str(error))):
                module.encode(message, version)
        else:  # the version lacks the field, and ignores it
            assert module.encode(message, version) == b"".join(expected_pieces)
        setattr(message, field, value)
    with pytest.raises(EncodeError, match="version 99 is not one of"):
        module.encode(message, 99)


@pytest.mark.parametrize("name", sorted(DATA_PATH))
def test_slots_have_the_places_that_the_modules_expect(name: str) -> None:
    assert all(map(has_slots, module_of(class_of(name)).CLASSES))


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


def test_floats_are_read() -> None:
    assert number_reading.read_float64(b"\x3f\xf0" + b"\0" * 6, 0) == 1.0
    with pytest.raises(IndexError):
        number_reading.read_float64(b"\0" * 7, 0)
