"""Finds what is valid in a union of releases, but probably a mistake of its author."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kproto.schema.field_marks import FieldMark, mark_changes
from kproto.schema.specs import MessageSpec, StructSpec

from ..errors import DefinitionError
from ..releases.release import Release
from .changes import is_unstable, version_changes
from .release_union import Union
from .reused_keys import reused_keys

__all__ = ["union_warnings"]

#: The other half of a pair, by type.
_PARTNERS: Final = {"request": "response", "response": "request"}

#: A fault of a message: the field, "" for the message itself, and the reason.
_Fault = tuple[str, str]


def union_warnings(union: Union, releases: Sequence[Release]) -> list[DefinitionError]:
    """Returns a warning for each part of the union that is probably a mistake, sorted by message.

    A warning is one of these:
    - a request without a response, a response without a request, or a request whose versions are
      not those of its response;
    - a message with the api key of a message of an older release, and with other bytes;
    - a released version whose bytes a newer release changed: the class has those of the newest
      release;
    - a field of no valid version, and deprecated versions that are not valid;
    - a mapKey of an older release that a newer release dropped.
    """
    pairs = {(message.type, message.api_key): message for message in union.messages}
    changed = _changed_bytes(union, releases)
    reused = _reused(union, releases)
    dropped = _dropped_keys(union, releases)
    found: list[DefinitionError] = []
    for message in union.messages:
        file = ", ".join(union.origins.messages.get(message.name, ())) or None
        sentences = [*_partner_faults(message, pairs), *reused.get(message.name, [])]
        found += [DefinitionError(sentence, file=file) for sentence in sentences]
        faults = [
            *changed.get(message.name, []),
            *_unused_versions(message),
            *_unused_fields(message),
            *dropped.get(message.name, {}).items(),
        ]
        found += [
            DefinitionError(reason if name else f"{message.name}: {reason}", file=file, field=name)
            for name, reason in ((name or None, reason) for name, reason in faults)
        ]
    return found


def _partner_faults(
    message: MessageSpec, pairs: dict[tuple[str, int | None], MessageSpec]
) -> Iterator[str]:
    """Yields the fault of a request or response without a partner, or with other versions."""
    kind = _PARTNERS.get(message.type)
    if kind is None:
        return
    partner = pairs.get((kind, message.api_key))
    if partner is None:
        yield f"{message.name} has no {kind}: no {kind} has api key {message.api_key}"
    elif message.type == "request" and message.valid_versions != partner.valid_versions:
        yield (
            f"{message.name} has the versions {message.valid_versions}, but its response "
            f"{partner.name} has {partner.valid_versions}; a version of only one of the two cannot "
            "be used"
        )


def _reused(union: Union, releases: Sequence[Release]) -> dict[str, list[str]]:
    """Returns the reasons for messages that may be a renamed and changed message, by message."""
    found: dict[str, list[str]] = {}
    for each in reused_keys(union, releases):
        found.setdefault(each.new.name, []).append(
            f"{each.reason}; the package has a class for each of the two"
        )
    return found


def _unused_versions(message: MessageSpec) -> Iterator[_Fault]:
    valid, deprecated = message.valid_versions, message.deprecated_versions
    if valid and not valid.covers(deprecated):
        yield "", f"deprecatedVersions {deprecated} are not all among the valid versions {valid}"


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
            for each in mark_changes(old, merged):
                if each.mark is FieldMark.MAP_KEY and each.dropped:
                    reason = f"was a mapKey in {release.name}; the class has no find by it now"
                    found.setdefault(merged.name, {}).setdefault(each.field, reason)
    return found


class _Released(NamedTuple):
    """A version of a message in a release; `release` is an index: the oldest is 0."""

    release: int
    message: MessageSpec
    version: int


class _ChangedBytes(NamedTuple):
    """A breaking change between two releases; `older` and `newer` are their indexes."""

    message: str
    field: str
    kind: str
    detail: str
    older: int
    newer: int


def _changed_bytes(union: Union, releases: Sequence[Release]) -> dict[str, list[_Fault]]:
    """Returns the breaking changes of a version that two releases have, by message.

    Compares each release with all earlier releases that have the version, because a release may
    reuse what an earlier release had dropped. A change that was found between two releases is not
    listed again for the releases around them.
    """
    history: dict[tuple[str, int], list[_Released]] = {}
    for index, release in enumerate(releases):
        for message in release.messages:
            for version in message.valid_versions:
                merged, number = union.resolve(message.name, version, message.type)
                entry = _Released(index, message, version)
                history.setdefault((merged.name, number), []).append(entry)
    versions: dict[_ChangedBytes, list[int]] = {}
    for (name, number), entries in history.items():
        last_change: dict[tuple[str, str], int] = {}
        for at, newer in enumerate(entries):
            for older in reversed(entries[:at]):
                unstable = is_unstable(releases[older.release], older.message, older.version)
                for change in version_changes(
                    older.message, older.version, newer.message, newer.version, unstable=unstable
                ):
                    place = (change.kind, change.field)
                    if change.breaking and last_change.get(place, 0) <= older.release:
                        last_change[place] = newer.release
                        key = _ChangedBytes(
                            name,
                            change.field,
                            change.kind,
                            change.detail,
                            older.release,
                            newer.release,
                        )
                        versions.setdefault(key, []).append(number)
    found: dict[str, list[_Fault]] = {}
    for key, numbers in versions.items():
        listed = ", ".join(f"v{number}" for number in sorted(numbers))
        reason = f"{key.kind} in {listed} of {releases[key.newer].name}"
        if key.newer - key.older > 1:
            reason += f", compared with {releases[key.older].name}"
        if key.detail:
            reason += f": {key.detail}"
        found.setdefault(key.message, []).append((key.field, reason))
    return found
