"""Lists the messages and versions of each release, each with kproto's class.

A pair is a message and a version in a release, with the name and the version number of that
release. If a later release changed the name or the number, kproto uses the newest name and number.
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

__all__ = [
    "RELEASES",
    "KprotoMessageVersion",
    "ReleaseMessageVersion",
    "all_pairs",
    "forms",
    "pairs",
]

SCHEMAS: Final = Path(__file__).resolve().parents[2] / "schemas"

#: The releases whose classes are used, in order of version.
RELEASES: Final = ("3.9.2", "4.4.0")


class KprotoMessageVersion(NamedTuple):
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


class ReleaseMessageVersion(NamedTuple):
    """A message and version of a release; `form` is the same message and version in kproto."""

    release: str
    name: str
    version: int
    form: KprotoMessageVersion

    def __str__(self) -> str:
        return f"{self.name} v{self.version} of {self.release}"


@cache
def pairs(release: str) -> tuple[ReleaseMessageVersion, ...]:
    """Returns a `ReleaseMessageVersion` for each version of each message of `release`.

    Raises KeyError if kproto lacks one of the messages.
    """
    found = []
    for spec in load_release(SCHEMAS / release).messages:
        for version in spec.valid_versions:
            ours, our_version = union().resolve(spec.name, version)
            found.append(
                ReleaseMessageVersion(
                    release, spec.name, version, KprotoMessageVersion(ours.name, our_version)
                )
            )
    return tuple(found)


def all_pairs() -> tuple[ReleaseMessageVersion, ...]:
    """Returns a `ReleaseMessageVersion` for each version of each message of each release."""
    return tuple(pair for release in RELEASES for pair in pairs(release))


def forms() -> dict[KprotoMessageVersion, tuple[ReleaseMessageVersion, ...]]:
    """Returns each `KprotoMessageVersion` with the `ReleaseMessageVersion`s that have it as `form`.

    The keys are sorted by name and version.
    """
    found: dict[KprotoMessageVersion, list[ReleaseMessageVersion]] = {}
    for pair in all_pairs():
        found.setdefault(pair.form, []).append(pair)
    return {form: tuple(found[form]) for form in sorted(found)}
