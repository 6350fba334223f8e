"""Walks the bytes of a message by its layout and finds the first thing that is wrong with them.

It owns what each type is on the wire, and the words for what can be wrong with it. It builds no
value: what it keeps is a function for each field of the layout, made once and called for each time
that the field stands in the bytes, so that a walk takes no longer than reading and no memory.
Knows neither messages nor versions, and does not ask what the bytes mean.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeAlias

from ..wire.limits import (
    MAX_ARRAY_ELEMENTS,
    MAX_LENGTH,
    MAX_STRING_BYTES,
    MAX_TAG,
    MAX_TAGGED_FIELDS,
)
from .layout import FORMATS, StructLayout, WireType
from .versions import Versions

__all__ = ["SIZES", "BytesFault", "versions_in_words", "walk"]

#: The width of each type of fixed width, in bytes.
SIZES: Final = {kind: struct.calcsize(">" + letter) for kind, letter in FORMATS.items()}

#: Lengths that are no varints, by their width.
_LENGTHS: Final = {2: struct.Struct(">h"), 4: struct.Struct(">i")}

#: Goes over one value: from the position where it begins to the one behind it.
_Step: TypeAlias = Callable[[int], int]


class BytesFault(Exception):  # noqa: N818 - a finding, which `explain` makes an error of
    """What is wrong, and where: `offset` in the data, `path` as errors write it.

    The path is put together on the way up, so that it costs nothing where nothing is wrong.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = ""
        self.offset = offset

    def inside(self, name: str) -> None:
        """The fault is one of something inside the field, or the element, of that name."""
        dot = "." if name and self.path and not self.path.startswith("[") else ""
        self.path = f"{name}{dot}{self.path}"


class _NullFault(BytesFault):
    """Null where the version does not allow it."""

    def __init__(self, offset: int) -> None:
        super().__init__("null", offset)

    def inside(self, name: str) -> None:
        super().inside(name)
        self.reason = f"null, which {self.path} may not be in this version"


def walk(shape: StructLayout, data: bytes, pos: int) -> int:
    """The position behind the message that begins at `pos`. Raises BytesFault."""
    return _Walker(data).struct(shape)(pos)


def versions_in_words(versions: Versions) -> str:
    """`version 3`, `versions 3-5` or `versions 3+`."""
    return f"version{'' if len(versions) == 1 else 's'} {versions}"


def _fixed_width(kind: WireType) -> int | None:
    """How many bytes each value of the type takes; None where that varies."""
    if kind.struct is None or kind.nullable or kind.kind != "struct":
        return SIZES.get(kind.kind)
    if kind.struct.flexible:
        return None
    widths = [_fixed_width(field.type) for field in kind.struct.fields]
    return None if None in widths else sum(width or 0 for width in widths)


