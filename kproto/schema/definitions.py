"""Finds the definition of a message in a definitions file, which has a line of JSON per message.

kproto's own file has the union: the definitions of all Kafka releases, merged into one per message.
A package that `kproto-codegen generate` made from other definitions has its own file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from .data_files import read_package_file
from .specs import MessageSpec

__all__ = [
    "FILE_NAME",
    "Definitions",
    "definition_line",
    "definitions_of",
    "definitions_of_package",
    "union",
]

#: The name of a definitions file inside a package.
FILE_NAME: Final = "definitions.jsonl"


class Definitions(Mapping[str, MessageSpec]):
    """The message definitions of a file, by name. Parses a definition at its first access."""

    def __init__(self, text: str) -> None:
        self._lines: dict[str, str] = {}
        self._former: dict[str, list[str]] = {}
        self._specs: dict[str, MessageSpec] = {}
        for line in text.splitlines():
            head, _, body = line.partition("\t")
            name, *former = head.split(" ")
            self._lines[name] = body
            for other in former:
                self._former.setdefault(other, []).append(name)

    def __getitem__(self, name: str) -> MessageSpec:
        spec = self._specs.get(name)
        if spec is None:
            spec = self._specs[name] = MessageSpec.from_json(json.loads(self._lines[name]))
        return spec

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def former(self, name: str) -> tuple[str, ...]:
        """Returns the present names of the messages that an older release called `name`."""
        return tuple(self._former.get(name, ()))

    def former_names(self) -> tuple[str, ...]:
        """Returns the former names of renamed messages; other messages may have these names now."""
        return tuple(self._former)

    def resolve(self, name: str, version: int) -> tuple[MessageSpec, int]:
        """Returns the message that has `name` and `version` in a release, and its present version.

        If the message was renamed, its present version may differ from `version` (see
        `FormerName`). A message that has the name and version now is preferred to a message that
        had them formerly. Raises KeyError if no release had that name and version.
        """
        if name in self._lines and version in self[name].valid_versions:
            return self[name], version
        for other in self._former.get(name, ()):
            for entry in self[other].formerly:
                if entry.name == name and version in entry.versions:
                    return self[other], version - entry.versions.lowest + entry.becomes
        raise KeyError(f"no release has {name} v{version}")


def definition_line(spec: MessageSpec) -> str:
    """Returns a line of a definitions file: the name, the former names, a tab, and the JSON."""
    former = sorted({entry.name for entry in spec.formerly})
    body = json.dumps(spec.to_json(), separators=(",", ":"), ensure_ascii=True)
    return f"{' '.join([spec.name, *former])}\t{body}"


@lru_cache(maxsize=32)
def definitions_of_package(package: str) -> Definitions | None:
    """Returns the definitions that a Python package contains; None if it has no file FILE_NAME.

    The package may be in a directory or in a zip file.
    """
    text = read_package_file(package, FILE_NAME)
    return None if text is None else Definitions(text)


def union() -> Definitions:
    """Returns kproto's own definitions, the union of all Kafka releases."""
    shipped = definitions_of_package(__name__.rpartition(".")[0])
    assert shipped is not None
    return shipped


def definitions_of(module: str) -> Definitions:
    """Returns the definitions in the package of the generated module `module`.

    If the package has no definitions file, returns kproto's own definitions, the union of all Kafka
    releases.
    """
    return definitions_of_package(module.rpartition(".")[0]) or union()
