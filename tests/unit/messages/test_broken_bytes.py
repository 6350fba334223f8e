"""Tests broken bytes of every message: `decode` and `explain_decode` refuse the same bytes.

`decode` only detects an error; `explain_decode` finds the error's position and reason. If the two
functions disagreed, an error would lack its position, or invalid bytes would be accepted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from enum import IntEnum

import pytest

from kproto.messages.base import Message
from kproto.schema.explain import explain_decode
from kproto.testing.instances import Fill, instance, instances
from kproto.wire.errors import DecodeError

from .catalogue import SOME_EVERYDAY, class_of

#: Bytes that lengths, counts, tags and null marks often have.
TELLING_BYTES = (0x00, 0x01, 0x7F, 0x80, 0xFF)


def decoded(cls: type[Message], version: int, data: bytes) -> Message | None:
    """Returns the message, or None if `decode` refuses the bytes; checks the error."""
    spec = cls._definition()
    fault: DecodeError | None = None
    message: Message | None = None
    try:
        message = cls.decode(data, version)
    except DecodeError as error:
        fault = error
    if fault is None:
        assert explain_decode(spec, version, data) is None, data.hex()
    else:
        assert (fault.message, fault.version) == (spec.name, version)
        assert fault.offset is not None, f"{fault} for {data.hex()}"
        assert 0 <= fault.offset <= len(data)
    return message


def truncations(data: bytes, source: random.Random) -> Iterator[bytes]:
    """Yields all prefixes of short data; of long data, a sample and the prefixes near both ends."""
    cuts = set(range(len(data)))
    if len(data) > 32:
        cuts = {*range(8), *range(len(data) - 8, len(data)), *source.sample(range(len(data)), 8)}
    for cut in sorted(cuts):
        yield data[:cut]


def mutations(data: bytes, source: random.Random, count: int) -> Iterator[bytes]:
    """Yields the data with one to three bytes changed, removed or inserted."""
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(source.randint(1, 3)):
            at = source.randrange(len(changed) + 1)
            byte = source.choice((*TELLING_BYTES, source.randrange(256)))
            match source.randrange(4):
                case 0:
                    changed.insert(at, byte)
                case 1:
                    del changed[at : at + 1]
                case _:
                    changed[at : at + 1] = bytes([byte])
        yield bytes(changed)


@pytest.mark.parametrize("name", SOME_EVERYDAY)
def test_prefixes_of_a_message_are_refused(name: str) -> None:
    cls = class_of(name)
    source = random.Random(name)
    for version in cls.VALID_VERSIONS:
        data = instance(cls, version, Fill.FULL).encode(version)
        for cut in truncations(data, source):
            assert decoded(cls, version, cut) is None, f"{name} v{version}: {cut.hex()}"


@pytest.mark.parametrize("name", SOME_EVERYDAY)
def test_messages_of_mutated_bytes_round_trip(name: str) -> None:
    cls = class_of(name)
    source = random.Random(name)
    for version in cls.VALID_VERSIONS:
        for built in instances(cls, version):
            data = built.encode(version)
            for changed in mutations(data, source, 4):
                message = decoded(cls, version, changed)
                if message is not None:
                    written = message.encode(version)
                    # Bytes are compared because a mutated float may be NaN.
                    assert cls.decode(written, version).encode(version) == written


def test_trailing_bytes_are_an_error_with_their_position() -> None:
    cls = class_of("HeartbeatRequest")
    data = instance(cls, 4).encode(4)
    with pytest.raises(DecodeError, match="3 bytes follow the end") as caught:
        cls.decode(data + b"abc", 4)
    assert caught.value.offset == len(data)


@pytest.mark.parametrize("version", [-1, 5, 32767, pytest.param(10**5000, id="long"), None, "4"])
def test_an_invalid_version_is_an_error(version: int) -> None:
    cls = class_of("HeartbeatRequest")
    with pytest.raises(DecodeError, match=r"HeartbeatRequest: version .* is not one of 0 to 4"):
        cls.decode(b"", version)


@pytest.mark.parametrize("data", [None, 5, "text", [1, 2], 10**15])
def test_data_other_than_bytes_is_an_error(data: bytes) -> None:
    with pytest.raises(DecodeError, match="HeartbeatRequest v4, at byte 0: bytes are wanted"):
        class_of("HeartbeatRequest").decode(data, 4)


def test_a_released_buffer_is_an_error() -> None:
    view = memoryview(b"")
    view.release()
    with pytest.raises(
        DecodeError, match=r"at byte 0: bytes are wanted, not memoryview .*released"
    ):
        class_of("HeartbeatRequest").decode(view, 4)


def test_any_buffer_is_read() -> None:
    cls = class_of("HeartbeatRequest")
    built = instance(cls, 4)
    data = built.encode(4)
    assert cls.decode(bytearray(data), 4) == built
    assert cls.decode(memoryview(data), 4) == built
    message, end = cls.decode_from(memoryview(b"x" + data + b"y"), 1, 4)
    assert (message, end) == (built, 1 + len(data))


@pytest.mark.parametrize("offset", [-1, -100, 1000])
def test_an_offset_outside_the_data_is_an_error(offset: int) -> None:
    cls = class_of("HeartbeatRequest")
    data = instance(cls, 4).encode(4)
    with pytest.raises(DecodeError, match=f"offset {offset} is outside"):
        cls.decode_from(data, offset, 4)
    with pytest.raises(DecodeError, match="offset of such length is outside"):
        cls.decode_from(data, 10**5000, 4)


@pytest.mark.parametrize("offset", [0.5, 0.0, "1", None, b"", [0]])
@pytest.mark.parametrize(("name", "version"), [("HeartbeatRequest", 4), ("ListGroupsRequest", 0)])
def test_an_offset_other_than_an_integer_is_an_error(name: str, version: int, offset: int) -> None:
    with pytest.raises(DecodeError) as caught:
        class_of(name).decode_from(b"abc", offset, version)
    assert str(caught.value) == (
        f"{name} v{version}: an offset in bytes is wanted, a whole number, "
        f"not {type(offset).__name__}"
    )


def test_an_offset_may_have_any_integer_type() -> None:
    class Offset(IntEnum):
        BODY = 1

    class Index:
        def __index__(self) -> int:
            return 1

    cls = class_of("HeartbeatRequest")
    built = instance(cls, 4)
    data = b"x" + built.encode(4)
    for offset in (Offset.BODY, Index(), True):
        assert cls.decode_from(data, offset, 4) == (built, len(data))  # type: ignore[arg-type]
