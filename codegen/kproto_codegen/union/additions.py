"""Finds the versions and fields that a release added to a message."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kproto.schema.layout import StructLayout, layout, struct_of
from kproto.schema.specs import MessageSpec

__all__ = ["additions"]


def additions(
    message: MessageSpec, known: Collection[int]
) -> Iterator[tuple[str, str, Sequence[int]]]:
    """Yields what a release added to a message, as (kind, path of the field, versions).

    `known` are the versions that the older release has; if there are none, the message is new, and
    its versions and fields are not listed.
    """
    added = [version for version in message.valid_versions if version not in known]
    if not added:
        return
    if not known:
        yield "message added", "", added
        return
    yield "version added", "", added
    before = {
        path
        for version in message.valid_versions
        if version in known
        for path in _field_paths(layout(message, version))
    }
    fields: dict[str, list[int]] = {}
    for version in added:
        for path in _field_paths(layout(message, version)):
            if path not in before:
                fields.setdefault(path, []).append(version)
    for path, versions in fields.items():
        if path.rpartition(".")[0] not in fields:  # the struct of such a field is listed
            yield "field added", path, versions


def _field_paths(struct: StructLayout, prefix: str = "") -> Iterator[str]:
    """Yields the paths of all fields of a layout: `Topics`, `Topics.Name`."""
    for each in [*struct.fields, *struct.tagged]:
        yield prefix + each.name
        inner = struct_of(each.type)
        if inner is not None:
            yield from _field_paths(inner, f"{prefix}{each.name}.")