class _Walker:
    """Makes the steps over one buffer."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def value(self, kind: WireType) -> _Step:
        match kind.kind:
            case "struct":
                assert kind.struct is not None
                inner = self.struct(kind.struct)
                return self.nullable_struct(inner, compact=kind.compact) if kind.nullable else inner
            case "array":
                return self.array(kind)
            case "string":
                return self.string(kind)
            case "bytes" | "records":
                return self.octets(kind)
            case fixed:
                return self.run([("", SIZES[fixed])])

    def struct(self, shape: StructLayout) -> _Step:
        """The fields in their places, neighbours of fixed width in one step, and the tags."""
        steps: list[tuple[str, _Step]] = []
        run: list[tuple[str, int]] = []
        for field in shape.fields:
            width = SIZES.get(field.type.kind)
            if width is not None:
                run.append((field.attribute, width))
                continue
            if run:
                steps.append(("", self.run(run)))
                run = []
            steps.append((field.attribute, self.value(field.type)))
        if run:
            steps.append(("", self.run(run)))
        tags = self.tags(shape) if shape.flexible else None
        if not steps and tags is not None:
            return tags

        def go(pos: int) -> int:
            name = ""
            try:
                for name, step in steps:  # noqa: B007 - the name of the one that finds the fault
                    pos = step(pos)
            except BytesFault as fault:
                fault.inside(name)
                raise
            return pos if tags is None else tags(pos)

        return go

    def run(self, parts: Sequence[tuple[str, int]]) -> _Step:
        """Neighbouring values of fixed width, each with its name."""
        size, total = self.size, sum(width for _, width in parts)

        def go(pos: int) -> int:
            end = pos + total
            if end <= size:
                return end
            for name, width in parts:
                if pos + width > size:
                    fault = self.short(pos, width)
                    fault.inside(name)
                    raise fault
                pos += width
            return pos

        return go

    def nullable_struct(self, inner: _Step, *, compact: bool) -> _Step:
        def go(pos: int) -> int:
            if compact:
                mark, pos = self.uvarint(pos)
                return inner(pos) if 0 < mark <= MAX_LENGTH else pos
            if pos >= self.size:
                raise self.short(pos, 1)
            return pos + 1 if self.data[pos] > 127 else inner(pos + 1)

        return go

    def array(self, kind: WireType) -> _Step:
        assert kind.element is not None
        data, size, compact = self.data, self.size, kind.compact
        length = self.length(kind, 4)
        step, width = self.value(kind.element), _fixed_width(kind.element)
        plain = self.plain_width(kind.element)

        def go(pos: int) -> int:
            start = pos
            if compact and pos < size and 0 < data[pos] < 128:
                count, pos = data[pos] - 1, pos + 1
            else:
                count, pos = length(pos)
            if count <= 0:  # none, or null
                return pos
            self.check_count(count, start, pos)
            index = 0
            try:
                if width is not None:
                    if pos + count * width <= size:
                        return pos + count * width
                    index = (size - pos) // width
                    step(pos + index * width)
                if plain is None:
                    for index in range(count):  # noqa: B007 - of the one that finds the fault
                        pos = step(pos)
                else:
                    for index in range(count):  # noqa: B007 - the same
                        end = pos + plain
                        pos = end + 1 if end < size and not data[end] else step(pos)
            except BytesFault as fault:
                fault.inside(f"[{index}]")
                raise
            return pos

        return go

    @staticmethod
    def plain_width(kind: WireType) -> int | None:
        """The width of a flexible struct of fixed width in front of its tags, of any other None."""
        shape = kind.struct
        if shape is None or not shape.flexible or kind.nullable:
            return None
        widths = [_fixed_width(field.type) for field in shape.fields]
        return None if None in widths else sum(width or 0 for width in widths)

    def check_count(self, count: int, start: int, pos: int) -> None:
        left = self.size - pos
        if count > left:
            raise BytesFault(f"{count} elements are announced and {left} bytes are left", start)
        if count > MAX_ARRAY_ELEMENTS:
            reason = f"{count} elements are announced; at most {MAX_ARRAY_ELEMENTS} are read"
            raise BytesFault(reason, start)

    def string(self, kind: WireType) -> _Step:
        data, size, compact = self.data, self.size, kind.compact
        length = self.length(kind, 2)

        def go(pos: int) -> int:
            start = pos
            if compact and pos < size and 0 < data[pos] < 128:
                count, pos = data[pos] - 1, pos + 1
            else:
                count, pos = length(pos)
            if count <= 0:
                return pos
            end = pos + count
            if count > MAX_STRING_BYTES or end > size:
                if count > MAX_STRING_BYTES:
                    reason = f"a string of {count} bytes; at most {MAX_STRING_BYTES} are allowed"
                    raise BytesFault(reason, start)
                raise self.short(pos, count)
            try:
                data[pos:end].decode()
            except UnicodeDecodeError as error:
                reason = f"a string that is not UTF-8 ({error.reason})"
                raise BytesFault(reason, pos + error.start) from None
            return end

        return go

    def octets(self, kind: WireType) -> _Step:
        length, size = self.length(kind, 4), self.size

        def go(pos: int) -> int:
            count, pos = length(pos)
            if count <= 0:
                return pos
            if pos + count > size:
                raise self.short(pos, count)
            return pos + count

        return go

    def length(self, kind: WireType, width: int) -> Callable[[int], tuple[int, int]]:
        """A length in either form, -1 for null where that is allowed, and the position behind."""
        data, size, compact, nullable = self.data, self.size, kind.compact, kind.nullable
        unpack = _LENGTHS[width].unpack_from

        def go(pos: int) -> tuple[int, int]:
            start = pos
            if compact:
                count, pos = self.uvarint(pos)
                count -= 1
            else:
                pos += width
                if pos > size:
                    raise self.short(start, width)
                (count,) = unpack(data, start)
            if count < 0 and (count < -1 or not nullable):
                raise BytesFault(f"a length of {count}", start) if count < -1 else _NullFault(start)
            return count, pos

        return go

    def uvarint(self, pos: int) -> tuple[int, int]:
        value = 0
        for index in range(5):
            at = pos + index
            if at >= self.size:
                raise self.short(at, 1)
            byte = self.data[at]
            value |= (byte & 127) << 7 * index
            if byte < 128:
                return value & 0xFFFFFFFF, at + 1
        raise BytesFault("an unsigned varint of more than 5 bytes", pos)

    def short(self, pos: int, size: int) -> BytesFault:
        left = self.size - pos
        needed = "1 byte is" if size == 1 else f"{size} bytes are"
        rest = "1 is" if left == 1 else f"{left} are"
        return BytesFault(f"{needed} needed and {rest} left", pos)

    def tags(self, shape: StructLayout) -> _Step:
        """The tagged fields; a fault of their numbers and sizes is one of the struct itself."""
        data, size = self.data, self.size
        known = {field.tag: (field.attribute, self.value(field.type)) for field in shape.tagged}
        elsewhere = shape.tags_of_other_versions()

        def go(pos: int) -> int:
            if pos < size and not data[pos]:
                return pos + 1
            count, pos = self.count_of_tags(pos)
            previous = -1
            for _ in range(count):
                start = pos
                tag, pos = self.part_of_tag(pos, "the number of a tag")
                if tag <= previous:
                    raise BytesFault(f"tag {tag} comes after tag {previous}", start)
                if tag > MAX_TAG:
                    reason = f"tag {tag}; the highest that is read is {MAX_TAG}"
                    raise BytesFault(reason, start)
                if tag in elsewhere:
                    reason = f"tag {tag} is a field of {versions_in_words(elsewhere[tag])} only"
                    raise BytesFault(reason, start)
                previous = tag
                pos = self.one_tag(tag, pos, known.get(tag))
            return pos

        return go

    def count_of_tags(self, pos: int) -> tuple[int, int]:
        count, end = self.part_of_tag(pos, "the number of tagged fields")
        if count > MAX_TAGGED_FIELDS:
            reason = f"{count} tagged fields are announced; at most {MAX_TAGGED_FIELDS} are read"
            raise BytesFault(reason, pos)
        return count, end

    def part_of_tag(self, pos: int, what: str) -> tuple[int, int]:
        """A number of what has no name of its own, so that a fault says what it is one of."""
        if pos < self.size and self.data[pos] < 128:
            return self.data[pos], pos + 1
        try:
            return self.uvarint(pos)
        except BytesFault as fault:
            _of(what, fault)

    def one_tag(self, tag: int, pos: int, known: tuple[str, _Step] | None) -> int:
        try:
            length, start = self.uvarint(pos) if self.long(pos) else (self.data[pos], pos + 1)
            end = start + length
            if end > self.size:
                raise self.short(start, length)
        except BytesFault as fault:
            _of(f"tag {tag}", fault)
        if known is None:
            return end
        name, step = known
        try:
            stopped = step(start)
            if stopped != end:
                reason = f"tag {tag} announces {length} bytes and holds {stopped - start}"
                raise BytesFault(reason, start)
        except BytesFault as fault:
            fault.inside(name)
            raise
        return end

    def long(self, pos: int) -> bool:
        """Whether a varint there takes more than a byte, or is not there."""
        return pos >= self.size or self.data[pos] > 127


def _of(what: str, fault: BytesFault) -> NoReturn:
    """Say of a fault what it is one of, where the path does not."""
    raise BytesFault(f"{what}: {fault.reason}", fault.offset) from None
