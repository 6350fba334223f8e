"""The versions of CloudEvents, each a table of its attributes and rules.

The differences between versions are declared here. Only modules that support one or two versions
(`formats.typed_attributes`, `official_sdk`) compare version labels. An event of an unknown version
can be forwarded but not read (`UnknownVersionError`).

    1.0   id, source, specversion, type, subject, time, datacontenttype, dataschema
    0.3   id, source, specversion, type, subject, time, datacontenttype, schemaurl,
          datacontentencoding; has the type Map, but not the types Boolean and URI
    0.2   specversion, type, source, id, time, schemaurl, contenttype: the text of November 2018,
          in which specversion was still "0.1"
    0.1   cloudEventsVersion, eventType, eventTypeVersion, source, eventID, eventTime, schemaURL
          (schemaURI in the draft for Pulsar), contentType, and extensions as one Map
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..errors import CloudEventError, UnknownVersionError, quoted
from ..values import types
from ..values.media_type import parse_media_type
from ..values.types import AttributeType
from .spec_version import AttributeSpec, Fault, SpecVersion, of_type

__all__ = [
    "ALL_VERSIONS",
    "EVENT_GRID_SCHEMA",
    "EVENT_VERSIONS",
    "V0_1",
    "V0_2",
    "V0_2_DRAFT",
    "V0_3",
    "V1_0",
    "V1_0_EVENT_GRID",
    "VERSIONS",
    "VERSION_ATTRIBUTES",
    "named_version",
    "spec_version",
    "version_attribute",
    "version_of_read",
]

# --- constraints --------------------------------------------------------------------------------


def _non_empty(name: str, kind: AttributeType) -> Callable[[str], Fault | None]:
    right_type = of_type(kind)

    def fault(text: str) -> Fault | None:
        return right_type(text) if text else ("must not be empty", name)

    return fault


def _media_type(name: str) -> Callable[[str], Fault | None]:
    right_type = of_type(types.STRING)

    def fault(text: str) -> Fault | None:
        if parse_media_type(text) is None:
            return "is no media type (RFC 2046)", name
        return right_type(text)

    return fault


def _content_encoding(name: str) -> Callable[[str], Fault | None]:
    def fault(text: str) -> Fault | None:
        return None if text.lower() == "base64" else ("is not base64, the only one defined", name)

    return fault


def _filled_map(name: str) -> Callable[[str], Fault | None]:
    right_type = of_type(types.MAP)

    def fault(text: str) -> Fault | None:
        found = right_type(text)
        if found is None and not types.JsonMap(text).value():
            return "must have at least one entry", name
        return found

    return fault


# --- kinds of attributes ------------------------------------------------------------------------


def _required(name: str, kind: AttributeType, *, repeats: bool = False) -> AttributeSpec:
    return AttributeSpec(name, kind, _non_empty(name, kind), required=True, repeats=repeats)


def _optional(name: str, kind: AttributeType, *, repeats: bool = False) -> AttributeSpec:
    return AttributeSpec(name, kind, _non_empty(name, kind), repeats=repeats)


def _any_text(
    name: str, kind: AttributeType, *, required: bool = False, repeats: bool = False
) -> AttributeSpec:
    """Returns an attribute whose value may be empty."""
    return AttributeSpec(name, kind, of_type(kind), required=required, repeats=repeats)


#: Accepts no text: the quick check of attributes with a grammar of their own, for which the quick
#: check of a String is too weak.
_NEVER = types.BOOLEAN.quick


def _content_type(name: str) -> AttributeSpec:
    return AttributeSpec(name, types.STRING, _media_type(name), repeats=True, quick=_NEVER)


# --- the tables ---------------------------------------------------------------------------------

#: The dataschema of events of Azure Event Grid. It is a URI-reference, and no URI.
EVENT_GRID_SCHEMA: Final = "#"


def _event_grid_schema(name: str) -> AttributeSpec:
    usual = _non_empty(name, types.URI)

    def fault(text: str) -> Fault | None:
        return None if text == EVENT_GRID_SCHEMA else usual(text)

    return AttributeSpec(name, types.URI, fault, repeats=True)


def _version_1_0(data_schema: AttributeSpec) -> SpecVersion:
    return SpecVersion(
        "1.0",
        (
            _required("specversion", types.STRING, repeats=True),
            _required("id", types.STRING),
            _required("source", types.URI_REFERENCE, repeats=True),
            _required("type", types.STRING, repeats=True),
            _content_type("datacontenttype"),
            data_schema,
            _optional("subject", types.STRING),
            _any_text("time", types.TIMESTAMP),
        ),
        type_names=frozenset(
            {"Boolean", "Integer", "String", "Binary", "URI", "URI-reference", "Timestamp"}
        ),
        name_pattern="[a-z0-9]+",
        name_rule="an attribute name has only lower-case letters a to z and digits",
        name_section="Naming Conventions",
        subject="subject",
        base64_member=True,
    )


V1_0: Final = _version_1_0(_optional("dataschema", types.URI, repeats=True))
#: The version of 1.0 events whose dataschema is "#". Only readers with the profile of Event Grid
#: use it, and only for such events; its label is that of `V1_0`.
V1_0_EVENT_GRID: Final = _version_1_0(_event_grid_schema("dataschema"))

#: The name and type rules of 0.2 and 0.3.
_LETTER_FIRST: Final = "[a-z][a-z0-9]*"
_LETTER_FIRST_RULE: Final = (
    "an attribute name starts with a letter and has only letters a to z and digits"
)
_OLD_NAME_SECTION: Final = "Attribute Naming Convention"
_OLD_TYPES: Final = frozenset({"Integer", "String", "Binary", "Map", "URI-reference", "Timestamp"})

V0_3: Final = SpecVersion(
    "0.3",
    (
        _required("specversion", types.STRING, repeats=True),
        _required("id", types.STRING),
        _any_text("source", types.URI_REFERENCE, required=True, repeats=True),
        _required("type", types.STRING, repeats=True),
        AttributeSpec(
            "datacontentencoding",
            types.STRING,
            _content_encoding("datacontentencoding"),
            repeats=True,
            quick=_NEVER,
        ),
        _content_type("datacontenttype"),
        _any_text("schemaurl", types.URI_REFERENCE, repeats=True),
        _optional("subject", types.STRING),
        _any_text("time", types.TIMESTAMP),
    ),
    type_names=_OLD_TYPES,
    name_pattern=_LETTER_FIRST,
    name_rule=_LETTER_FIRST_RULE,
    name_section=_OLD_NAME_SECTION,
    subject="subject",
    data_schema="schemaurl",
    data_encoding="datacontentencoding",
)


def _november_2018(label: str) -> SpecVersion:
    return SpecVersion(
        label,
        (
            _required("specversion", types.STRING, repeats=True),
            _required("type", types.STRING, repeats=True),
            _any_text("source", types.URI_REFERENCE, required=True, repeats=True),
            _required("id", types.STRING),
            _any_text("time", types.TIMESTAMP),
            _any_text("schemaurl", types.URI_REFERENCE, repeats=True),
            _content_type("contenttype"),
        ),
        title="0.2",
        type_names=_OLD_TYPES,
        name_pattern=_LETTER_FIRST,
        name_rule=_LETTER_FIRST_RULE,
        name_section=_OLD_NAME_SECTION,
        required_section="Context Attributes",
        content_type="contenttype",
        data_schema="schemaurl",
    )


V0_2: Final = _november_2018("0.2")
#: The draft of 0.2 before its version number was raised from 0.1.
V0_2_DRAFT: Final = _november_2018("0.1")

#: 0.1 names the type "URI" that later versions name "URI-reference".
_URI_0_1: Final = types.URI_REFERENCE._replace(name="URI")

V0_1: Final = SpecVersion(
    "0.1",
    (
        _required("cloudEventsVersion", types.STRING, repeats=True),
        _required("eventType", types.STRING, repeats=True),
        _optional("eventTypeVersion", types.STRING, repeats=True),
        _any_text("source", _URI_0_1, required=True, repeats=True),
        _required("eventID", types.STRING),
        _any_text("eventTime", types.TIMESTAMP),
        _any_text("schemaURL", _URI_0_1, repeats=True),
        _any_text("schemaURI", _URI_0_1, repeats=True),
        _content_type("contentType"),
        AttributeSpec("extensions", types.MAP, _filled_map("extensions")),
    ),
    type_names=_OLD_TYPES | {"URI"},
    name_pattern="[a-z][A-Za-z0-9]*",
    name_rule="an attribute name is in camelCase: a lower-case letter, then letters and digits",
    name_section=_OLD_NAME_SECTION,
    name_advice=False,
    required_section="Context Attributes",
    specversion="cloudEventsVersion",
    id="eventID",
    type="eventType",
    time="eventTime",
    content_type="contentType",
    data_schema="schemaURL",
    extension_map="extensions",
    aliases={"schemaURI": "schemaURL"},
)

# --- lookup -------------------------------------------------------------------------------------

ALL_VERSIONS: Final = (V1_0, V0_3, V0_2, V0_2_DRAFT, V0_1)

#: Every version that an event can have: `ALL_VERSIONS` and `V1_0_EVENT_GRID`.
EVENT_VERSIONS: Final = (*ALL_VERSIONS, V1_0_EVENT_GRID)

#: The versions to which events can be converted, by label. "0.1" is the release, not the draft of
#: 0.2.
VERSIONS: Final = {version.label: version for version in ALL_VERSIONS}

#: For each version attribute, in the order of lookup: the versions by the attribute's value.
VERSION_ATTRIBUTES: Final[Mapping[str, Mapping[str, SpecVersion]]] = {
    attribute: {each.label: each for each in ALL_VERSIONS if each.specversion == attribute}
    for attribute in dict.fromkeys(version.specversion for version in ALL_VERSIONS)
}


def version_attribute(attributes: Mapping[str, Any], prefix: str = "") -> str | None:
    """Returns the name of the version attribute that is set; None if no version attribute is set.

    The names in `attributes` begin with `prefix`; the result does not have the prefix.
    """
    for attribute in VERSION_ATTRIBUTES:
        if attributes.get(prefix + attribute) is not None:
            return attribute
    return None


def version_of_read(version: SpecVersion, attributes: Mapping[str, Any]) -> SpecVersion:
    """Returns `V1_0_EVENT_GRID` if an event of 1.0 has the dataschema "#", otherwise `version`.

    Only for attributes that were read with the profile of Event Grid, or of such an event.
    """
    if version is V1_0 and attributes.get(V1_0.data_schema) == EVENT_GRID_SCHEMA:
        label = attributes.get(V1_0.specversion, V1_0.label)
        return V1_0_EVENT_GRID if label == V1_0.label else version
    return version


def named_version(
    attribute: str, label: str, *, where: str, clauses: tuple[str, ...] = ()
) -> SpecVersion:
    """Returns the version for the value of a version attribute.

    Raises UnknownVersionError for an unknown value, and CloudEventError for an empty value.
    """
    known = VERSION_ATTRIBUTES[attribute].get(label)
    if known is not None:
        return known
    if not label:
        raise CloudEventError(
            '"" must not be empty', where=where, clauses=(*clauses, 'CloudEvents 1.0 "specversion"')
        )
    raise _unknown(label, VERSION_ATTRIBUTES[attribute], where, clauses)


def spec_version(label: str) -> SpecVersion:
    """Returns the version with this label. Raises UnknownVersionError for an unknown label."""
    known = VERSIONS.get(label) if isinstance(label, str) else None
    if known is None:
        raise _unknown(label, VERSIONS, "specversion", ())
    return known


def _unknown(
    label: str, known: Mapping[str, SpecVersion], where: str, clauses: tuple[str, ...]
) -> UnknownVersionError:
    return UnknownVersionError(
        f"{quoted(str(label))} is no version known here ({', '.join(known)}): "
        "forward the event as it is",
        where=where,
        clauses=(*clauses, 'CloudEvents 1.0 "specversion"'),
    )
