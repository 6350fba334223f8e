"""What one generated module needs from elsewhere: imports, and Structs of fused numbers."""

from __future__ import annotations

import struct
from itertools import groupby
from typing import Final

from kproto.schema.layout import FORMATS
from kproto.schema.naming import snake_case

from .plan import FieldPlan

__all__ = ["Imports"]

_LETTERS: Final = {**FORMATS, "uint8": "B"}


class Imports:
    """Collects the names that the emitted lines use, so that a module imports just those."""

    def __init__(self) -> None:
        self._wire: dict[str, set[str]] = {}
        self._shapes: dict[str, str] = {}
        self._tables: dict[str, str] = {}
        #: Whether `operator.index` is needed.
        self.index = False

    def wire(self, module: str, name: str) -> None:
        """A name of `kproto.wire`."""
        self._wire.setdefault(module, set()).add(name)

    def default(self, field: FieldPlan) -> None:
        """Whatever the default of `field` is made of."""
        made = field.fresh_default()
        if "ZERO_UUID" in made:
            self.wire("uuid", "ZERO_UUID")
        elif "Uuid" in made:
            self.wire("uuid", "Uuid")

    def default_test(self, field: FieldPlan) -> None:
        """Whatever the test needs of whether `field` is at its default."""
        self.default(field)
        match field.compared_by:
            case "index":
                self.index = True
            case "BOOLS" | "elements" as name:
                self.wire("writing", name)

    def shape(self, types: list[str]) -> tuple[str, int]:
        """The name and the size in bytes of the Struct for neighbouring numbers."""
        words = []
        for kind, group in groupby(types):
            count = len(list(group))
            words.append(kind.upper() + (f"X{count}" if count > 1 else ""))
        name = "_" + "_".join(words)
        letters = ">" + "".join(_LETTERS[kind] for kind in types)
        self._shapes[name] = letters
        return name, struct.calcsize(letters)

    def array_shapes(self, element: str) -> str:
        """The name of the table of the Structs of 0 to 127 numbers, by their count."""
        name = f"_{element.upper()}_ARRAYS"
        self.wire("reading", "ARRAY_STRUCTS")
        self._tables[name] = f'ARRAY_STRUCTS["{_LETTERS[element]}"]'
        return name

    def counted_shapes(self, count: str, element: str) -> str:
        """The name of the table of the Structs of a count and that many numbers."""
        name = f"_{count.upper()}_AND_{element.upper()}_ARRAYS"
        self.wire("writing", "COUNTED_ARRAY_STRUCTS")
        self._tables[name] = f'COUNTED_ARRAY_STRUCTS["{_LETTERS[count]}{_LETTERS[element]}"]'
        return name

    @staticmethod
    def struct_snake(name: str) -> str:
        """The name of a struct inside function names."""
        return snake_case(name)

    def shapes(self) -> list[tuple[str, str]]:
        """The Structs to define, and the tables of them: name and source."""
        made = {name: f'struct.Struct("{letters}")' for name, letters in self._shapes.items()}
        return sorted({**made, **self._tables}.items())

    def wire_imports(self) -> list[tuple[str, list[str]]]:
        """The modules of `kproto.wire` and the names to import of each."""
        return [(module, _sorted(names)) for module, names in sorted(self._wire.items())]


def _sorted(names: set[str]) -> list[str]:
    """Constants, then classes, then functions, as import sorters order them."""

    def rank(name: str) -> tuple[int, str]:
        if name.isupper():
            return 0, name
        return (1 if name[0].isupper() else 2), name

    return sorted(names, key=rank)
