"""Exports definitions, error codes and releases as compact JSON data for the scripts of the page.

A field is a list: name, type, versions, a mapping of its other attributes, and its inner fields.
The mapping is 0 if it is empty but inner fields follow. `_FIELD_KEYS` and `_field` define the keys
of the mapping; `_message` defines the keys of a message. `model.js` reads these lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ..protocol.error_meanings import ErrorMeaning
from ..schema.naming import attribute_name, snake_case
from ..schema.specs import FieldSpec, MessageSpec

__all__ = ["definitions", "error_codes", "release_ranges"]

#: Attributes of a field besides name, type and versions: the key in the data, and a function that
#: returns the value, or None to omit the key.
_FIELD_KEYS: Final[tuple[tuple[str, Callable[[FieldSpec], object]], ...]] = (
    ("n", lambda field: str(field.nullable_versions) if field.nullable_versions else None),
    ("t", lambda field: field.tag),
    ("tv", lambda field: str(field.tagged_versions) if field.tagged_versions else None),
    (
        "f",
        lambda field: None if field.flexible_versions is None else str(field.flexible_versions),
    ),
    ("d", lambda field: field.default),
    ("i", lambda field: 1 if field.ignorable else None),
    ("k", lambda field: 1 if field.map_key else None),
    ("e", lambda field: field.entity_type),
    ("z", lambda field: 1 if field.zero_copy else None),
    ("al", lambda field: list(field.aliases) or None),
)


def definitions(messages: Mapping[str, MessageSpec]) -> list[dict[str, Any]]:
    """Returns the data of each message, in the order of `messages`."""
    return [_message(messages[name]) for name in messages]


def error_codes(meanings: Iterable[ErrorMeaning]) -> list[list[Any]]:
    """Returns each error code as a list.

    The list has the code, its name, 1 if it is retriable (else 0), the first release, the meaning,
    the action of a client, the responses as texts (`Produce 4+`), and the former names.
    """
    return [
        [
            each.code,
            each.name,
            int(each.retriable),
            each.since,
            each.meaning,
            each.client,
            [str(response) for response in each.responses],
            list(each.formerly),
        ]
        for each in meanings
    ]


def release_ranges(
    releases: Mapping[str, Mapping[int, tuple[int, int]]],
) -> list[list[Any]]:
    """Returns each release as its name and a list of (API key, lowest version, highest version).

    The order of `releases` is kept.
    """
    return [
        [name, [[key, *ranges[key]] for key in sorted(ranges)]] for name, ranges in releases.items()
    ]


def _message(spec: MessageSpec) -> dict[str, Any]:
    made: dict[str, Any] = {
        "n": spec.name,
        "t": spec.type,
        "m": spec.module,
        "v": str(spec.valid_versions),
        "fl": str(spec.flexible_versions),
        "f": [_field(field, of_message=True) for field in spec.fields],
    }
    if spec.api_key is not None:
        made["k"] = spec.api_key
    if spec.listeners:
        made["l"] = list(spec.listeners)
    if spec.deprecated_versions:
        made["dv"] = str(spec.deprecated_versions)
    if spec.latest_version_unstable:
        made["u"] = 1
    if spec.formerly:
        made["fo"] = [[entry.name, str(entry.versions), entry.becomes] for entry in spec.formerly]
    if spec.common_structs:
        made["c"] = [
            [
                struct.name,
                str(struct.versions),
                [_field(field, of_message=False) for field in struct.fields],
            ]
            for struct in spec.common_structs
        ]
    return made


def _field(field: FieldSpec, *, of_message: bool) -> list[Any]:
    extras = {key: found(field) for key, found in _FIELD_KEYS}
    attribute = attribute_name(field.name, of_message=of_message)
    if attribute != snake_case(field.name):  # the page derives the usual name itself
        extras["a"] = attribute
    data = {key: value for key, value in extras.items() if value is not None}
    made: list[Any] = [field.name, field.type, str(field.versions), data or 0]
    if field.fields:
        made.append([_field(inner, of_message=False) for inner in field.fields])
    while made[-1] == 0:
        made.pop()
    return made
