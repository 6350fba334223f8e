"""The versions of CloudEvents, each as a table of its attributes and its rules for names.

What differs between versions stands here as data; no other module asks for a version by name.
An event whose specversion is in no table can be forwarded but not read (`UnknownVersionError`).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Final

from . import types
from .errors import MAX_SHOWN, CloudEventError, CloudEventWarning, UnknownVersionError, quoted
from .media_type import parse_media_type
from .types import AttributeType, AttributeValue

__all__ = [
    "V1_0",
    "VERSIONS",
    "AttributeSpec",
    "Fault",
    "SpecVersion",
    "spec_version",
]

#: What is wrong with a value, and the section of the specification that says so.
Fault = tuple[str, str]

#: Names longer than this are advised against (CloudEvents 1.0 "Naming Conventions").
ADVISED_NAME_LENGTH: Final = 20

#: How many names of extensions are remembered as right, so that each is checked once; a topic has
#: a handful, and input that invents new ones must not fill the memory.
REMEMBERED_NAMES: Final = 1024
#: How many different values of one attribute are remembered as right. Sources, types and content
#: types repeat over a topic; past this many they are forgotten all at once.
REMEMBERED_VALUES: Final = 1024
#: Longer values are checked each time, so that what is remembered stays small (in characters).
REMEMBERED_LENGTH: Final = 256


class AttributeSpec:
    """One attribute: its name, type, and `fault(text)`, which checks type and constraints.

    `quick(text)` is truthy only for a text that is right, as in `AttributeType`; it is to be asked
    of a text that is not empty. Where values repeat over a topic and are dear to check, those that
    were found right are kept in `found_right`.
    """

    __slots__ = ("fault", "found_right", "name", "quick", "repeats", "required", "type")

    def __init__(
        self,
        name: str,
        kind: AttributeType,
        fault: Callable[[str], Fault | None],
        *,
        required: bool = False,
        repeats: bool = False,
        quick: Callable[[str], object] | None = None,
    ) -> None:
        self.name = name
        self.type = kind
        self.fault = fault
        self.required = required
        self.repeats = repeats
        self.quick = quick or kind.quick
        self.found_right: set[str] = set()


class SpecVersion:
    """One version of CloudEvents: its attributes, its names for the common roles, its name rule.

    `id`, `source`, `type`, `time` and so on are the names which this version gives to the
    attributes that 1.0 calls so; None where it has none. `data_encoding` is the attribute that
    says that data is Base64 in JSON, and `base64_member` is true where a member of its own does.
    """

    __slots__ = (
        "_names_found_right",
        "attributes",
        "base64_member",
        "content_type",
        "data_encoding",
        "data_schema",
        "id",
        "label",
        "name_pattern",
        "name_rule",
        "name_section",
        "required",
        "source",
        "specversion",
        "subject",
        "time",
        "type",
        "type_names",
    )

    def __init__(
        self,
        label: str,
        attributes: tuple[AttributeSpec, ...],
        *,
        type_names: frozenset[str],
        name_pattern: str,
        name_rule: str,
        name_section: str,
        specversion: str = "specversion",
        id: str = "id",  # noqa: A002 - the specification's own name
        source: str = "source",
        type: str = "type",  # noqa: A002 - the specification's own name
        subject: str | None = None,
        time: str = "time",
        content_type: str = "datacontenttype",
        data_schema: str = "dataschema",
        data_encoding: str | None = None,
        base64_member: bool = True,
    ) -> None:
        self.label = label
        self._names_found_right: set[str] = set()
        self.attributes = {spec.name: spec for spec in attributes}
        self.required = tuple(spec.name for spec in attributes if spec.required)
        self.name_pattern = re.compile(name_pattern)
        self.name_rule = name_rule
        self.name_section = name_section
        self.type_names = type_names
        self.base64_member = base64_member
        self.specversion = specversion
        self.id = id
        self.source = source
        self.type = type
        self.subject = subject
        self.time = time
        self.content_type = content_type
        self.data_schema = data_schema
        self.data_encoding = data_encoding

    def __repr__(self) -> str:
        return f"SpecVersion({self.label!r})"

    def clause(self, section: str) -> str:
        """How an error names a section of this version: `CloudEvents 1.0 "Timestamp"`."""
        return f'CloudEvents {self.label} "{section}"'

    def checked_spec(self, name: str, where: str, clauses: tuple[str, ...] = ()) -> AttributeSpec:
        """How an attribute is checked; one that the version does not define is a String.

        Refuses a name that no attribute may have; warns, once, of one that is advised against.
        """
        spec = self.attributes.get(name)
        if spec is not None:
            return spec
        if name not in self._names_found_right:
            self._check_name(name, where, clauses)
        return _EXTENSION

    def _check_name(self, name: str, where: str, clauses: tuple[str, ...]) -> None:
        if not isinstance(name, str):
            raise CloudEventError(f"an attribute name is a str, not {type(name).__name__}")
        where = where if where.isprintable() and len(where) <= MAX_SHOWN else quoted(where)
        clauses = (*clauses, self.clause(self.name_section))
        if name == "data":
            raise CloudEventError("no attribute may be called data", where=where, clauses=clauses)
        if self.name_pattern.fullmatch(name) is None:
            raise CloudEventError(self.name_rule, where=where, clauses=clauses)
        if len(self._names_found_right) < REMEMBERED_NAMES and len(name) <= MAX_SHOWN:
            self._names_found_right.add(name)
        if len(name) > ADVISED_NAME_LENGTH:
            warnings.warn(
                f"{where}: the name has {len(name)} characters, more than "
                f"{ADVISED_NAME_LENGTH} should be avoided ({', '.join(clauses)})",
                CloudEventWarning,
                stacklevel=2,
            )
        elif name[0].isdigit():
            warnings.warn(
                f"{where}: a name that starts with a digit is no identifier in most languages",
                CloudEventWarning,
                stacklevel=2,
            )

    def check_text(
        self, name: str, text: str, *, where: str, clauses: tuple[str, ...] = ()
    ) -> None:
        """Refuse a text that the attribute `name` may not have; extensions are Strings."""
        spec = self.attributes.get(name, _EXTENSION)
        if text in spec.found_right or (text and spec.quick(text)):
            return
        fault = spec.fault(text)
        if fault is not None:
            raise self.fault_error(fault, text, where=where, clauses=clauses)
        if spec.repeats and len(text) <= REMEMBERED_LENGTH:
            if len(spec.found_right) >= REMEMBERED_VALUES:
                spec.found_right.clear()
            spec.found_right.add(text)

    def fault_error(
        self, fault: Fault, text: str, *, where: str, clauses: tuple[str, ...] = ()
    ) -> CloudEventError:
        """The error for a fault: what was written, why that is wrong, who says so."""
        reason, section = fault
        return CloudEventError(
            f"{quoted(text)} {reason}", where=where, clauses=(*clauses, self.clause(section))
        )

    def check_native(self, name: str, value: AttributeValue) -> None:
        """Refuse a value that is no text where the attribute or the version wants one."""
        spec = self.attributes.get(name)
        if spec is not None and spec.type is not types.type_of(value):
            raise CloudEventError(
                f"{type(value).__name__} where a {spec.type.name} belongs: pass its text",
                where=name,
                clauses=(self.clause(name),),
            )
        kind = types.type_of(value).name
        if kind not in self.type_names:
            raise CloudEventError(
                f"{kind} is no type of this version: use {', '.join(sorted(self.type_names))}",
                where=name,
                clauses=(self.clause("Type System"),),
            )

    def missing_error(self, where: str, clauses: tuple[str, ...] = ()) -> CloudEventError:
        """The error for a required attribute that is unset."""
        return CloudEventError(
            "the required attribute is missing",
            where=where,
            clauses=(*clauses, self.clause("REQUIRED Attributes")),
        )


def spec_version(label: str, *, where: str, clauses: tuple[str, ...] = ()) -> SpecVersion:
    """The table of a version. Raises UnknownVersionError for one that is not known."""
    known = VERSIONS.get(label)
    if known is not None:
        return known
    raise UnknownVersionError(
        f"{quoted(label)} is no version known here ({', '.join(VERSIONS)}): "
        "forward the event as it is",
        where=where,
        clauses=(*clauses, 'CloudEvents 1.0 "specversion"'),
    )


# --- constraints --------------------------------------------------------------------------------


def _of_type(attribute_type: AttributeType) -> Callable[[str], Fault | None]:
    check, section = attribute_type.fault, attribute_type.name

    def fault(text: str) -> Fault | None:
        reason = check(text)
        return None if reason is None else (reason, section)

    return fault


def _non_empty(name: str, attribute_type: AttributeType) -> Callable[[str], Fault | None]:
    of_type = _of_type(attribute_type)

    def fault(text: str) -> Fault | None:
        return of_type(text) if text else ("must not be empty", name)

    return fault


def _media_type(name: str) -> Callable[[str], Fault | None]:
    of_type = _of_type(types.STRING)

    def fault(text: str) -> Fault | None:
        if parse_media_type(text) is None:
            return "is no media type (RFC 2046)", name
        return of_type(text)

    return fault


def _content_encoding(name: str) -> Callable[[str], Fault | None]:
    def fault(text: str) -> Fault | None:
        return None if text.lower() == "base64" else ("is not base64, the only one defined", name)

    return fault


def _required(name: str, kind: AttributeType, *, repeats: bool = False) -> AttributeSpec:
    return AttributeSpec(name, kind, _non_empty(name, kind), required=True, repeats=repeats)


def _optional(name: str, kind: AttributeType, *, repeats: bool = False) -> AttributeSpec:
    return AttributeSpec(name, kind, _non_empty(name, kind), repeats=repeats)


def _any_text(
    name: str, kind: AttributeType, *, required: bool = False, repeats: bool = False
) -> AttributeSpec:
    """An attribute that may be empty."""
    return AttributeSpec(name, kind, _of_type(kind), required=required, repeats=repeats)


#: Never finds a text right: for attributes with a grammar of their own, of which being a String,
#: quickly seen, is not enough.
_NEVER = types.BOOLEAN.quick


def _content_type(name: str) -> AttributeSpec:
    return AttributeSpec(name, types.STRING, _media_type(name), repeats=True, quick=_NEVER)


_EXTENSION: Final = AttributeSpec("", types.STRING, _of_type(types.STRING))


# --- the tables ---------------------------------------------------------------------------------

V1_0: Final = SpecVersion(
    "1.0",
    (
        _required("specversion", types.STRING, repeats=True),
        _required("id", types.STRING),
        _required("source", types.URI_REFERENCE, repeats=True),
        _required("type", types.STRING, repeats=True),
        _content_type("datacontenttype"),
        _optional("dataschema", types.URI, repeats=True),
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
)

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
    type_names=frozenset({"Integer", "String", "Binary", "Map", "URI-reference", "Timestamp"}),
    name_pattern="[a-z][a-z0-9]*",
    name_rule="an attribute name starts with a letter and has only letters a to z and digits",
    name_section="Attribute Naming Convention",
    subject="subject",
    data_schema="schemaurl",
    data_encoding="datacontentencoding",
    base64_member=False,
)

#: Every version that can be read, by the value of its version attribute.
VERSIONS: Final = {version.label: version for version in (V1_0, V0_3)}
