"""Rules about single fields: versions, types, defaults, keys and tags.

Each function is a rule in `table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from typing import Final

from kproto.schema.specs import PRIMITIVE_TYPES
from kproto.schema.versions import Versions

from ..reading.parser import Definition
from .defaults import fault_of_default
from .finding import Finding, field_groups, located_fields, spec_finding, struct_definitions

__all__ = ["ENTITY_TYPES"]

#: The required type of a field (or of its elements) by entity type; None for all types.
ENTITY_TYPES: Final = {
    "unknown": None,
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}

_STRUCT_NAME = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)
_NULLABLE_TYPES = frozenset({"string", "bytes", "records"})


# Versions of fields


def field_versions_used(definition: Definition) -> Iterator[Finding]:
    """Reports a field that exists in no valid version of its message.

    The finding is a note, not an error, because Kafka has such a field. Skips fields that define a
    struct, because `struct_in_a_version` reports them as errors.
    """
    valid = definition.spec.valid_versions
    if not valid:
        return
    for located, field in located_fields(definition):
        if not field.fields and not field.versions.intersect(valid):
            yield spec_finding(
                definition,
                located,
                "versions",
                f"is in no valid version: its versions are {field.versions}, "
                f"those of the message {valid}",
                accepted=True,
            )


def nested_versions(definition: Definition) -> Iterator[Finding]:
    """Checks that a field in a struct has a version in common with all structs that contain it."""
    for located, field in located_fields(definition):
        if not located.parents or not field.versions:
            continue
        outer = reduce(Versions.intersect, (parent.versions for parent in located.parents))
        if outer and not field.versions.intersect(outer):
            yield spec_finding(
                definition,
                located,
                "versions",
                f"no version of the structs around it, {outer}, is in its versions "
                f"{field.versions}",
            )


def common_struct_versions(definition: Definition) -> Iterator[Finding]:
    """Checks that a field whose type is a common struct has a version in common with the struct.

    The field must not begin at an earlier version than the struct: Kafka's generator has no schema
    of the struct in earlier versions.
    """
    valid = definition.spec.valid_versions
    common = {located.spec.name: located.spec for located in definition.structs()}
    for located, field in located_fields(definition):
        struct = common.get(field.element_type)
        if struct is None or not struct.versions or not field.versions:
            continue
        used = reduce(Versions.intersect, (around.versions for around in located.parents), valid)
        used = used.intersect(field.versions)
        known = struct.versions.intersect(valid or struct.versions)
        if not field.versions.intersect(struct.versions) or (used and not known):
            yield spec_finding(
                definition,
                located,
                "versions",
                f"no version of the struct {struct.name}, {struct.versions}, is in its versions "
                f"{field.versions}",
            )
        elif used and used.lowest < known.lowest:
            yield spec_finding(
                definition,
                located,
                "versions",
                f"is in version {used.lowest}, before the first of the struct {struct.name}, "
                f"whose versions are {struct.versions}",
            )


def nullable_type(definition: Definition) -> Iterator[Finding]:
    """Checks that nullable fields are strings, bytes, records, arrays or structs."""
    for located, field in located_fields(definition):
        can_be = field.type not in PRIMITIVE_TYPES or field.type in _NULLABLE_TYPES
        if field.nullable_versions and not can_be:
            yield spec_finding(
                definition,
                located,
                "nullableVersions",
                f"a field of type {field.type} cannot be nullable",
            )


# Types of fields


def known_type(definition: Definition) -> Iterator[Finding]:
    """Checks that each type is a primitive, a defined struct, or an array of one of these.

    `[]records` is not allowed.
    """
    structs = {name for name, _ in struct_definitions(definition)}
    common = {located.spec.name for located in definition.structs()}
    for located, field in located_fields(definition):
        name = field.element_type
        if name in PRIMITIVE_TYPES and field.type != "[]records":
            continue
        if field.type == "[]records":
            reason = "an array of records is not allowed; put the records into a struct"
        elif name.startswith("[]"):
            reason = "an array of arrays; put the inner one into a struct"
        elif not name:
            reason = "an array without a type for its elements"
        elif name.lower() in PRIMITIVE_TYPES:
            reason = f"{name!r} is no type; {name.lower()} is"
        elif _STRUCT_NAME.fullmatch(name) is None:
            reason = f"{name!r} is no type, and no name that a struct can have"
        elif name == definition.spec.name and name not in structs:
            reason = f"is recursive: {name} holds {name}, the message itself"
        elif name not in structs and definition.lacks_structs:
            continue  # the struct may be one that could not be read
        elif name not in structs:
            reason = f"the struct {name} is not defined: it has no fields"
        elif name not in common and not field.fields:
            reason = f"the struct {name} is used twice; define it in commonStructs"
        else:
            continue
        yield spec_finding(definition, located, "type", reason)


def fields_of_struct(definition: Definition) -> Iterator[Finding]:
    """Checks that only structs and arrays of structs have fields."""
    for located, field in located_fields(definition):
        if field.fields and field.element_type in PRIMITIVE_TYPES:
            yield spec_finding(
                definition, located, "fields", f"a field of type {field.type} cannot have fields"
            )


def default_fits(definition: Definition) -> Iterator[Finding]:
    """Checks that a default is valid for the type of the field.

    The default null is valid only if the field is nullable in all its versions.
    """
    for located, field in located_fields(definition):
        reason = fault_of_default(field)
        if reason is not None:
            yield spec_finding(definition, located, "default", f"default: {reason}")


def entity_type(definition: Definition) -> Iterator[Finding]:
    """Checks that a field with an entity type has the type in ENTITY_TYPES.

    An entity type that Kafka lacks is a note, not an error, because other projects have their own.
    """
    for located, field in located_fields(definition):
        if field.entity_type is None:
            continue
        if field.entity_type not in ENTITY_TYPES:
            reason = (
                f"{field.entity_type!r} is no entity type of Kafka, which has "
                f"{', '.join(ENTITY_TYPES)}"
            )
            yield spec_finding(definition, located, "entityType", reason, accepted=True)
            continue
        expected = ENTITY_TYPES[field.entity_type]
        if expected is not None and field.element_type != expected:
            yield spec_finding(
                definition,
                located,
                "entityType",
                f"a {field.entity_type} is of type {expected}, not {field.element_type}",
            )


def zero_copy_bytes(definition: Definition) -> Iterator[Finding]:
    """Checks that only fields of type bytes are zeroCopy."""
    for located, field in located_fields(definition):
        if field.zero_copy and field.type != "bytes":
            yield spec_finding(
                definition, located, "zeroCopy", f"zeroCopy is for bytes, not for {field.type}"
            )


def field_flexible_versions(definition: Definition) -> Iterator[Finding]:
    """Checks that only string and bytes fields have flexibleVersions.

    The flexibleVersions of a field must be among those of the message.
    """
    spec = definition.spec
    for located, field in located_fields(definition):
        if field.flexible_versions is None:
            continue
        beyond = not spec.flexible_versions.covers(field.flexible_versions)
        if field.type in {"string", "bytes"} and beyond and spec.valid_versions:
            yield spec_finding(
                definition,
                located,
                "flexibleVersions",
                f"flexibleVersions {field.flexible_versions} are not all among those of the "
                f"message, {spec.flexible_versions}",
            )
        elif field.type not in {"string", "bytes"}:
            yield spec_finding(
                definition,
                located,
                "flexibleVersions",
                f"only string and bytes have flexibleVersions of their own, not {field.type}",
            )


# Keys and tags of fields


def valid_map_key(definition: Definition) -> Iterator[Finding]:
    """Checks that a mapKey is a primitive field of a struct, and not tagged.

    Arrays and structs cannot be keys in Python, because they are mutable.
    """
    for located, field in located_fields(definition):
        if field.map_key and not located.parents:
            yield spec_finding(
                definition, located, "mapKey", "a field of the message itself cannot be a mapKey"
            )
        if field.map_key and field.tag is not None:
            yield spec_finding(definition, located, "mapKey", "a tagged field cannot be a mapKey")
        if field.map_key and field.type not in PRIMITIVE_TYPES:
            yield spec_finding(
                definition, located, "mapKey", f"a field of type {field.type} cannot be a mapKey"
            )


def tag_numbers(definition: Definition) -> Iterator[Finding]:
    """Checks that the tags of a struct are 0, 1, 2 … without duplicates or gaps, in any order."""
    for group in field_groups(definition):
        seen: dict[int, str] = {}
        tagged = [(located, field.tag) for located, field in group if field.tag is not None]
        for located, tag in tagged:
            if tag < 0:
                yield spec_finding(definition, located, "tag", f"the tag {tag} is negative")
            elif tag in seen:
                yield spec_finding(
                    definition, located, "tag", f"the tag {tag} is also the tag of {seen[tag]}"
                )
            elif tag >= len(tagged):
                missing = min(set(range(len(tagged))) - {number for _, number in tagged})
                yield spec_finding(
                    definition, located, "tag", f"the tag {tag} leaves a gap; use {missing} first"
                )
            seen.setdefault(tag, located.path)


def tag_and_tagged_versions(definition: Definition) -> Iterator[Finding]:
    """Checks that a field has both a tag and taggedVersions, or neither."""
    for located, field in located_fields(definition):
        if field.tag is not None and not field.tagged_versions:
            yield spec_finding(definition, located, "tag", "has a tag, but no taggedVersions")
        if field.tag is None and field.tagged_versions:
            yield spec_finding(
                definition, located, "taggedVersions", "has taggedVersions, but no tag"
            )


def tagged_versions_range(definition: Definition) -> Iterator[Finding]:
    """Checks that taggedVersions have no end, and are within versions and flexibleVersions.

    The flexibleVersions are those of the field, or of the message if the field has none.
    """
    of_message = definition.spec.flexible_versions
    for located, field in located_fields(definition):
        tagged = field.tagged_versions
        flexible = of_message if field.flexible_versions is None else field.flexible_versions
        if not tagged:
            continue
        if not tagged.open_ended:
            reason = f"taggedVersions {tagged} has an end; write {tagged.lowest}+"
            yield spec_finding(definition, located, "taggedVersions", reason)
        elif not field.versions.covers(tagged):
            reason = f"taggedVersions {tagged} are not all among its versions {field.versions}"
            yield spec_finding(definition, located, "taggedVersions", reason)
        if not flexible.covers(tagged) and (tagged.open_ended or not flexible):
            reason = f"taggedVersions {tagged} are not all among the flexibleVersions {flexible}"
            yield spec_finding(definition, located, "taggedVersions", reason)


def tagged_null(definition: Definition) -> Iterator[Finding]:
    """Checks that a field is nullable in all of its taggedVersions, or in none."""
    for located, field in located_fields(definition):
        both = field.nullable_versions.intersect(field.tagged_versions)
        if both and both != field.tagged_versions:
            yield spec_finding(
                definition,
                located,
                "nullableVersions",
                f"is nullable in some of its taggedVersions {field.tagged_versions}, "
                f"in {both}; it must be in all or in none",
            )


def tagged_records(definition: Definition) -> Iterator[Finding]:
    """Checks that records are not tagged, because Kafka does not know their length in advance."""
    for located, field in located_fields(definition):
        if field.type == "records" and field.tagged_versions:
            yield spec_finding(definition, located, "taggedVersions", "records cannot be tagged")
