"""Finds what is valid in a union of releases, but probably a mistake of its author."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from kproto.schema.specs import MessageSpec, StructSpec

from ..errors import DefinitionError
from ..releases.release import Release
from .additions import lost_map_keys
from .changes import release_changes
from .release_union import Union

__all__ = ["union_warnings"]

#: Breaking changes without effect on the union, which keeps all messages and versions.
_DROPPED: Final = frozenset({"message dropped", "version dropped"})

#: The other half of a pair, by type.
_PARTNERS: Final = {"request": "response", "response": "request"}


def union_warnings(union: Union, releases: Sequence[Release]) -> list[DefinitionError]:
    """Returns a warning for each part of the union that is probably a mistake, sorted by message.

    A warning is a field of no valid version, a request without a response (or a response without a
    request), a mapKey of an older release that a newer one dropped, or a released version whose
    bytes a newer release changed: the class has those of the newest release.
    """
    pairs = {(message.type, message.api_key) for message in union.messages}
    dropped = _dropped_keys(union, releases)
    changed = _changed_bytes(releases)
    found: list[DefinitionError] = []
    for message in union.messages:
        file = ", ".join(union.origins.messages.get(message.name, ())) or None
        partner = _PARTNERS.get(message.type)
        if partner is not None and (partner, message.api_key) not in pairs:
            reason = f"{message.name} has no {partner}: no {partner} has api key {message.api_key}"
            found.append(DefinitionError(reason, file=file))
        faults = [
            *changed.get(message.name, []),
            *_unused_fields(message),
            *dropped.get(message.name, {}).items(),
        ]
        found += [
            DefinitionError(reason if name else f"{message.name}: {reason}", file=file, field=name)
            for name, reason in ((name or None, reason) for name, reason in faults)
        ]
    return found


def _unused_fields(message: MessageSpec) -> Iterator[tuple[str, str]]:
    valid = message.valid_versions
    own = StructSpec(message.name, valid, message.fields)
    for struct in [own, *message.structs()] if valid else []:
        for field in struct.fields:
            if not field.versions.intersect(valid):
                name = field.name if struct is own else f"{struct.name}.{field.name}"
                reason = f"is in no valid version: its versions are {field.versions}, "
                yield name, f"{reason}those of the message {valid}"


def _dropped_keys(union: Union, releases: Sequence[Release]) -> dict[str, dict[str, str]]:
    """Returns the reasons for the map keys that the newest release lacks, by message and field."""
    found: dict[str, dict[str, str]] = {}
    for release in releases:
        for old in release.messages:
            if not old.valid_versions:
                continue
            merged, _ = union.resolve(old.name, old.valid_versions.lowest, old.type)
            for name in lost_map_keys(old, merged):
                reason = f"was a mapKey in {release.name}; the class has no find by it now"
                found.setdefault(merged.name, {}).setdefault(name, reason)
    return found


def _changed_bytes(releases: Sequence[Release]) -> dict[str, list[tuple[str, str]]]:
    """Returns the breaking changes of versions that both of two releases have, by message."""
    found: dict[str, list[tuple[str, str]]] = {}
    for older, newer in pairwise(releases):
        for change in release_changes(older, newer):
            if change.breaking and change.kind not in _DROPPED:
                versions = ", ".join(f"v{version}" for version in change.versions)
                reason = f"{change.kind} in {versions} of {newer.name}"
                if change.detail:
                    reason += f": {change.detail}"
                found.setdefault(change.message, []).append((change.field, reason))
    return found
