"""Rules about structs: their names, the names of their fields, their nesting and their versions.

Each function is a rule in `table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from kproto.schema.naming import attribute_name, class_name, snake_case
from kproto.schema.specs import FieldSpec, StructSpec
from kproto.schema.versions import NO_VERSIONS, Versions

from ..reading.parser import Definition, LocatedSpec
from ..struct_versions import first_gap, versions_in_use, versions_with_bytes
from .finding import (
    Finding,
    field_groups,
    located_fields,
    message_finding,
    spec_finding,
    struct_definitions,
)

__all__ = ["MAX_EXPANDED_FIELDS", "MAX_NAME_LENGTH", "MAX_STRUCT_DEPTH"]

#: Maximum number of levels of nested structs, because code that walks a message recurses at each
#: level. Kafka's deepest message has 5.
MAX_STRUCT_DEPTH: Final = 32

#: Maximum number of fields of a message. The fields of a struct count once for each use of the
#: struct: if each common struct uses the next common struct twice, the number of fields grows
#: exponentially. Kafka's messages have fewer than 100.
MAX_EXPANDED_FIELDS: Final = 10_000

#: Maximum number of characters of a name. File systems allow 255 for the name of a module, which
#: has underscores and a suffix in addition. Kafka's longest name has 45.
MAX_NAME_LENGTH: Final = 120

_FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
_STRUCT_NAME = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)


def struct_defined_once(definition: Definition) -> Iterator[Finding]:
    """Checks that a struct is defined only once: in commonStructs, or by a field."""
    first: dict[str, int] = {}
    for name, located in struct_definitions(definition):
        if name in first:
            yield spec_finding(
                definition,
                located,
                "fields",
                f"the struct {name} is defined twice, first on line {first[name]}",
            )
        first.setdefault(name, located.line)


def struct_name(definition: Definition) -> Iterator[Finding]:
    """Checks that a struct's name is a valid class name and differs from the message's name."""
    for located in definition.structs():
        name = located.spec.name
        if _STRUCT_NAME.fullmatch(name) is None:
            reason = "use ASCII letters and digits, a capital first"
            yield spec_finding(
                definition, located, "name", f"{name!r} is no name of a struct: {reason}"
            )
    for name, located in struct_definitions(definition):
        if name == definition.spec.name:
            yield spec_finding(
                definition, located, "type", f"the struct {name} has the name of its message"
            )


def struct_names_in_python(definition: Definition) -> Iterator[Finding]:
    """Checks that two structs of a message do not get the same class or function name in Python.

    For example, the functions for `TopicID` and `TopicId` would both be called `topic_id`.
    """
    spec = definition.spec
    first = dict.fromkeys(_python_names(spec.name, spec.fields), spec.name)
    for name, located in struct_definitions(definition):
        if name == spec.name:  # the rule `struct_name` reports such a struct
            continue
        made = _python_names(name, located.spec.fields)
        other = next((first[entry] for entry in made if first.get(entry, name) != name), None)
        if other is not None:
            reason = f"the struct {name} and {other} would have the same names in Python"
            yield spec_finding(definition, located, "type", reason)
        for entry in made:
            first.setdefault(entry, name)


def _python_names(name: str, fields: Sequence[FieldSpec]) -> list[str]:
    """Returns the names of the generated classes and functions for a struct or message."""
    made = [class_name(name), snake_case(name)]
    if any(field.map_key for field in fields):
        made.append(f"{class_name(name)}Collection")
    if any(field.tag is not None for field in fields):
        made.append(f"{snake_case(name)}_tags")
    return made


def name_lengths(definition: Definition) -> Iterator[Finding]:
    """Checks that names have at most MAX_NAME_LENGTH characters."""
    spec = definition.spec
    if len(spec.name) > MAX_NAME_LENGTH:
        yield message_finding(definition, "name", _too_long("a message", spec.name))
    for located in [*definition.structs(), *definition.fields()]:
        if len(located.spec.name) > MAX_NAME_LENGTH:
            short = replace(located, path=f"{located.path[:MAX_NAME_LENGTH]}…")
            reason = _too_long("a field or struct", located.spec.name)
            yield spec_finding(definition, short, "name", reason)
    for located, field in located_fields(definition):
        if len(field.element_type) > MAX_NAME_LENGTH:
            yield spec_finding(definition, located, "type", _too_long("a type", field.element_type))


def _too_long(what: str, name: str) -> str:
    return f"the name of {what} has {len(name)} characters; at most {MAX_NAME_LENGTH}"


def field_names(definition: Definition) -> Iterator[Finding]:
    """Checks that field names are ASCII letters and digits, and are unique as attributes."""
    for group in field_groups(definition):
        seen: dict[str, str] = {}
        for located, field in group:
            if _FIELD_NAME.fullmatch(field.name) is None:
                reason = "use ASCII letters and digits, a letter first"
                yield spec_finding(
                    definition, located, "name", f"{field.name!r} is no name of a field: {reason}"
                )
                continue
            attribute = attribute_name(field.name, of_message=not located.parents)
            if attribute in seen:
                first = seen[attribute]
                reason = "" if first == field.name else f", as {attribute} in Python"
                yield spec_finding(
                    definition, located, "name", f"is also the name of the field {first}{reason}"
                )
            seen.setdefault(attribute, field.name)


def no_recursion(definition: Definition) -> Iterator[Finding]:
    """Checks that no struct contains itself; checks MAX_STRUCT_DEPTH and MAX_EXPANDED_FIELDS."""
    children = {
        name: list(_struct_fields(located)) for name, located in struct_definitions(definition)
    }
    definitions = dict(struct_definitions(definition))
    sizes: dict[str, tuple[int, int]] = {}
    for start in children:
        cycle = _measure(start, children, sizes)
        if cycle is not None:
            way = " holds ".join(cycle)
            yield spec_finding(definition, definitions[start], "fields", f"is recursive: {way}")
            return
    own = [field.element_type for field in definition.spec.fields]
    depth = max((sizes.get(name, (0, 0))[0] for name in own), default=0)
    count = len(own) + sum(sizes.get(name, (0, 0))[1] for name in own)
    if depth > MAX_STRUCT_DEPTH:
        yield message_finding(
            definition, "fields", f"structs are nested {depth} deep; at most {MAX_STRUCT_DEPTH}"
        )
    if count > MAX_EXPANDED_FIELDS:
        yield message_finding(
            definition,
            "fields",
            f"the message has {count} fields, those of structs counted at each use; "
            f"at most {MAX_EXPANDED_FIELDS}",
        )


def _struct_fields(located: LocatedSpec) -> Iterator[str]:
    return (field.element_type for field in located.spec.fields)


def _measure(
    start: str, children: dict[str, list[str]], sizes: dict[str, tuple[int, int]]
) -> list[str] | None:
    """Adds the depth and the number of fields of `start`, and of the structs inside it, to `sizes`.

    Returns the names of a cycle of structs if there is one, else None. Not recursive, because the
    structs may be nested too deep for the stack.
    """
    path: list[str] = []
    todo = [(start, False)]
    while todo:
        name, done = todo.pop()
        inner = children.get(name)
        if inner is None or (name in sizes and not done):
            continue
        if done:
            path.pop()
            below = [sizes[child] for child in inner if child in sizes]
            depth = 1 + max((size[0] for size in below), default=0)
            sizes[name] = (depth, len(inner) + sum(size[1] for size in below))
            continue
        if name in path:
            return [*path[path.index(name) :], name]
        path.append(name)
        todo.append((name, True))
        todo += [(child, False) for child in inner]
    return None


def element_has_bytes(definition: Definition) -> Iterator[Finding]:
    """Checks that each element of an array has at least one byte, in all versions with the array.

    Elements without bytes could be written but not read: a reader refuses an array whose count is
    larger than the number of remaining bytes.
    """
    if any(no_recursion(definition)):
        return
    message = definition.spec
    byte_versions, used = versions_with_bytes(message), versions_in_use(message)
    defined = {name for name, _ in struct_definitions(definition)}
    for located, field in located_fields(definition):
        name, holder = field.element_type, _holder_name(located) or message.name
        if not field.is_array or name not in byte_versions or name not in defined:
            continue
        version = first_gap(
            field.versions.intersect(used.get(holder, NO_VERSIONS)), byte_versions[name]
        )
        if version is not None:
            yield spec_finding(
                definition,
                located,
                "versions",
                f"its elements would have no bytes in version {version}: the version is not "
                f"flexible, and {name} has no field in it; add a field to {name}, or change the "
                "versions of the array",
            )


def struct_in_a_version(definition: Definition) -> Iterator[Finding]:
    """Checks that each struct is in at least one version.

    A struct that is not common must share a version with the message and with the structs that
    contain it.
    """
    valid = definition.spec.valid_versions
    if not valid:
        return
    common = {located.spec.name: located for located in definition.structs()}
    for name, located in common.items():
        if not located.spec.versions:
            yield spec_finding(
                definition, located, "versions", f"the struct {name} is in no version"
            )
    for name, located in struct_definitions(definition):
        if name in common:
            continue
        around = [holder.versions for holder in located.parents]
        outer = reduce(Versions.intersect, around, valid)
        versions = located.spec.versions
        is_reported = versions and not reduce(
            Versions.intersect, around, versions
        )  # by nested_versions
        if outer and not is_reported and not versions.intersect(outer):
            yield spec_finding(
                definition,
                located,
                "versions",
                f"the struct {name} is in no version: the versions of the field are {versions}, "
                f"those of the structs around it are {outer}",
            )


def inline_in_common(definition: Definition) -> Iterator[Finding]:
    """Checks that no field in a common struct defines a struct.

    Such a struct would not be found.
    """
    for name, located in struct_definitions(definition):
        if located.parents and isinstance(located.parents[0], StructSpec):
            reason = f"the struct {name} is inside a common one; define it in commonStructs"
            yield spec_finding(definition, located, "fields", reason)


def _holder_name(located: LocatedSpec) -> str:
    """Returns the name of the struct that has the field; "" if the message itself has it."""
    if not located.parents:
        return ""
    holder = located.parents[-1]
    return holder.element_type if isinstance(holder, FieldSpec) else holder.name
