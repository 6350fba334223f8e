"""Tests that the codecs of text, whole numbers and UUIDs encode as Kafka's serializers do."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest

from kproto import Record
from kproto.codecs import Codec, DecodeContext, EncodeContext, IntCodec, StringCodec, UuidCodec
from tools.reference import KafkaJavaProgram
from tools.reference.pairs import RELEASES
from tools.reference.serializers import Kind, serialize

pytestmark = [pytest.mark.reference, pytest.mark.slow]

SEED = 7
CODECS: dict[Kind, Codec[Any]] = {
    "short": IntCodec(2),
    "int": IntCodec(4),
    "long": IntCodec(8),
    "uuid": UuidCodec(),
    "string": StringCodec(),
}


def cases(count: int) -> list[tuple[Kind, Any]]:
    chance = random.Random(SEED)
    found: list[tuple[Kind, Any]] = [("string", ""), ("uuid", UUID(int=0))]
    sizes: list[tuple[Kind, int]] = [("short", 16), ("int", 32), ("long", 64)]
    for kind, bits in sizes:
        least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        found += [(kind, each) for each in (least, -1, 0, 1, most)]
        found += [(kind, chance.randint(least, most)) for _ in range(count)]
    characters = [chr(each) for each in (0x20, 0x41, 0xE9, 0x7FF, 0x20AC, 0x1F600, 0x10FFFF)]
    for _ in range(count):
        found.append(("uuid", UUID(int=chance.getrandbits(128))))
        found.append(("string", "".join(chance.choices(characters, k=chance.randrange(20)))))
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_bytes_equal_those_of_kafkas_serializers(
    judges: dict[str, KafkaJavaProgram], release: str
) -> None:
    wanted = cases(500)
    read = DecodeContext(Record(), "value")
    for (kind, value), theirs in zip(wanted, serialize(judges[release], wanted), strict=True):
        codec = CODECS[kind]
        assert codec.encode(value, EncodeContext("t", "value")) == theirs, (kind, value)
        assert codec.decode(theirs, read) == value
