"""Builds instances of a message for tests of codecs, brokers and proxies.

The instances of a version together set all its fields: to defaults, nulls, bounds and long values.
They are deterministic, need no other package, and can be encoded at the version. They are built
from the definitions, so tests need no change to cover a field that a new release adds.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, TypeVar

from ..messages.base import Message
from ..schema.layout import LayoutField, StructLayout, WireType, layout
from ..wire.limits import MAX_TAG
from ..wire.tags import RawTaggedField
from ..wire.uuid import ZERO_UUID, Uuid

__all__ = [
    "INTEGER_BOUNDS",
    "Fill",
    "InstanceBuilder",
    "instance",
    "instances",
    "null_depths",
    "random_instances",
]

M = TypeVar("M", bound=Message)


class Fill(Enum):
    """The values in the fields of an instance.

    - LEAST: all fields have their defaults, except if the default is null and the version does not
      allow null.
    - EMPTY: zeroes, and empty values instead of null.
    - FULL: no field has its default, and most fields have different values. Each array has two
      elements. In flexible versions each struct has an unknown tagged field.
    - LOW: the smallest numbers. Arrays of structs have a second element, which is EMPTY.
    - HIGH: the largest integers. Lengths are below and above the limit of a one-byte varint.
    - LONG: lengths are below and above the limit of a two-byte varint. `instances` leaves LONG out,
      because such an instance may have a megabyte.
    """

    LEAST = "least"
    EMPTY = "empty"
    FULL = "full"
    LOW = "low"
    HIGH = "high"
    LONG = "long"


#: The smallest and the largest value of each integer type.
INTEGER_BOUNDS: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}

#: The lowest tag of unknown fields, far above the tags in Kafka's definitions.
_UNKNOWN_TAG: Final = 5000


def instances(message: type[M], version: int, *, unknown_tags: bool = True) -> list[M]:
    """Returns instances of `message` that together test all fields of `version`.

    There is one instance for each `Fill` except LONG. For each depth of nesting that has nullable
    fields, there is one more instance, in which those fields are null. In flexible versions some
    instances have unknown tagged fields, unless `unknown_tags` is False. Raises ValueError for a
    version that the message lacks.
    """
    shape = layout(message._definition(), version)
    built: list[M] = [
        InstanceBuilder(message, fill, unknown_tags=unknown_tags).struct(shape, message, 0)
        for fill in Fill
        if fill is not Fill.LONG
    ]
    for depth in null_depths(shape):
        builder = InstanceBuilder(message, Fill.FULL, unknown_tags=unknown_tags, null_depth=depth)
        built.append(builder.struct(shape, message, 0))
    return built


def instance(
    message: type[M], version: int, fill: Fill = Fill.FULL, *, unknown_tags: bool = True
) -> M:
    """Returns an instance of `message` with the values of `fill`.

    Raises ValueError for a version that the message lacks.
    """
    shape = layout(message._definition(), version)
    made: M = InstanceBuilder(message, fill, unknown_tags=unknown_tags).struct(shape, message, 0)
    return made


def null_depths(shape: StructLayout) -> list[int]:
    """Returns the depths of nesting at which a field is nullable.

    The message itself has depth 0.
    """
    found: set[int] = set()

    def walk(struct: StructLayout, depth: int) -> None:
        for field in struct.all_fields():
            if field.type.nullable:
                found.add(depth)
            inner = field.type.element or field.type
            if inner.struct is not None:
                walk(inner.struct, depth + 1)

    walk(shape, 0)
    return sorted(found)


class InstanceBuilder:
    """Builds instances with the values that `fill` describes.

    Nullable fields are null at nesting depth `null_depth`.
    """

    def __init__(
        self,
        message: type[Message],
        fill: Fill,
        *,
        unknown_tags: bool,
        null_depth: int | None = None,
    ) -> None:
        self.classes = message._classes()
        self.fill = fill
        self.unknown_tags = unknown_tags
        self.null_depth = null_depth
        self.serial = 0

    def struct(self, shape: StructLayout, cls: type[Any], depth: int) -> Any:
        values = {}
        for field in shape.all_fields():
            # The default may be null although this version does not allow null.
            has_default = field.default is not None or field.type.nullable
            if not (has_default and self.leaves_default()):
                values[field.attribute] = self.field(field, depth)
        made = cls(**values)
        if shape.flexible and self.unknown_tags:
            made.unknown_tagged_fields = self.unknown()
        return made

    def leaves_default(self) -> bool:
        """Returns True if the next field keeps its default.

        A `_RandomBuilder` decides this by chance.
        """
        return self.fill is Fill.LEAST

    def field(self, field: LayoutField, depth: int) -> Any:
        if field.type.nullable and depth == self.null_depth:
            return None
        made = self.value(field.type, depth)
        if self.fill is Fill.FULL and made == field.default:
            made = self.value(field.type, depth)
        return made

    def value(self, kind: WireType, depth: int) -> Any:
        self.serial += 1
        match kind.kind:
            case "struct":
                assert kind.struct is not None
                return self.struct(kind.struct, self.classes[kind.struct.class_name], depth + 1)
            case "array":
                assert kind.element is not None
                return self.elements(kind.element, depth)
            case "bool":
                return self.fill is Fill.HIGH or (self.fill is Fill.FULL and self.serial % 2 == 0)
            case "float64":
                return self.decimal()
            case "string":
                return self.text()
            case "uuid":
                return self.uuid()
            case "bytes" | "records":
                return self.text().encode()
            case number:
                return self.number(number)

    def elements(self, element: WireType, depth: int) -> list[Any]:
        match self.fill:
            case Fill.FULL:
                return [self.value(element, depth) for _ in range(2)]
            case Fill.HIGH:
                count = 1 if element.kind == "struct" else 126 + self.serial % 3
                return [self.value(element, depth) for _ in range(count)]
            case Fill.LONG if element.kind == "struct":
                return [self.value(element, depth)]
            case Fill.LONG:
                count = self.long_length()
                self.fill = Fill.EMPTY
                made = [self.value(element, depth) for _ in range(count)]
                self.fill = Fill.LONG
                return made
            case Fill.LOW if element.kind == "struct":
                lowest = self.value(element, depth)
                self.fill = Fill.EMPTY
                other = self.value(element, depth)
                self.fill = Fill.LOW
                return [lowest, other]
            case _:
                return []

    def number(self, kind: str) -> int:
        low, high = INTEGER_BOUNDS[kind]
        match self.fill:
            case Fill.EMPTY:
                return 0
            case Fill.LOW:
                return low
            case Fill.HIGH:
                return high
            case _:
                return 1 + self.serial % high

    def decimal(self) -> float:
        match self.fill:
            case Fill.EMPTY:
                return 0.0
            case Fill.LOW:
                return -1.7976931348623157e308
            case Fill.HIGH:
                return 5e-324
            case _:
                return self.serial + 0.25

    def text(self) -> str:
        match self.fill:
            case Fill.EMPTY | Fill.LOW:
                return ""
            case Fill.HIGH:
                return "é" * 63 + "x" * (self.serial % 3)  # 126 to 128 bytes
            case Fill.LONG:
                return "x" * self.long_length()
            case _:
                return f"text-{self.serial}"

    def long_length(self) -> int:
        """Returns a length from 16,382 to 16,384; a compact length is encoded as one more."""
        self.serial += 1
        return 16382 + self.serial % 3

    def uuid(self) -> Uuid:
        match self.fill:
            case Fill.EMPTY | Fill.LOW:
                return ZERO_UUID
            case Fill.HIGH:
                return Uuid(b"\xff" * 16)
            case _:
                return Uuid(self.serial.to_bytes(16, "big"))

    def unknown(self) -> list[RawTaggedField]:
        self.serial += 1
        match self.fill:
            case Fill.FULL:
                return [RawTaggedField(_UNKNOWN_TAG, b"unknown-%d" % self.serial)]
            case Fill.HIGH:
                first = RawTaggedField(_UNKNOWN_TAG, b"")
                return [first, RawTaggedField(MAX_TAG, b"\x80" * 130)]
            case Fill.LONG:
                return [RawTaggedField(_UNKNOWN_TAG, b"\x80" * self.long_length())]
            case _:
                return []


#: Characters with one to four bytes in UTF-8, and characters that JSON escapes.
_CHARACTERS: Final = 'abcxyzABC012-_. éß日本\U0001f600\0\n"\\/\x7f\uffff'

#: Lengths below and above the limits of one byte, signed varints and unsigned varints.
_TELLING_LENGTHS: Final = (63, 64, 126, 127, 128, 255, 256)
_LONG_LENGTHS: Final = (16382, 16383, 16384)

#: Tags of unknown fields, which encode to one to five bytes.
_UNKNOWN_TAGS: Final = (100, 127, 128, 5000, 16383, 16384, 2**21, 2**28, MAX_TAG)

_DECIMALS: Final = (0.0, -0.0, 1.0, -1.5, 0.1, 1e16, 1e-7, 2.0**53 + 2, 5e-324, -1.5e308)


def random_instances(
    message: type[M], version: int, *, seed: int = 0, unknown_tags: bool = True
) -> Iterator[M]:
    """Yields an endless sequence of random instances of `message`, the same for the same `seed`.

    Nulls, defaults, bounds, empty collections, and lengths at which a varint gets longer are
    likely. Floats are finite. Raises ValueError for a version that the message lacks.
    """
    shape = layout(message._definition(), version)
    builder = _RandomBuilder(message, f"{message.__name__} {version} {seed}", unknown_tags)
    while True:
        made: M = builder.struct(shape, message, 0)
        yield made


class _RandomBuilder(InstanceBuilder):
    """Builds instances with random values from a seed."""

    def __init__(self, message: type[Message], seed: str, unknown_tags: bool) -> None:
        super().__init__(message, Fill.FULL, unknown_tags=unknown_tags)
        self.source = random.Random(seed)  # noqa: S311 - values for tests, not secrets

    def chance(self, share: float) -> bool:
        return self.source.random() < share

    def leaves_default(self) -> bool:
        return self.chance(0.15)

    def field(self, field: LayoutField, depth: int) -> Any:
        if field.type.nullable and self.chance(0.2):
            return None
        return self.value(field.type, depth)

    def value(self, kind: WireType, depth: int) -> Any:
        if kind.kind == "bool":
            return self.chance(0.5)
        if kind.kind in ("bytes", "records"):
            return self.source.randbytes(self.length())
        return super().value(kind, depth)

    def elements(self, element: WireType, depth: int) -> list[Any]:
        if element.kind == "struct" or not self.chance(0.05):
            count = self.source.choice((0, 1, 1, 2, 3) if depth < 2 else (0, 1, 2))
        else:
            count = self.source.choice(_TELLING_LENGTHS)
        return [self.value(element, depth) for _ in range(count)]

    def length(self) -> int:
        if self.chance(0.95):
            return self.source.randrange(12)
        return self.source.choice(_LONG_LENGTHS if self.chance(0.05) else _TELLING_LENGTHS)

    def number(self, kind: str) -> int:
        low, high = INTEGER_BOUNDS[kind]
        if self.chance(0.4):
            return self.source.choice((low, low + 1, max(low, -1), 0, 1, 127, high - 1, high))
        drawn = self.source.getrandbits(self.source.randrange(1, high.bit_length() + 1))
        return -drawn if low < 0 and self.chance(0.3) else drawn

    def decimal(self) -> float:
        if self.chance(0.5):
            return self.source.choice(_DECIMALS)
        bits = self.source.getrandbits(64) & ~(1 << 62)  # excludes exponents of NaN and infinity
        (drawn,) = struct.unpack(">d", bits.to_bytes(8, "big"))
        return float(drawn)

    def text(self) -> str:
        length = self.length()
        if length > 12:
            return "x" * length
        return "".join(self.source.choices(_CHARACTERS, k=length))

    def uuid(self) -> Uuid:
        return Uuid(self.source.randbytes(16)) if self.chance(0.8) else ZERO_UUID

    def unknown(self) -> list[RawTaggedField]:
        if not self.chance(0.3):
            return []
        tags = sorted(self.source.sample(_UNKNOWN_TAGS, self.source.randint(1, 3)))
        return [RawTaggedField(tag, self.source.randbytes(self.length())) for tag in tags]
