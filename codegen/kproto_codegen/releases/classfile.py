"""Reads a Java class file: the constants of an enum, and the public methods; needs no Java.

Parses the class file format (JVM specification, chapter 4): constant pool, superclass, fields,
methods and bootstrap methods. Then follows those instructions of the static initializer that create
the constants.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["ClassFile", "ClassFileError", "ConstructorReference", "EnumConstant"]


class ClassFileError(Exception):
    """Raised for bytes that are not a class file, and for an unreadable static initializer."""


@dataclass(frozen=True, slots=True)
class ConstructorReference:
    """A constructor reference, `SomeException::new`; `class_name` is `org/…/SomeException`."""

    class_name: str


#: An argument of an enum constructor: an int, a string or a constructor reference; None for others.
Argument: TypeAlias = int | str | ConstructorReference | None


@dataclass(frozen=True, slots=True)
class EnumConstant:
    """A constant of an enum: its name, and the arguments of its constructor."""

    name: str
    arguments: tuple[Argument, ...]


_MAGIC: Final = 0xCAFEBABE
_UTF8, _INTEGER, _LONG, _DOUBLE, _STRING, _METHOD_HANDLE = 1, 3, 5, 6, 8, 15
#: The size of a constant in bytes, without its tag, by tag. The size of Utf8 (1) varies.
_CONSTANT_SIZES: Final = {
    3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4,
    15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2,
}  # fmt: skip
_ACC_PUBLIC: Final = 0x0001
_ACC_ENUM: Final = 0x4000  # the flag of the fields that are the constants of an enum
_NEW_INVOKE_SPECIAL: Final = 8  # the kind of a method handle for a constructor


@dataclass(frozen=True, slots=True)
class _Member:
    """A field or a method of the class."""

    name: str
    flags: int
    attributes: dict[str, bytes]


class ClassFile:
    """A parsed class file; `superclass` is None for java.lang.Object.

    Raises ClassFileError if the bytes are not a class file.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        try:
            self._parse()
        except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
            raise ClassFileError(f"no readable class file: {error}") from error

    def _parse(self) -> None:
        if self._u4(0) != _MAGIC:
            raise ClassFileError("no class file: it does not begin with 0xCAFEBABE")
        position = self._read_constants(10, self._u2(8))
        self.name = self._class_name(self._u2(position + 2))
        parent = self._u2(position + 4)
        self.superclass = self._class_name(parent) if parent else None
        position += 8 + 2 * self._u2(position + 6)
        position, fields = self._read_members(position)
        self._enum_fields = [field.name for field in fields if field.flags & _ACC_ENUM]
        position, methods = self._read_members(position)
        self._methods = {method.name: method.attributes for method in methods}
        #: The names of the public methods, in the order of the class file, each once.
        self.public_methods = tuple(
            dict.fromkeys(each.name for each in methods if each.flags & _ACC_PUBLIC)
        )
        _, self._attributes = self._read_attributes(position)

    def _u1(self, at: int) -> int:
        return self._data[at]

    def _u2(self, at: int) -> int:
        return int(struct.unpack_from(">H", self._data, at)[0])

    def _u4(self, at: int) -> int:
        return int(struct.unpack_from(">I", self._data, at)[0])

    def _read_constants(self, position: int, count: int) -> int:
        """Stores the position of each constant; returns the end of the constant pool."""
        self._constants: dict[int, int] = {}
        index = 1
        while index < count:
            self._constants[index] = position
            tag = self._u1(position)
            size = 2 + self._u2(position + 1) if tag == _UTF8 else _CONSTANT_SIZES[tag]
            position += 1 + size
            index += 2 if tag in {_LONG, _DOUBLE} else 1
        return position

    def _read_members(self, position: int) -> tuple[int, list[_Member]]:
        """Reads the fields, or the methods, at `position`; returns (end position, members)."""
        members: list[_Member] = []
        count = self._u2(position)
        position += 2
        for _ in range(count):
            flags, name = self._u2(position), self._text(self._u2(position + 2))
            position, attributes = self._read_attributes(position + 6)
            members.append(_Member(name, flags, attributes))
        return position, members

    def _read_attributes(self, position: int) -> tuple[int, dict[str, bytes]]:
        attributes: dict[str, bytes] = {}
        count = self._u2(position)
        position += 2
        for _ in range(count):
            name, size = self._text(self._u2(position)), self._u4(position + 2)
            attributes[name] = self._data[position + 6 : position + 6 + size]
            position += 6 + size
        return position, attributes

    def _text(self, index: int) -> str:
        at = self._constants[index]
        return self._data[at + 3 : at + 3 + self._u2(at + 1)].decode("utf-8")

    def _class_name(self, index: int) -> str:
        return self._text(self._u2(self._constants[index] + 1))

    def _name_and_type(self, index: int) -> tuple[str, str]:
        at = self._constants[index]
        return self._text(self._u2(at + 1)), self._text(self._u2(at + 3))

    def _method(self, index: int) -> tuple[str, str, str]:
        """Returns class, name and descriptor of the method reference at `index`."""
        at = self._constants[index]
        return self._class_name(self._u2(at + 1)), *self._name_and_type(self._u2(at + 3))

    def _loaded(self, index: int) -> Argument:
        """Returns the int or string that the instruction `ldc` pushes for the constant at `index`.

        Returns None for a constant of another type.
        """
        at = self._constants[index]
        tag = self._u1(at)
        if tag == _INTEGER:
            return int(struct.unpack_from(">i", self._data, at + 1)[0])
        return self._text(self._u2(at + 1)) if tag == _STRING else None

    def _lambda(self, index: int) -> ConstructorReference | None:
        """Returns the constructor reference that an `invokedynamic` creates, or None."""
        table = self._attributes["BootstrapMethods"]
        reference = self._u2(self._constants[index] + 1)
        position = 2
        for _ in range(reference):
            position += 4 + 2 * struct.unpack_from(">H", table, position + 2)[0]
        (count,) = struct.unpack_from(">H", table, position + 2)
        for number in range(count):
            (argument,) = struct.unpack_from(">H", table, position + 4 + 2 * number)
            at = self._constants[argument]
            if self._u1(at) == _METHOD_HANDLE and self._u1(at + 1) == _NEW_INVOKE_SPECIAL:
                return ConstructorReference(self._method(self._u2(at + 2))[0])
        return None

    def enum_constants(self) -> list[EnumConstant]:
        """Returns the constants of this enum in order.

        Their arguments do not include name and ordinal. Raises ClassFileError if the static
        initializer does not create all constants with the instructions that compilers emit.
        """
        try:
            constants = list(self._made_constants())
        except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
            raise ClassFileError(f"{self.name}: unreadable static initialiser: {error}") from error
        if [constant.name for constant in constants] != self._enum_fields:
            raise ClassFileError(
                f"{self.name} has {len(self._enum_fields)} constants; "
                f"its static initialiser shows {len(constants)} of them"
            )
        return constants

    def _made_constants(self) -> Iterator[EnumConstant]:
        """Yields the enum constants that the static initializer creates.

        Stops at the first instruction that creates anything else, such as the array of the enum's
        values. Raises ClassFileError without an initializer, and for a constant without a name.
        """
        if "Code" not in self._methods.get("<clinit>", {}):
            raise ClassFileError(f"{self.name} has no static initialiser")
        attribute = self._methods["<clinit>"]["Code"]
        (size,) = struct.unpack_from(">I", attribute, 4)
        code = attribute[8 : 8 + size]
        stack: list[Argument] = []
        position = 0
        while position < len(code):
            opcode = code[position]
            operand = code[position + 1 : position + 3]
            match opcode:
                case 0x01:  # aconst_null
                    stack.append(None)
                    position += 1
                case 0x02 | 0x03 | 0x04 | 0x05 | 0x06 | 0x07 | 0x08:  # iconst_m1 … iconst_5
                    stack.append(opcode - 3)
                    position += 1
                case 0x10:  # bipush
                    stack.append(struct.unpack_from(">b", operand)[0])
                    position += 2
                case 0x11:  # sipush
                    stack.append(struct.unpack_from(">h", operand)[0])
                    position += 3
                case 0x12:  # ldc
                    stack.append(self._loaded(operand[0]))
                    position += 2
                case 0x13:  # ldc_w
                    stack.append(self._loaded(int.from_bytes(operand, "big")))
                    position += 3
                case 0x59:  # dup, of the new constant
                    position += 1
                case 0xBB:  # new
                    if self._class_name(int.from_bytes(operand, "big")) != self.name:
                        return
                    stack.clear()
                    position += 3
                case 0xBA:  # invokedynamic
                    stack.append(self._lambda(int.from_bytes(operand, "big")))
                    position += 5
                case 0xB7:  # invokespecial
                    if self._method(int.from_bytes(operand, "big"))[:2] != (self.name, "<init>"):
                        return
                    name = stack[0]
                    if not isinstance(name, str):
                        raise ClassFileError(f"{self.name}: a constant has no name")
                    yield EnumConstant(name, tuple(stack[2:]))
                    position += 3
                case 0xB3:  # putstatic
                    position += 3
                case _:
                    return
