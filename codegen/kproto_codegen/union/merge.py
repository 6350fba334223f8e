"""Merges an older and a newer definition of the same message into one.

The versions of the newer definition stay as they are. The versions that only the older definition
has are added: fields are matched, and their version ranges are joined. `release_union` decides
which messages are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from kproto.schema.layout import StructLayout, WireType, layout
from kproto.schema.specs import PRIMITIVE_TYPES, FieldSpec, MessageSpec, StructSpec
from kproto.schema.versions import MAX_VERSION, NO_VERSIONS, Versions

from ..errors import DefinitionError

__all__ = ["merge_messages", "wire_form"]

#: A layout without names: versions with equal wire forms have equal bytes.
WireForm: TypeAlias = tuple[Any, ...]


def wire_form(struct: StructLayout) -> WireForm:
    """Returns the layout without names: types, nullability, encodings and tags."""
    return (
        struct.flexible,
        tuple(_type_form(entry.type) for entry in struct.fields),
        tuple((entry.tag, _type_form(entry.type)) for entry in struct.tagged),
    )


def _type_form(wire: WireType) -> WireForm:
    element = None if wire.element is None else _type_form(wire.element)
    inner = None if wire.struct is None else wire_form(wire.struct)
    kind = "bytes" if wire.kind == "records" else wire.kind
    return (kind, wire.compact, wire.nullable, element, inner)


def _untagged_form(struct: StructLayout) -> WireForm:
    """Returns the layout without names and without tagged fields."""
    return (struct.flexible, tuple(_untagged_type_form(entry.type) for entry in struct.fields))


def _untagged_type_form(wire: WireType) -> WireForm:
    element = None if wire.element is None else _untagged_type_form(wire.element)
    inner = None if wire.struct is None else _untagged_form(wire.struct)
    kind = "bytes" if wire.kind == "records" else wire.kind
    return (kind, wire.compact, wire.nullable, element, inner)


class _GapError(Exception):
    """Raised if two version ranges have a gap between them; internal to this module."""


@dataclass(frozen=True, slots=True)
class _VersionSplit:
    """The versions that come from the older definition, and those that come from the newer one.

    `newer` has the versions that come from the newer definition. `below` and `above` have the older
    versions before `newer` and after `newer`. The highest range that is not empty has no upper end.
    """

    below: Versions
    newer: Versions
    above: Versions

    @classmethod
    def of(cls, old: Versions, new: Versions) -> _VersionSplit:
        below = old.intersect(Versions(0, new.lowest - 1))
        above = old.intersect(Versions(new.highest + 1, MAX_VERSION))
        if above:
            return cls(below, new, Versions(above.lowest, MAX_VERSION))
        return cls(below, Versions(new.lowest, MAX_VERSION), NO_VERSIONS)

    @property
    def has_older_versions(self) -> bool:
        """Returns True if a version comes from the older definition."""
        return bool(self.below or self.above)

    def join(self, old: Versions, new: Versions) -> Versions:
        """Returns the versions of a part of the union, such as a field.

        `old` are the versions of that part in the older definition, `new` those in the newer
        definition. Counts only those versions in `old` that the union takes from the older
        definition, and only those versions in `new` that the union takes from the newer definition.
        Raises _GapError if the result would have a gap.
        """
        joined = NO_VERSIONS
        for part in (old.intersect(self.below), new.intersect(self.newer)):
            joined = _join(joined, part)
        return _join(joined, old.intersect(self.above))

    def lacks_older_version(self, versions: Versions) -> bool:
        """Returns True if `versions` lacks a version that only the older definition has."""
        return not (versions.covers(self.below) and versions.covers(self.above))

    def overlaps_older(self, versions: Versions) -> bool:
        """Returns True if `versions` has a version that only the older definition has."""
        return bool(versions.intersect(self.below) or versions.intersect(self.above))


def _join(first: Versions, second: Versions) -> Versions:
    if first and second and first.highest + 1 < second.lowest:
        raise _GapError
    return first.span(second)


def merge_messages(old: MessageSpec, new: MessageSpec) -> MessageSpec:
    """Returns a message with the versions of the definitions `old` and `new`.

    A version that `old` and `new` both have is taken from `new`. A renamed field with the same
    bytes gets the old name as an alias. Raises DefinitionError if no single definition can express
    all these versions.
    """
    formerly = tuple(dict.fromkeys((*old.formerly, *new.formerly)))
    if not new.valid_versions:
        return replace(old, formerly=formerly)
    if not old.valid_versions:
        return replace(new, formerly=formerly)
    if _have_gap(old.valid_versions, new.valid_versions):
        raise DefinitionError(
            f"versions {old.valid_versions} of one release and {new.valid_versions} of the next "
            "leave a gap that no release fills; add a release between them",
            field=new.name,
        )
    try:
        merged = _Merger(old, new).message()
    except _GapError:
        raise DefinitionError(
            "a field, or the flexible versions, would have versions with a gap in the union",
            field=new.name,
        ) from None
    _verify(merged, old, new)
    return replace(merged, formerly=formerly)


def _have_gap(old: Versions, new: Versions) -> bool:
    return old.highest + 1 < new.lowest or new.highest + 1 < old.lowest


def _verify(merged: MessageSpec, old: MessageSpec, new: MessageSpec) -> None:
    """Raises DefinitionError if a version is encoded differently in `merged` than in its source.

    The source of a version is `new`, or `old` if `new` lacks the version.
    """
    for version in merged.valid_versions:
        source = new if version in new.valid_versions else old
        if wire_form(layout(merged, version)) != wire_form(layout(source, version)):
            raise DefinitionError(
                f"version {version} has other bytes in the union than in its own release",
                field=merged.name,
            )


@dataclass(slots=True)
class _Matches:
    """The matches between the fields of an older struct, `old`, and those of a newer struct.

    `by_new_name` maps the name of a newer field to the matching older field. `aliases` maps the
    name of a newer field to its older names. `unmatched` are the older fields to add to the merged
    struct.
    """

    old: Sequence[FieldSpec]
    by_new_name: dict[str, FieldSpec] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    unmatched: list[FieldSpec] = field(default_factory=list)


class _Merger:
    """Merges an older and a newer definition of a message."""

    def __init__(self, old: MessageSpec, new: MessageSpec) -> None:
        self.old = old
        self.new = new
        self.split = _VersionSplit.of(old.valid_versions, new.valid_versions)
        self.old_structs = {struct.name: struct.fields for struct in old.structs()}
        self.new_structs = {struct.name: struct.fields for struct in new.structs()}
        shared = old.valid_versions.intersect(new.valid_versions)
        # The shared versions, beginning next to the versions that only the older definition has.
        nearest = list(shared) if self.split.below or not self.split.above else list(shared)[::-1]
        #: Versions with the same bytes in both definitions, except for tagged fields.
        self.same_layout_versions = [
            version
            for version in nearest
            if _untagged_form(layout(old, version)) == _untagged_form(layout(new, version))
        ]
        #: Maps the name of an older struct to its name in the merged message.
        self.struct_names: dict[str, str] = {}
        #: Maps the name of a newer struct to the matches with the older structs that it replaces.
        self.struct_matches: dict[str, list[_Matches]] = {}
        self.restored_structs: dict[str, tuple[FieldSpec, ...]] = {}

    def message(self) -> MessageSpec:
        old, new, split = self.old, self.new, self.split
        top = self._match(old.fields, new.fields)
        fields = self._merged_fields(new.fields, [top])
        structs = {
            name: self._merged_fields(struct_fields, self.struct_matches.get(name, []))
            for name, struct_fields in self.new_structs.items()
        }
        structs |= {
            name: tuple(
                self._restored_field(entry)
                for entry in struct_fields
                if self.split.overlaps_older(entry.versions)
            )
            for name, struct_fields in self.restored_structs.items()
        }
        common = self._common_structs(fields, structs)
        shell = replace(
            new,
            fields=tuple(_with_inner(entry, structs, common) for entry in fields),
            common_structs=tuple(
                StructSpec(
                    name,
                    versions,
                    tuple(_with_inner(entry, structs, common) for entry in structs[name]),
                )
                for name, versions in common.items()
            ),
        )
        if not split.has_older_versions:
            return shell
        return replace(
            shell,
            valid_versions=old.valid_versions.span(new.valid_versions),
            flexible_versions=split.join(old.flexible_versions, new.flexible_versions),
            deprecated_versions=old.deprecated_versions.span(new.deprecated_versions),
            latest_version_unstable=(
                old.latest_version_unstable if split.above else new.latest_version_unstable
            ),
            listeners=new.listeners or old.listeners,
        )

    # Matching fields

    def _match(self, old: Sequence[FieldSpec], new: Sequence[FieldSpec]) -> _Matches:
        """Matches the fields of an older and a newer struct, and their inner structs.

        Matches fields by wire position in the versions whose layouts are the same in both
        definitions. Matches the remaining fields by name and type. For an older field without a
        match, adds its struct to the merged message.
        """
        matches = _Matches(old)
        matched: dict[str, FieldSpec] = {}
        new_names = {entry.name for entry in new}
        for before, after in self._same_position(old, new):
            if before.name not in new_names:
                aliases = matches.aliases.setdefault(after.name, [])
                aliases += [before.name] if before.name not in aliases else []
            is_unmatched = before.name not in matched and after.name not in matches.by_new_name
            if is_unmatched and self._can_merge(before, after):
                matched[before.name] = after
                matches.by_new_name[after.name] = before
        by_name = {entry.name: entry for entry in new if entry.name not in matches.by_new_name}
        for before in old:
            counterpart = by_name.get(before.name)
            if (
                before.name not in matched
                and counterpart is not None
                and self._can_merge(before, counterpart)
            ):
                matched[before.name] = counterpart
                matches.by_new_name[counterpart.name] = before
        for before in old:
            if before.name in matched:
                self._match_structs(before, matched[before.name])
            elif self.split.overlaps_older(before.versions):
                matches.unmatched.append(before)
                self._restore_struct(before)
        return matches

    def _same_position(
        self, old: Sequence[FieldSpec], new: Sequence[FieldSpec]
    ) -> Iterator[tuple[FieldSpec, FieldSpec]]:
        for version in self.same_layout_versions:
            before = _present(old, version, tagged=False)
            after = _present(new, version, tagged=False)
            if len(before) == len(after):  # they may differ in a struct that no version uses
                yield from zip(before, after, strict=True)
            by_tag = {entry.tag: entry for entry in _present(new, version, tagged=True)}
            for entry in _present(old, version, tagged=True):
                counterpart = by_tag.get(entry.tag)
                if counterpart is not None and self._same_bytes(entry, counterpart, version):
                    yield entry, counterpart

    def _same_bytes(self, old: FieldSpec, new: FieldSpec, version: int) -> bool:
        """Returns True if two fields have the same bytes in a version.

        Tagged fields of the structs inside are not compared.
        """
        if _shape(old) != _shape(new) or old.element_type in PRIMITIVE_TYPES:
            return _shape(old) == _shape(new)
        before = _present(self.old_structs[old.element_type], version, tagged=False)
        after = _present(self.new_structs[new.element_type], version, tagged=False)
        return len(before) == len(after) and all(
            self._same_bytes(one, other, version) for one, other in zip(before, after, strict=True)
        )

    def _can_merge(self, old: FieldSpec, new: FieldSpec) -> bool:
        """Returns True if one field can stand for `old` and `new`, each in its own versions."""
        if _shape(old) != _shape(new):
            return False
        if old.tag is not None and new.tag is not None and old.tag != new.tag:
            return False
        try:
            self._merged(old, new, [])
        except _GapError:
            return False
        return True

    def _match_structs(self, old: FieldSpec, new: FieldSpec) -> None:
        before, after = old.element_type, new.element_type
        if before in PRIMITIVE_TYPES or before in self.struct_names:
            return
        self.struct_names[before] = after
        matches = self._match(self.old_structs[before], self.new_structs[after])
        self.struct_matches.setdefault(after, []).append(matches)

    def _restore_struct(self, old: FieldSpec) -> None:
        """Adds the struct type of the field `old`, and its inner structs, to the merged message.

        `old` is a field that only the older definition has. If the newer definition has a struct
        with the same name, matches the fields of both structs instead.
        """
        name = old.element_type
        if name in PRIMITIVE_TYPES or name in self.struct_names:
            return
        if name in self.new_structs:
            self._match_structs(old, old)
            return
        self.struct_names[name] = name
        self.restored_structs[name] = self.old_structs[name]
        for inner in self.old_structs[name]:
            self._restore_struct(inner)

    # Merging matched fields

    def _merged_fields(
        self, new: Sequence[FieldSpec], found: Sequence[_Matches]
    ) -> tuple[FieldSpec, ...]:
        fields = {entry.name: entry for entry in new}
        order = [entry.name for entry in new]
        for matches in found:
            for entry in new:
                aliases = matches.aliases.get(entry.name, [])
                before = matches.by_new_name.get(entry.name)
                fields[entry.name] = self._merged(before, fields[entry.name], aliases)
            self._insert(matches, fields, order)
        if not found and self.split.has_older_versions:
            return tuple(self._merged(None, entry, []) for entry in new)
        return tuple(fields[name] for name in order)

    def _insert(self, matches: _Matches, fields: dict[str, FieldSpec], order: list[str]) -> None:
        """Adds the fields of the older definition that match no field of the newer definition.

        Each field is added after its predecessor in the older struct.
        """
        continued = {before.name: after for after, before in matches.by_new_name.items()}
        restored_names = {before.name for before in matches.unmatched}
        position = 0
        for before in matches.old:
            if before.name in restored_names:
                name = before.name if before.name not in fields else _versioned_name(before)
                fields[name] = replace(self._restored_field(before), name=name)
                order.insert(position, name)
                position += 1
            elif before.name in continued:
                position = max(position, order.index(continued[before.name]) + 1)

    def _merged(self, old: FieldSpec | None, new: FieldSpec, aliases: Sequence[str]) -> FieldSpec:
        """Returns the field `new` with the versions of both `old` and `new`.

        If `old` is None, returns `new` with its own versions. Raises _GapError if a version range
        of the result would have a gap.
        """
        inherited = () if old is None else old.aliases
        names = dict.fromkeys((*new.aliases, *inherited, *aliases))
        named = replace(new, aliases=tuple(name for name in names if name != new.name))
        if not self.split.has_older_versions:
            return named
        if old is None:
            return replace(named, versions=self.split.join(NO_VERSIONS, new.versions))
        join = self.split.join
        return replace(
            named,
            versions=join(old.versions, new.versions),
            nullable_versions=join(
                old.nullable_versions.intersect(old.versions),
                new.nullable_versions.intersect(new.versions),
            ),
            tagged_versions=join(old.tagged_versions, new.tagged_versions),
            tag=old.tag if new.tag is None else new.tag,
            flexible_versions=self._field_flexible(old, new),
            ignorable=new.ignorable
            or (old.ignorable and self.split.lacks_older_version(old.versions)),
            entity_type=new.entity_type or old.entity_type,
            about=new.about or old.about,
        )

    def _field_flexible(self, old: FieldSpec, new: FieldSpec) -> Versions | None:
        if old.flexible_versions is None and new.flexible_versions is None:
            return None
        before, after = old.flexible_versions, new.flexible_versions
        return self.split.join(
            self.old.flexible_versions if before is None else before,
            self.new.flexible_versions if after is None else after,
        )

    def _restored_field(self, old: FieldSpec) -> FieldSpec:
        """Returns a field that only the older definition has, limited to the older versions."""
        name = self.struct_names.get(old.element_type, old.element_type)
        prefix = "[]" if old.is_array else ""
        versions = self.split.join(old.versions, NO_VERSIONS)
        return replace(
            old,
            type=prefix + name,
            versions=versions,
            nullable_versions=old.nullable_versions.intersect(versions),
            tagged_versions=old.tagged_versions.intersect(versions),
        )

    def _common_structs(
        self, fields: Sequence[FieldSpec], structs: dict[str, tuple[FieldSpec, ...]]
    ) -> dict[str, Versions]:
        """Returns the names and versions of the structs to define in commonStructs.

        These are the structs that are common in one of the definitions, or that several fields use.
        """
        before = {struct.name: struct.versions for struct in self.old.common_structs}
        common = {
            struct.name: struct.versions
            for struct in self.new.common_structs
            if struct.name in structs  # other common structs are not used by a field
        }
        for old_name, name in self.struct_names.items():
            if name in common and old_name in before:
                common[name] = common[name].span(before[old_name])
        uses: dict[str, list[FieldSpec]] = {}
        for entry in (
            *fields,
            *(inner for struct_fields in structs.values() for inner in struct_fields),
        ):
            if entry.element_type in structs:
                uses.setdefault(entry.element_type, []).append(entry)
        for name, users in uses.items():
            if len(users) > 1 or name in before:
                versions = before.get(name, NO_VERSIONS)
                for user in users:
                    versions = versions.span(user.versions)
                common.setdefault(name, versions)
        return common


def _present(fields: Sequence[FieldSpec], version: int, *, tagged: bool) -> list[FieldSpec]:
    """Returns the fields, or the tagged fields, that a version has, in wire order."""
    found = [
        entry
        for entry in fields
        if version in entry.versions and (version in entry.tagged_versions) == tagged
    ]
    return sorted(found, key=lambda entry: entry.tag or 0) if tagged else found


def _shape(entry: FieldSpec) -> str:
    """Returns the type of a field, with `struct` for all structs, and `bytes` for records."""
    name = "bytes" if entry.element_type == "records" else entry.element_type
    return ("[]" if entry.is_array else "") + (name if name in PRIMITIVE_TYPES else "struct")


def _versioned_name(entry: FieldSpec) -> str:
    """Returns a new name for an older field whose name a newer field has, such as `NameV3`.

    The number is the lowest version of the older field.
    """
    return f"{entry.name}V{entry.versions.lowest}"


def _with_inner(
    entry: FieldSpec, structs: dict[str, tuple[FieldSpec, ...]], common: dict[str, Versions]
) -> FieldSpec:
    """Returns the field `entry` with its inner fields replaced by those that `structs` has.

    The field has no inner fields if its type is no struct, or is a struct in `common`.
    """
    name = entry.element_type
    if name not in structs or name in common:
        return replace(entry, fields=())
    return replace(
        entry, fields=tuple(_with_inner(inner, structs, common) for inner in structs[name])
    )
