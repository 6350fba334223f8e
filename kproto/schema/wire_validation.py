"""Validates the bytes of a message by its layout, and finds the first fault in them.

`_Validator` builds a function, called a step, for each array and struct of the layout. A step runs
each time its array or struct occurs in the bytes. The steps use the readers of `wire.reading`, as
generated code does, but keep no values. They look for the reason of a fault only after a reader
failed. Thus validation takes about as long as decoding.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, NoReturn, TypeAlias

from ..wire import reading
from ..wire.faults import READ_FAULTS, WireFault
from ..wire.limits import (
    MAX_ARRAY_ELEMENTS,
    MAX_LENGTH,
    MAX_STRING_BYTES,
    MAX_TAG,
    MAX_TAGGED_FIELDS,
    MAX_VARINT_BYTES,
)
from .layout import FORMATS, StructLayout, WireType
from .versions import Versions

__all__ = ["SIZES", "BytesFault", "validate", "versions_in_words"]

#: The size in bytes of each type of fixed width.
SIZES: Final = {kind: struct.calcsize(">" + letter) for kind, letter in FORMATS.items()}

#: The formats of lengths that are not varints, by their width in bytes.
_LENGTHS: Final = {2: struct.Struct(">h"), 4: struct.Struct(">i")}

#: Reads the value at a position of the data; returns the value and the position after it.
_Reader: TypeAlias = Callable[[bytes, int], tuple[object, int]]

#: The readers by kind, compact and nullable. A reader raises one of READ_FAULTS for an invalid
#: value, except that it may return a position after the end of the data.
_READERS: Final[dict[tuple[str, bool, bool], _Reader]] = {
    ("string", False, False): reading.read_string,
    ("string", False, True): reading.read_nullable_string,
    ("string", True, False): reading.read_compact_string,
    ("string", True, True): reading.read_compact_nullable_string,
    **{
        (kind, *form): reader
        for kind in ("bytes", "records")
        for form, reader in (
            ((False, False), reading.read_bytes),
            ((False, True), reading.read_nullable_bytes),
            ((True, False), reading.read_compact_bytes),
            ((True, True), reading.read_compact_nullable_bytes),
        )
    },
}

#: Validates the value at a position; returns the position after it.
_Step: TypeAlias = Callable[[int], int]

#: Validates a number of elements from a position on; returns the position after them.
_Elements: TypeAlias = Callable[[int, int], int]

#: The attribute name and the type of a field.
_Named: TypeAlias = tuple[str, WireType]


class BytesFault(Exception):  # noqa: N818 - `explain` converts it to a DecodeError
    """A fault in the data: the reason, its `offset` in bytes, and the `path` of the field.

    Each validating function that the exception leaves prepends its field or index to the path. So
    validating valid bytes takes no time for paths.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = ""
        self.offset = offset

    def prepend(self, name: str) -> None:
        """Prepends `name`, a field or an index such as `[0]`, to the path."""
        dot = "." if name and self.path and not self.path.startswith("[") else ""
        self.path = f"{name}{dot}{self.path}"


class _NullFault(BytesFault):
    """A null value of a type that is not nullable."""

    def __init__(self, offset: int) -> None:
        super().__init__("null", offset)

    def prepend(self, name: str) -> None:
        super().prepend(name)
        self.reason = f"null, which {self.path} may not be in this version"


def validate(shape: StructLayout, data: bytes, pos: int) -> int:
    """Returns the position after the message at `pos`. Raises BytesFault for the first fault."""
    return _Validator(data).struct(shape)(pos)


def versions_in_words(versions: Versions) -> str:
    """Returns `version 3`, `versions 3-5` or `versions 3+`."""
    return f"version{'' if len(versions) == 1 else 's'} {versions}"


def _fixed_width(kind: WireType) -> int | None:
    """Returns the size in bytes that each value of the type has; None if the size varies."""
    if kind.struct is None or kind.nullable or kind.kind != "struct":
        return SIZES.get(kind.kind)
    if kind.struct.flexible:
        return None
    widths = [_fixed_width(field.type) for field in kind.struct.fields]
    return None if None in widths else sum(width or 0 for width in widths)


