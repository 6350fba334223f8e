"""Computes the versions in which a message has a struct, and in which the struct has bytes.

The specs may violate rules, but must not be recursive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kproto.schema.specs import MessageSpec
from kproto.schema.versions import NO_VERSIONS, Versions

__all__ = ["first_gap", "versions_in_use", "versions_with_bytes"]


def versions_with_bytes(message: MessageSpec) -> dict[str, list[Versions]]:
    """Returns, by struct name, the versions in which a struct has at least one byte.

    The versions are ascending ranges. In a flexible version a struct has at least the count of its
    tagged fields. An inner struct adds a byte to the outer struct if the inner struct has a byte
    itself, or if it is nullable, because of its null marker.
    """
    found: dict[str, list[Versions]] = {}
    for struct in message.structs():
        parts = [message.flexible_versions]
        for field in struct.fields:
            if field.is_struct:
                parts.append(field.versions.intersect(field.nullable_versions))
                parts += [field.versions.intersect(part) for part in found.get(field.type, ())]
            else:
                parts.append(field.versions)
        found[struct.name] = _united(parts)
    return found


def versions_in_use(message: MessageSpec) -> dict[str, Versions]:
    """Returns the range of versions that have a struct, by name of the struct.

    The range is from the first to the last version that has the struct; a version in the range may
    lack the struct. The message itself is included, under its name.
    """
    used = {message.name: message.valid_versions}
    holders = [(message.name, message.fields)]
    holders += reversed([(struct.name, struct.fields) for struct in message.structs()])
    for name, fields in holders:
        for field in fields:
            versions = field.versions.intersect(used[name])
            used[field.element_type] = used.get(field.element_type, NO_VERSIONS).span(versions)
    return used


def first_gap(required: Versions, available: Sequence[Versions]) -> int | None:
    """Returns the lowest version in `required` that is in none of `available`, else None.

    The ranges in `available` must be ascending.
    """
    version = required.lowest
    for part in available:
        if part.lowest > version:
            break
        version = max(version, part.highest + 1)
    return version if version in required else None


def _united(parts: Iterable[Versions]) -> list[Versions]:
    """Returns the union of the ranges, in ascending order; merges ranges that overlap or adjoin."""
    united: list[Versions] = []
    for part in sorted(filter(None, parts)):
        if united and part.lowest <= united[-1].highest + 1:
            part = united.pop().span(part)
        united.append(part)
    return united
