"""Finds messages of two releases with one api key and two names, which `release_union` keeps apart.

Such a message was renamed and its bytes were changed, or a release reused the api key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kproto.schema.layout import layout
from kproto.schema.layout_comparison import compare_layouts
from kproto.schema.specs import MessageSpec

from ..errors import DefinitionError
from ..releases.release import Release
from .release_union import KEYED_TYPES, Union, message_key

__all__ = ["ReusedKey", "check_requests", "reused_keys"]


@dataclass(frozen=True, slots=True)
class ReusedKey:
    """A message `new` with the type and api key of `old`, which only releases before it have."""

    old: MessageSpec
    new: MessageSpec
    old_release: str
    new_release: str

    @property
    def reason(self) -> str:
        """Returns error text that names both messages, and the first difference of their bytes."""
        return (
            f"{self.new.name} of {self.new_release} has the api key {self.new.api_key} of "
            f"{self.old.name} of {self.old_release}, and {self._difference()}"
        )

    def _difference(self) -> str:
        for version in self.old.valid_versions.intersect(self.new.valid_versions):
            for found in compare_layouts(layout(self.old, version), layout(self.new, version)):
                if found.kind.changes_bytes:
                    field = f"field {found.field}: " if found.field else ""
                    return f"v{version} has other bytes: {field}{found.kind}: {found.detail}"
        return "they have no version in common"


def reused_keys(union: Union, releases: Sequence[Release]) -> Iterator[ReusedKey]:
    """Yields each pair of messages of the union with one key, of which the older one has gone.

    `releases` are sorted, the oldest first. The messages of a pair are in no release together.
    """
    seen: dict[str, list[int]] = {}
    for index, release in enumerate(releases):
        for message in release.messages:
            if message.valid_versions:
                merged, _ = union.resolve(message.name, message.valid_versions.lowest, message.type)
                seen.setdefault(merged.name, []).append(index)
    by_key: dict[object, list[MessageSpec]] = {}
    for message in union.messages:
        if message.type in KEYED_TYPES and message.api_key is not None and message.name in seen:
            by_key.setdefault(message_key(message), []).append(message)
    for same in by_key.values():
        ordered = sorted(same, key=lambda message: seen[message.name])
        for at, new in enumerate(ordered):
            for old in ordered[:at]:
                last, first = seen[old.name][-1], seen[new.name][0]
                if last < first:
                    yield ReusedKey(old, new, releases[last].name, releases[first].name)


def check_requests(union: Union, releases: Sequence[Release]) -> None:
    """Raises DefinitionError if a request has the api key of another request of an older release.

    A package finds the class of a request by its api key, so it can have only one of the two.
    """
    faults = [
        DefinitionError(
            f"{each.reason}; if the request was renamed, restore its bytes; if the release reused "
            "the key, generate a package for each release",
            file=", ".join(union.origins.messages.get(each.new.name, ())) or None,
        )
        for each in reused_keys(union, releases)
        if each.new.type == "request"
    ]
    if faults:
        raise DefinitionError.of(faults)
