"""Collects the imports, Structs, default tests and variables that a generated module needs.

The emitters register each name when they emit code that uses it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from kproto.schema.layout import FORMATS

from .plan import FieldPlan
from .wrapping import WIDTH

__all__ = ["Imports", "import_lines", "sorted_names"]

#: The `struct` format character by type; `skip` is a byte that is not read.
_LETTERS: Final = {**FORMATS, "uint8": "B", "skip": "x"}

#: The declarations of the variables that code in NATIVE style uses.
_DECLARED: Final = {"value": "value: object", "default": "default = DEFAULT"}


class Imports:
    """Collects the names that the emitted code of a module uses, and so must import."""

    def __init__(self) -> None:
        self._wire: dict[str, set[str]] = {}
        self._shapes: dict[str, str] = {}
        self._tables: dict[str, str] = {}
        #: Whether the module imports `operator.index`.
        self.index = False
        #: The structs that need a function to test whether they have only defaults.
        self.tested_structs: set[str] = set()
        self._variables: set[str] = set()

    def wire(self, module: str, name: str) -> None:
        """Registers a name to import from a module of `kproto.wire`."""
        self._wire.setdefault(module, set()).add(name)

    def variable(self, name: str) -> str:
        """Registers a variable of `_DECLARED` that the emitted function uses; returns its name."""
        self._variables.add(name)
        return name

    def take_variables(self) -> list[str]:
        """Returns the declarations of the registered variables, and forgets these variables."""
        used, self._variables = self._variables, set()
        return [declared for name, declared in _DECLARED.items() if name in used]

    def default(self, field: FieldPlan) -> None:
        """Registers the names in the default of `field`."""
        for name in field.default_names:
            self.wire("uuid", name)

    def default_tests(self, field: FieldPlan) -> None:
        """Registers the names that the test for the default of `field` uses."""
        self.default(field)
        for name in field.test_names:
            if name == "index":
                self.index = True
            else:
                self.wire("writing", name)
        if field.calls_struct_test:
            self.tested_structs.add(field.spec.type)

    def shape(self, types: list[str]) -> tuple[str, int]:
        """Registers the `struct.Struct` for a run of numbers of the types `types`.

        Returns its name and its size in bytes.
        """
        words = []
        for kind, group in groupby(types):
            count = len(list(group))
            words.append(kind.upper() + (f"X{count}" if count > 1 else ""))
        name = "_" + "_".join(words)
        letters = ">" + "".join(_LETTERS[kind] for kind in types)
        self._shapes[name] = letters
        return name, struct.calcsize(letters)

    def uniform_shapes(self, types: list[str]) -> str:
        """Registers the UniformStructs for a layout, and returns its name.

        A type such as `int32[]` is an array of numbers.
        """
        words, parts = [], [""]
        for kind, group in groupby(types):
            element = kind.removesuffix("[]")
            count = len(list(group))
            if element == kind:
                words.append(kind.upper() + (f"X{count}" if count > 1 else ""))
                parts[-1] += _LETTERS[kind] * count
            else:
                words += [f"{element.upper()}S"] * count
                parts += [_LETTERS[element], ""] * count
        name = "_" + "_".join(words)
        self.wire("uniform_structs", "UniformStructs")
        letters = ", ".join(f'"{part}"' for part in parts)
        self._tables[name] = f"UniformStructs({letters})"
        return name

    def array_shapes(self, element: str) -> tuple[str, int]:
        """Registers the list of the `struct.Struct`s that read 0, 1, … 127 numbers of a type.

        Returns the name of the list, and the size of a number in bytes.
        """
        name = f"_{element.upper()}_ARRAYS"
        letter = _LETTERS[element]
        self.wire("reading", "ARRAY_STRUCTS")
        self._tables[name] = f'ARRAY_STRUCTS["{letter}"]'
        return name, struct.calcsize(f">{letter}")

    def counted_shapes(self, count: str, element: str) -> str:
        """Registers the list of the Structs that write a count and then 0, 1, … 126 numbers.

        Returns the list's name.
        """
        name = f"_{count.upper()}_AND_{element.upper()}_ARRAYS"
        self.wire("writing", "COUNTED_ARRAY_STRUCTS")
        self._tables[name] = f'COUNTED_ARRAY_STRUCTS["{_LETTERS[count]}{_LETTERS[element]}"]'
        return name

    def shapes(self) -> list[tuple[str, str]]:
        """Returns the name and the source of each registered Struct and list, sorted by name."""
        made = {name: f'struct.Struct("{letters}")' for name, letters in self._shapes.items()}
        return sorted({**made, **self._tables}.items())

    def wire_imports(self) -> list[tuple[str, list[str]]]:
        """Returns each module of `kproto.wire` with the names to import from it, sorted."""
        return [(module, sorted_names(names)) for module, names in sorted(self._wire.items())]


def import_lines(module: str, names: Sequence[str], *, margin: int = 0) -> list[str]:
    """Returns the lines that import `names`: on one line, or on a line per name."""
    line = f"from {module} import {', '.join(names)}"
    if margin + len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def sorted_names(names: Iterable[str]) -> list[str]:
    """Sorts names as ruff sorts imports: constants, then classes, then functions.

    Ignores case, and compares numbers in names as numbers: `read_int8` is before `read_int32`.
    """

    def rank(name: str) -> tuple[int, list[str]]:
        words = re.split(r"(\d+)", name.lower())
        words[1::2] = [digits.zfill(9) for digits in words[1::2]]
        if name.isupper():
            return 0, words
        return (1 if name[0].isupper() else 2), words

    return sorted(names, key=rank)
