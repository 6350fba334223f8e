"""Compares the layouts of the same message version in two definitions, which should be equal.

The generator uses it to compare a version in two releases. `changes` compares two versions of a
message instead.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from .layout import LayoutField, StructLayout, WireType, struct_of

__all__ = [
    "DifferenceKind",
    "LayoutDifference",
    "compare_layouts",
    "default_words",
    "wire_words",
]


class DifferenceKind(StrEnum):
    """How two layouts of the same message version differ."""

    FIELD_RENAMED = "field renamed"
    FIELD_TYPE = "type changed"
    FIELD_BOXED = "array of single-field structs"
    FIELDS = "fields changed"
    ORDER = "fields re-ordered"
    FLEXIBLE = "flexible versions changed"
    DEFAULT = "default changed"
    TAG_ADDED = "tagged field added"
    TAG_DROPPED = "tagged field dropped"
    TAG_CHANGED = "tag changed"

    @property
    def changes_bytes(self) -> bool:
        """Returns True if the encoded bytes differ.

        The bytes are equal if only a name or a default changes, or if an array of primitives
        becomes an array of structs with a single field of that type. An added or dropped tagged
        field does not count, because readers skip unknown tags.
        """
        return self in {
            DifferenceKind.FIELD_TYPE,
            DifferenceKind.FIELDS,
            DifferenceKind.ORDER,
            DifferenceKind.FLEXIBLE,
            DifferenceKind.TAG_CHANGED,
        }


@dataclass(frozen=True, slots=True)
class LayoutDifference:
    """A difference; `field` is the path of the field or struct, "" for the whole message.

    The path has the names of the newer layout; only a dropped field has its older name. `detail`
    describes the difference.
    """

    kind: DifferenceKind
    field: str
    detail: str


def compare_layouts(
    old: StructLayout, new: StructLayout, prefix: str = ""
) -> Iterator[LayoutDifference]:
    """Yields the differences between two layouts; a struct comes before its fields.

    `prefix` is the path of the struct with a dot after it, "" for the whole message. The path of
    each field begins with `prefix`; the path of the struct is `prefix` without the dot.
    """
    path = prefix.rstrip(".")
    if old.flexible != new.flexible:
        words = {True: "flexible", False: "not flexible"}
        detail = f"was {words[old.flexible]}, is {words[new.flexible]}"
        yield LayoutDifference(DifferenceKind.FLEXIBLE, path, detail)
    names, new_names = _names(old.fields), _names(new.fields)
    moved = _moved(names, new_names)
    if moved:
        detail = f"was {', '.join(names)}; is {', '.join(new_names)}"
        yield LayoutDifference(DifferenceKind.ORDER, path, detail)
    if len(names) == len(new_names) and not moved:
        pairs = list(zip(old.fields, new.fields, strict=True))
    else:
        yield from _fields_changed(names, new_names, path)
        by_name = {entry.name: entry for entry in new.fields}
        pairs = [(entry, by_name[entry.name]) for entry in old.fields if entry.name in by_name]
    for before, after in pairs:
        yield from _compare_fields(before, after, prefix)
    yield from _compare_tagged(old.tagged, new.tagged, prefix)


def _moved(old: list[str], new: list[str]) -> bool:
    """Returns True if both lists are equally long, and a name has another index in `new`."""
    return len(old) == len(new) and any(
        name in new and new.index(name) != index for index, name in enumerate(old)
    )


def _names(fields: Sequence[LayoutField]) -> list[str]:
    return [entry.name for entry in fields]


def _fields_changed(old: list[str], new: list[str], path: str) -> Iterator[LayoutDifference]:
    removed = [name for name in old if name not in new]
    added = [name for name in new if name not in old]
    if not removed and not added:
        return
    parts = [
        f"{words} {', '.join(found)}" for words, found in (("has no", removed), ("has", added))
    ]
    detail = "; ".join(part for part, found in zip(parts, (removed, added), strict=True) if found)
    yield LayoutDifference(DifferenceKind.FIELDS, path, f"now {detail}")


def _compare_tagged(
    old: Sequence[LayoutField], new: Sequence[LayoutField], prefix: str
) -> Iterator[LayoutDifference]:
    known = {entry.name for entry in old}
    by_name = {entry.name: entry for entry in new}
    renamed = {entry.tag: entry for entry in new if entry.name not in known}
    for before in old:
        after = by_name.get(before.name) or renamed.pop(before.tag, None)
        if after is None:
            kind, name = DifferenceKind.TAG_DROPPED, before.name
            yield LayoutDifference(kind, prefix + name, f"tag {before.tag}")
            continue
        if after.tag != before.tag:
            detail = f"was tag {before.tag}; is tag {after.tag}"
            yield LayoutDifference(DifferenceKind.TAG_CHANGED, prefix + after.name, detail)
        yield from _compare_fields(before, after, prefix)
    for tag, after in renamed.items():
        yield LayoutDifference(DifferenceKind.TAG_ADDED, prefix + after.name, f"tag {tag}")


def _compare_fields(old: LayoutField, new: LayoutField, prefix: str) -> Iterator[LayoutDifference]:
    path = prefix + new.name
    before, after = wire_words(old.type), wire_words(new.type)
    if before != after:
        kind = DifferenceKind.FIELD_TYPE
        if _boxed(new.type) is not None and wire_words(old.type) == _boxed(new.type):
            kind = DifferenceKind.FIELD_BOXED
        was = before if old.name == new.name else f"{old.name}, {before}"
        yield LayoutDifference(kind, path, f"was {was}; is {after}")
    elif old.name != new.name:
        yield LayoutDifference(DifferenceKind.FIELD_RENAMED, path, f"was {old.name}")
    # Compares the repr: -0.0 equals 0.0 although their bytes differ, and NaN is unequal to itself.
    if before == after and repr(old.default) != repr(new.default):
        detail = f"was {default_words(old)}; is {default_words(new)}"
        yield LayoutDifference(DifferenceKind.DEFAULT, path, detail)
    inner, outer = struct_of(old.type), struct_of(new.type)
    if inner is not None and outer is not None:
        yield from compare_layouts(inner, outer, path + ".")


def default_words(field: LayoutField) -> str:
    """Returns the default as a definition writes it: `null`, `true`, `1.5`, a uuid in base64url.

    An empty default is `""`. A struct whose default is not null is `not null`.
    """
    default = field.default
    match default:
        case None:
            return "null"
        case bool():
            return "true" if default else "false"
        case bytes() if field.type.kind == "uuid":
            return base64.urlsafe_b64encode(default).decode("ascii").rstrip("=")
        case str() | bytes():
            if field.type.struct is not None:
                return "not null"
            return json.dumps(field.spec.default or "")
    return str(default)


def wire_words(wire: WireType) -> str:
    """Describes the encoding of a type, such as `compact nullable bytes`.

    Describes the type `records` as `bytes`, because the encoding is the same.
    """
    if wire.element is not None:
        name = f"[]{wire_words(wire.element)}"
    else:
        name = "bytes" if wire.kind == "records" else wire.kind
    return ("compact " if wire.compact else "") + ("nullable " if wire.nullable else "") + name


def _boxed(wire: WireType) -> str | None:
    """Describes the array of primitives that has the same bytes as an array of structs.

    Returns None for other types, and if the struct does not have exactly one field. Also returns
    None for a flexible struct: it ends with tagged fields, so its bytes differ.
    """
    struct = None if wire.element is None else wire.element.struct
    if struct is None or struct.flexible or len(struct.fields) != 1 or struct.tagged:
        return None
    unboxed = WireType("array", wire.compact, wire.nullable, element=struct.fields[0].type)
    return wire_words(unboxed)