def _plain_width(kind: WireType) -> int | None:
    """Returns the size in bytes of a flexible struct without its tagged fields.

    Returns None if this size varies, or if `kind` is nullable or not a flexible struct.
    """
    shape = kind.struct
    if shape is None or not shape.flexible or kind.nullable:
        return None
    widths = [_fixed_width(field.type) for field in shape.fields]
    return None if None in widths else sum(width or 0 for width in widths)


class _FieldSpan(NamedTuple):
    """Names the fields of a `_Part`: the index of the first field, the name of the last field."""

    first: int
    name: str


#: A field that is not of fixed width, with the fields of fixed width before it. The items are: the
#: fields of the part; the width in bytes of the fields of fixed width; a reader (or None) and a
#: step for the last field; True if the last field is a struct that begins with a null marker. A
#: plain tuple unpacks fastest.
_Part: TypeAlias = tuple[_FieldSpan, int, _Reader | None, _Step, bool]


class _Validator:
    """Builds the functions that validate `data`, one for each array and struct of the layout."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def value(self, kind: WireType) -> _Step:
        """Builds the function that validates the value of a tagged field or an array element."""
        if kind.struct is None or (kind.nullable and not kind.compact):
            return self.array(kind) if kind.kind == "array" else self.fields_step([("", kind)])
        step = self.struct(kind.struct)
        return self.marked_struct(step) if kind.nullable else step

    def struct(self, shape: StructLayout) -> _Step:
        """Returns a function that validates all fields of a struct, with its tagged fields.

        The function gets the position of the struct, and returns the position after it.
        """
        fields_step = self.fields_step([(field.attribute, field.type) for field in shape.fields])
        if not shape.flexible:
            return fields_step
        data, size = self.data, self.size
        tags: _Step | None = None

        def run(pos: int) -> int:
            nonlocal tags
            pos = fields_step(pos)
            if pos < size and not data[pos]:
                return pos + 1
            if tags is None:  # built only if there are tagged fields
                tags = self.tags(shape)
            return tags(pos)

        return run

    def fields_step(self, fields: Sequence[_Named]) -> _Step:
        """Returns a function that validates the fields of a struct, except its tagged fields."""
        data, size = self.data, self.size
        parts, width, numbers_start = self.parts(fields)
        last = _FieldSpan(numbers_start, "")

        def run(pos: int) -> int:
            position = last
            try:
                for position, skipped, read, step, marked in parts:  # noqa: B007 - for the fault
                    at = pos + skipped
                    if read is not None:
                        _, end = read(data, at)
                        if end > size:
                            break
                        pos = end
                    elif at > size:
                        break
                    elif not marked:
                        pos = step(at)
                    else:
                        pos = at + 1 if data[at] > 127 else step(at + 1)
                else:
                    if pos + width <= size:
                        return pos + width
                    position = last
            except READ_FAULTS:
                pass
            except BytesFault as fault:
                fault.prepend(position.name)
                raise
            return self.validate_one_by_one(fields[position.first :], pos)

        def run_numbers(pos: int) -> int:
            return pos + width if pos + width <= size else self.validate_one_by_one(fields, pos)

        return run if parts else run_numbers

    def parts(self, fields: Sequence[_Named]) -> tuple[list[_Part], int, int]:
        """Divides the fields of a struct into parts.

        A part has fields of fixed width, and then one field without a fixed width. If the last
        fields have a fixed width, they belong to no part. For these fields, also returns the sum of
        their widths in bytes, and the index of the first field.
        """
        parts: list[_Part] = []
        first = width = 0
        for index, (name, kind) in enumerate(fields):
            if kind.kind in SIZES:
                width += SIZES[kind.kind]
                continue
            read = _READERS.get((kind.kind, kind.compact, kind.nullable))
            marked = kind.struct is not None and kind.nullable
            if read is not None:
                step: _Step = int  # a placeholder that is never called
            elif kind.struct is not None:
                step = self.struct(kind.struct)
            else:
                step = self.array(kind)
            parts.append((_FieldSpan(first, name), width, read, step, marked))
            first, width = index + 1, 0
        return parts, width, first

    def validate_one_by_one(self, fields: Sequence[_Named], pos: int) -> int:
        """Raises BytesFault, which names the first invalid field of `fields`.

        Call it after a check of all `fields` together has failed.
        """
        for name, kind in fields:
            try:
                if kind.kind in {"string", "bytes", "records"}:
                    pos = self.text_or_bytes(kind, pos)
                    continue
                width = SIZES.get(kind.kind, 1)  # 1 for the null marker of a struct
                if pos + width > self.size:
                    raise self.missing_bytes(pos, width)
                pos += width
            except BytesFault as fault:
                fault.prepend(name)
                raise
        return pos

    def text_or_bytes(self, kind: WireType, pos: int) -> int:
        start, is_text = pos, kind.kind == "string"
        count, pos = self.length(kind, 2 if is_text else 4)(pos)
        if count <= 0:
            return pos
        if is_text and count > MAX_STRING_BYTES:
            reason = f"a string of {count} bytes; at most {MAX_STRING_BYTES} are allowed"
            raise BytesFault(reason, start)
        end = pos + count
        if end > self.size:
            raise self.missing_bytes(pos, count)
        if is_text:
            try:
                self.data[pos:end].decode()
            except UnicodeDecodeError as error:
                reason = f"a string that is not UTF-8 ({error.reason})"
                raise BytesFault(reason, pos + error.start) from None
        return end

    def marked_struct(self, step: _Step) -> _Step:
        """Returns a function that validates a nullable struct in a tagged field.

        The field begins with a varint that tells whether the struct is null. The argument `step` is
        the function that validates the struct after the varint.
        """

        def run(pos: int) -> int:
            mark, pos = self.uvarint(pos)
            return step(pos) if 0 < mark <= MAX_LENGTH else pos

        return run

    def array(self, kind: WireType) -> _Step:
        assert kind.element is not None
        data, size = self.data, self.size
        length, element = self.length(kind, 4), kind.element
        elements: _Elements | None = None
        # If the first byte is from `least` to 127, it is the whole varint: the count plus 1.
        least = 128 if not kind.compact else 0 if kind.nullable else 1

        def run(pos: int) -> int:
            nonlocal elements
            start = pos
            if pos < size and least <= data[pos] < 128:
                count, pos = data[pos] - 1, pos + 1
            else:
                count, pos = length(pos)
            if count <= 0:  # empty, or null
                return pos
            if count > size - pos or count > MAX_ARRAY_ELEMENTS:
                raise self.count_fault(count, start, pos)
            if elements is None:  # built only if the array is not empty
                elements = self.elements(element)
            return elements(count, pos)

        return run

    def count_fault(self, count: int, start: int, pos: int) -> BytesFault:
        remaining = self.size - pos
        if count > remaining:
            return BytesFault(
                f"{count} elements are announced and {remaining} bytes are left", start
            )
        reason = f"{count} elements are announced; at most {MAX_ARRAY_ELEMENTS} are read"
        return BytesFault(reason, start)

    def elements(self, kind: WireType) -> _Elements:
        step, width = self.value(kind), _fixed_width(kind)
        if width is not None:
            return self.elements_of_fixed_width(width, step)
        reader = _READERS.get((kind.kind, kind.compact, kind.nullable))
        if reader is not None:
            return self.elements_by_reader(reader, step)
        plain = _plain_width(kind)
        if plain is not None:
            return self.elements_with_tags(plain, step)

        def run(count: int, pos: int) -> int:
            index = 0
            try:
                for index in range(count):  # noqa: B007 - the fault names the index
                    pos = step(pos)
            except BytesFault as fault:
                fault.prepend(f"[{index}]")
                raise
            return pos

        return run

    def elements_of_fixed_width(self, width: int, step: _Step) -> _Elements:
        size = self.size

        def run(count: int, pos: int) -> int:
            end = pos + count * width
            return (
                end
                if end <= size
                else self.validate_element(step, pos, (size - pos) // width, width)
            )

        return run

    def elements_by_reader(self, read: _Reader, step: _Step) -> _Elements:
        data, size = self.data, self.size

        def run(count: int, pos: int) -> int:
            index = 0
            try:
                for index in range(count):  # noqa: B007 - the fault names the index
                    _, end = read(data, pos)
                    if end > size:
                        break
                    pos = end
                else:
                    return pos
            except READ_FAULTS:
                pass
            return self.validate_element(step, pos, index)

        return run

    def elements_with_tags(self, width: int, step: _Step) -> _Elements:
        """Returns a function that validates array elements with tagged fields.

        The other fields of an element have `width` bytes. For an element that has tagged fields or
        is cut, the function calls `step`, which validates a single element. For any other element,
        it does not need `step`.
        """
        data, size = self.data, self.size

        def run(count: int, pos: int) -> int:
            for index in range(count):
                end = pos + width
                pos = (
                    end + 1
                    if end < size and not data[end]
                    else self.validate_element(step, pos, index)
                )
            return pos

        return run

    @staticmethod
    def validate_element(step: _Step, pos: int, index: int, width: int = 0) -> int:
        """Validates the element `index` of an array.

        The element begins at `pos` + `index` * `width`, or at `pos` if `width` is 0. Prepends
        `[index]` to the path of a fault.
        """
        try:
            return step(pos + index * width)
        except BytesFault as fault:
            fault.prepend(f"[{index}]")
            raise

    def length(self, kind: WireType, width: int) -> Callable[[int], tuple[int, int]]:
        """Returns a function that reads a length or count; the function returns -1 for null.

        It raises BytesFault for null if the type is not nullable.
        """
        data, size, uvarint = self.data, self.size, self.uvarint
        least = -1 if kind.nullable else 0
        unpack = _LENGTHS[width].unpack_from

        def run(pos: int) -> tuple[int, int]:
            end = pos + width
            if end > size:
                raise self.missing_bytes(pos, width)
            (count,) = unpack(data, pos)
            if count < least:
                raise BytesFault(f"a length of {count}", pos) if count < -1 else _NullFault(pos)
            return count, end

        def run_compact(pos: int) -> tuple[int, int]:
            count, end = uvarint(pos)
            if count <= least:
                raise _NullFault(pos)
            return count - 1, end

        return run_compact if kind.compact else run

    def uvarint(self, pos: int) -> tuple[int, int]:
        try:
            return reading.read_uvarint(self.data, pos)
        except IndexError:
            raise self.missing_bytes(self.size, 1) from None
        except WireFault:
            reason = f"an unsigned varint of more than {MAX_VARINT_BYTES} bytes"
            raise BytesFault(reason, pos) from None

    def missing_bytes(self, pos: int, size: int) -> BytesFault:
        remaining = self.size - pos
        needed = "1 byte is" if size == 1 else f"{size} bytes are"
        rest = "1 is" if remaining == 1 else f"{remaining} are"
        return BytesFault(f"{needed} needed and {rest} left", pos)

    def tags(self, shape: StructLayout) -> _Step:
        """Builds the function that validates the tagged fields of a struct.

        Faults in tag numbers and sizes get the path of the struct.
        """
        known = {field.tag: (field.attribute, self.value(field.type)) for field in shape.tagged}
        elsewhere = shape.tags_of_other_versions()

        def run(pos: int) -> int:
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

        return run

    def count_of_tags(self, pos: int) -> tuple[int, int]:
        count, end = self.part_of_tag(pos, "the number of tagged fields")
        if count > MAX_TAGGED_FIELDS:
            reason = f"{count} tagged fields are announced; at most {MAX_TAGGED_FIELDS} are read"
            raise BytesFault(reason, pos)
        return count, end

    def part_of_tag(self, pos: int, what: str) -> tuple[int, int]:
        """Reads a varint that belongs to no field; `what` is its name in a fault."""
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
                raise self.missing_bytes(start, length)
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
            fault.prepend(name)
            raise
        return end

    def long(self, pos: int) -> bool:
        """Returns True if the varint at `pos` is longer than one byte, or missing."""
        return pos >= self.size or self.data[pos] > 127


def _of(what: str, fault: BytesFault) -> NoReturn:
    """Raises `fault` with `what` before its reason.

    `what` names a tag or count, which the path of a field does not contain.
    """
    raise BytesFault(f"{what}: {fault.reason}", fault.offset) from None
