"""Builds small Java class files, so that the class file reader is tested without Java.

The files have only the parts that an enum of error codes needs: a constant pool, fields, a static
initializer and bootstrap methods (JVM specification, chapter 4).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

ENUM = 0x4000
STATIC = 0x0008


@dataclass(frozen=True)
class Constant:
    """A constant of the enum of error codes: name, code, text, and the exception class or None."""

    name: str
    code: int
    text: str | None
    exception: str | None


class Pool:
    """A constant pool under construction; equal constants share one entry."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.known: dict[bytes, int] = {}
        self.next_index = 1

    def add(self, data: bytes, slots: int = 1) -> int:
        if data not in self.known:
            self.known[data] = self.next_index
            self.entries.append(data)
            self.next_index += slots
        return self.known[data]

    def utf8(self, text: str) -> int:
        data = text.encode()
        return self.add(struct.pack(">BH", 1, len(data)) + data)

    def integer(self, value: int) -> int:
        return self.add(struct.pack(">Bi", 3, value))

    def long(self, value: int) -> int:
        return self.add(struct.pack(">Bq", 5, value), slots=2)

    def class_(self, name: str) -> int:
        return self.add(struct.pack(">BH", 7, self.utf8(name)))

    def string(self, text: str) -> int:
        return self.add(struct.pack(">BH", 8, self.utf8(text)))

    def name_and_type(self, name: str, descriptor: str) -> int:
        return self.add(struct.pack(">BHH", 12, self.utf8(name), self.utf8(descriptor)))

    def reference(self, tag: int, owner: str, name: str, descriptor: str) -> int:
        member = self.name_and_type(name, descriptor)
        return self.add(struct.pack(">BHH", tag, self.class_(owner), member))

    def method(self, owner: str, name: str, descriptor: str) -> int:
        return self.reference(10, owner, name, descriptor)

    def handle(self, kind: int, method: int) -> int:
        return self.add(struct.pack(">BBH", 15, kind, method))

    def invoke_dynamic(self, bootstrap: int) -> int:
        member = self.name_and_type("apply", "()Ljava/util/function/Function;")
        return self.add(struct.pack(">BHH", 18, bootstrap, member))


def plain_class(name: str, superclass: str | None) -> bytes:
    """Returns the class file of a class without fields and methods."""
    pool = Pool()
    pool.long(5)  # takes two indexes in the pool, which a reader must count
    this = pool.class_(name)
    parent = 0 if superclass is None else pool.class_(superclass)
    head = struct.pack(">HHHH", 0x21, this, parent, 0)
    return _file(pool, head + struct.pack(">HHH", 0, 0, 0))


def enum_class(
    name: str,
    constants: Sequence[Constant],
    *,
    declared: Sequence[str] | None = None,
    tail: bytes = b"\x04\xbd",
) -> bytes:
    """Returns the class file of an enum, as javac writes it.

    Each constant is constructed with (name, ordinal, code, text, function). `declared` has the
    names of the enum's fields; the default are the names of `constants`. `tail` is the bytecode
    after the construction of the constants; the default is the beginning of the array of all
    constants.
    """
    pool = Pool()
    this, parent = pool.class_(name), pool.class_("java/lang/Enum")
    constructor = pool.method(name, "<init>", "(Ljava/lang/String;IILjava/lang/String;L;)V")
    code = b""
    bootstraps = []
    for ordinal, constant in enumerate(constants):
        place = pool.reference(9, name, constant.name, f"L{name};")
        code += b"\xbb" + struct.pack(">H", this) + b"\x59"
        code += b"\x13" + struct.pack(">H", pool.string(constant.name))
        code += _push(ordinal, pool) + _push(constant.code, pool)
        text = constant.text
        code += b"\x01" if text is None else b"\x13" + struct.pack(">H", pool.string(text))
        if constant.exception is None:
            target = pool.handle(6, pool.method(name, "lambda$0", "()V"))
        else:
            target = pool.handle(8, pool.method(constant.exception, "<init>", "()V"))
        bootstraps.append(struct.pack(">HHH", target, 1, target))
        dynamic = pool.invoke_dynamic(len(bootstraps) - 1)
        code += b"\xba" + struct.pack(">HH", dynamic, 0)
        code += b"\xb7" + struct.pack(">H", constructor) + b"\xb3" + struct.pack(">H", place)
    code += tail
    names = [constant.name for constant in constants] if declared is None else declared
    fields = [
        struct.pack(">HHHH", ENUM | STATIC, pool.utf8(each), pool.utf8(f"L{name};"), 0)
        for each in names
    ]
    fields.append(struct.pack(">HHHH", STATIC, pool.utf8("$VALUES"), pool.utf8("[L;"), 0))
    body = struct.pack(">HHI", 9, 0, len(code)) + code + struct.pack(">HH", 0, 0)
    method = struct.pack(">HHHH", STATIC, pool.utf8("<clinit>"), pool.utf8("()V"), 1)
    method += struct.pack(">HI", pool.utf8("Code"), len(body)) + body
    table = struct.pack(">H", len(bootstraps)) + b"".join(bootstraps)
    attribute = struct.pack(">HI", pool.utf8("BootstrapMethods"), len(table)) + table
    rest = struct.pack(">HHHH", 0x4031, this, parent, 0)
    rest += struct.pack(">H", len(fields)) + b"".join(fields)
    rest += struct.pack(">H", 1) + method + struct.pack(">H", 1) + attribute
    return _file(pool, rest)


def _push(value: int, pool: Pool) -> bytes:
    """Returns the shortest instruction that pushes `value`, as javac chooses it."""
    if -1 <= value <= 5:
        return bytes([3 + value])
    if -128 <= value <= 127:
        return b"\x10" + struct.pack(">b", value)
    if -32768 <= value <= 32767:
        return b"\x11" + struct.pack(">h", value)
    return b"\x13" + struct.pack(">H", pool.integer(value))


def _file(pool: Pool, rest: bytes) -> bytes:
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 52, pool.next_index)
    return head + b"".join(pool.entries) + rest
