"""The messages and versions of each release, with kproto's class for each.

A pair is a message and a version with the release's names. If a message was renamed or renumbered
later, kproto has it under the new name or number.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from kproto_codegen.releases.release import load_release

from kproto import messages
from kproto.messages.base import Message
from kproto.schema.definitions import union
from kproto.schema.naming import class_name

__all__ = ["RELEASES", "Form", "Pair", "all_pairs", "forms", "pairs"]

SCHEMAS: Final = Path(__file__).resolve().parents[2] / "schemas"

#: The releases whose classes are used, oldest first.
RELEASES: Final = ("3.9.2", "4.4.0")


class Form(NamedTuple):
    """A message and version of kproto: one layout, and one codec."""

    name: str
    version: int

    @property
    def message(self) -> type[Message]:
        """Returns kproto's class of the message."""
        found: type[Message] = getattr(messages, class_name(self.name))
        return found

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class Pair(NamedTuple):
    """A message and a version with one release's names, and the `Form` in kproto."""

    release: str
    name: str
    version: int
    form: Form

    def __str__(self) -> str:
        return f"{self.name} v{self.version} of {self.release}"


@cache
def pairs(release: str) -> tuple[Pair, ...]:
    """Returns every pair of `release`. Raises KeyError if kproto lacks one of its messages."""
    found = []
    for spec in load_release(SCHEMAS / release).messages:
        for version in spec.valid_versions:
            ours, our_version = union().resolve(spec.name, version)
            found.append(Pair(release, spec.name, version, Form(ours.name, our_version)))
    return tuple(found)


def all_pairs() -> tuple[Pair, ...]:
    """Returns the pairs of all releases."""
    return tuple(pair for release in RELEASES for pair in pairs(release))


def forms() -> dict[Form, tuple[Pair, ...]]:
    """Returns all forms, sorted by name and version, each with its pairs."""
    found: dict[Form, list[Pair]] = {}
    for pair in all_pairs():
        found.setdefault(pair.form, []).append(pair)
    return {form: tuple(found[form]) for form in sorted(found)}
