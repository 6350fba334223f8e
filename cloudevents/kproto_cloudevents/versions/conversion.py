"""Converts the attributes of an event to another version of CloudEvents.

Reports every attribute that the target version cannot carry. Drops the attributes that the caller
names. Also drops `datacontentencoding` of 0.3, because it describes a document, not the event. This
module imports no events, data or bindings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from ..errors import CloudEventError, quoted
from ..values.json_text import compact_json, dump_json, member_texts, skip_blanks
from ..values.types import AttributeValue, JsonMap, canonical, json_of
from .spec_version import SpecVersion

__all__ = ["attributes_in", "entries_of"]

#: The fields of `SpecVersion` with the versions' names for common attributes. The data encoding is
#: not among them: it describes the document, and each version's format writes its own.
_ROLES: Final = ("id", "source", "type", "subject", "time", "content_type", "data_schema")


def attributes_in(
    target: SpecVersion,
    attributes: Mapping[str, AttributeValue],
    version: SpecVersion,
    *,
    drop: Collection[str],
    rename: Mapping[str, str],
) -> tuple[dict[str, AttributeValue], list[str]]:
    """Returns the attributes in the target version, and a reason for each lost attribute.

    An attribute is lost if the target version cannot carry it. `drop` are the attributes to leave
    out. `rename` maps attributes to their names in the target. Raises CloudEventError if `drop` is
    a str.
    """
    if isinstance(drop, str):
        raise CloudEventError(
            f"drop is a collection of names, not one str: pass [{quoted(drop)}]",
            clauses=(target.clause(target.name_section),),
        )
    carried: dict[str, AttributeValue] = {target.specversion: target.label}
    entries: dict[str, AttributeValue] = {}
    reasons: list[str] = []
    for name, value, usual_name in _flat(attributes, version, target):
        if name in drop:
            continue
        new_name = rename.get(name, usual_name)
        if new_name is None:
            reasons.append(f"{_shown_attribute(name)} (it has another meaning, or none, there)")
            continue
        if value is None:
            reasons.append(
                f"{_shown_attribute(name)} (an array or a fraction is no attribute value)"
            )
            continue
        # Names of map entries are not restricted, so they need no check.
        entry = target.extension_map is not None and new_name not in target.attributes
        into = entries if entry else carried
        if new_name in into:
            reasons.append(f"{_shown_attribute(name)} ({new_name} is there already)")
            continue
        try:
            if not entry:
                target.checked_spec(new_name, new_name)
            into[new_name] = target.checked_value(new_name, value)
        except CloudEventError as error:
            reasons.append(f"{_shown_attribute(name)} ({error})")
    if target.extension_map is not None and entries:
        parts = [f"{dump_json(name)}:{json_of(native)}" for name, native in entries.items()]
        carried[target.extension_map] = JsonMap(f"{{{','.join(parts)}}}")
    return carried, reasons


def entries_of(extension_map: AttributeValue) -> dict[str, AttributeValue]:
    """Returns the entries of a map of extensions as attribute values; leaves out nulls.

    A str, Boolean or Integer is unchanged. An object becomes a JsonMap. Any other entry becomes its
    JSON text.
    """
    return {
        name: text if native is None else native for name, native, text in _entries(extension_map)
    }


def _entries(
    extension_map: AttributeValue,
) -> Iterator[tuple[str, AttributeValue | None, str]]:
    """Yields each entry's name, value (None if it cannot be an attribute value) and JSON text.

    Skips null entries, because null means unset.
    """
    text = canonical(extension_map)
    texts = member_texts(text, skip_blanks(text, 0))
    for name, value in JsonMap(text).value().items():
        if isinstance(value, dict):
            # Take the original text, so that numbers keep their spelling.
            yield name, JsonMap(compact_json(texts[name])), texts[name]
        elif value is not None:
            native = value if isinstance(value, str | bool | int) else None
            yield name, native, texts[name]


def _flat(
    attributes: Mapping[str, AttributeValue], version: SpecVersion, target: SpecVersion
) -> Iterator[tuple[str, AttributeValue | None, str | None]]:
    """Yields the name, the value and the new name of each attribute.

    The new name is the name in the version `target`; None if `target` has no such attribute. Skips
    the attributes for the spec version and the data encoding. Entries of a map of extensions are
    yielded like attributes. If an entry cannot be an attribute value, its value is None.
    """
    names = {getattr(version, role): getattr(target, role) for role in _ROLES}
    for name, value in attributes.items():
        if name in (version.specversion, version.data_encoding):
            continue
        if name == version.extension_map:
            for entry, native, _ in _entries(value):
                yield entry, native, _free(entry, target)
        elif name in version.attributes:
            yield name, value, names.get(version.aliases.get(name, name))
        else:
            yield name, value, _free(name, target)


def _free(name: str, target: SpecVersion) -> str | None:
    """Returns `name` if an extension can have this name; None if `target` defines it."""
    return None if name in target.attributes else name


def _shown_attribute(name: str) -> str:
    return name if name.isidentifier() else quoted(name)
