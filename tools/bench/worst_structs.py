"""Test messages for which the explanation of an error takes longest, relative to decoding.

Each message is an array of structs in which nearly every byte is a null field, for which decoding
creates no object. `python -m tools.bench explanations` measures the time of the explanation;
`tests/unit/messages/test_worst_structs.py` counts its steps.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kproto_codegen.emit.package import generate

from kproto.schema.specs import MessageSpec
from kproto.wire.limits import MAX_ARRAY_ELEMENTS
from kproto.wire.writing import uvarint

if TYPE_CHECKING:
    from kproto.messages.base import Message

__all__ = ["WORST", "WorstStruct", "message_of", "worst_classes"]

#: The name of the generated package, which exists only during `worst_classes`.
_PACKAGE: Final = "worst_structs"


class WorstStruct(NamedTuple):
    """A struct: the types of its fields, all nullable, and the bytes of its smallest value."""

    name: str
    types: tuple[str, ...]
    element: bytes
    flexible: bool = True

    @property
    def class_name(self) -> str:
        """Returns the class name of the message with an array of this struct."""
        return "".join(word.title() for word in self.name.split())


WORST: Final = (
    WorstStruct("twenty null strings", ("string",) * 20, bytes(21)),
    WorstStruct("twenty null bytes", ("bytes",) * 20, bytes(21)),
    WorstStruct("twenty null records", ("records",) * 20, bytes(21)),
    WorstStruct("twenty null arrays", ("[]int32",) * 20, bytes(21)),
    WorstStruct(
        "twenty null arrays before flexible", ("[]int32",) * 20, b"\xff" * 80, flexible=False
    ),
    WorstStruct("twenty null structs", ("Inner",) * 20, b"\xff" * 20 + b"\0"),
    WorstStruct("strings and structs in turns", ("string", "Inner") * 10, b"\0\xff" * 10 + b"\0"),
    WorstStruct("three nulls", ("string", "bytes", "[]int32"), bytes(4)),
)


def message_of(worst: WorstStruct, size: int) -> bytes:
    """Returns an encoded message of about `size` bytes.

    The message is smaller if its array reaches `MAX_ARRAY_ELEMENTS` first.
    """
    count = min(size // len(worst.element), MAX_ARRAY_ELEMENTS)
    length = uvarint(count + 1) if worst.flexible else count.to_bytes(4, "big")
    return length + worst.element * count + b"\0" * worst.flexible


@contextmanager
def worst_classes() -> Iterator[dict[WorstStruct, type[Message]]]:
    """Generates a message class for each struct in WORST; yields the classes by struct."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / _PACKAGE
        specs = [MessageSpec.from_json(_definition(worst)) for worst in WORST]
        generate(specs, package=_PACKAGE, out=out, definitions=out / "definitions.jsonl")
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            package = importlib.import_module(_PACKAGE)
            yield {worst: getattr(package, worst.class_name) for worst in WORST}
        finally:
            sys.path.remove(folder)
            for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
                del sys.modules[name]


def _definition(worst: WorstStruct) -> dict[str, Any]:
    fields = [
        {"name": f"F{index}", "type": kind, "versions": "0", "nullableVersions": "0"}
        for index, kind in enumerate(worst.types)
    ]
    inner = {"name": "A", "type": "int8", "versions": "0"}
    return {
        "type": "data",
        "name": worst.class_name,
        "validVersions": "0",
        "flexibleVersions": "0+" if worst.flexible else "none",
        "fields": [{"name": "Items", "type": "[]Item", "versions": "0", "fields": fields}],
        "commonStructs": [{"name": "Inner", "versions": "0", "fields": [inner]}],
    }
