"""A version of CloudEvents: its attributes, and its rules for names and types.

`version_tables` declares each version as data; `SpecVersion` checks names and values with this
data. This module imports no events, headers or documents.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Final

from ..errors import MAX_SHOWN, CloudEventError, CloudEventWarning, quoted
from ..values import types
from ..values.json_text import compact_json
from ..values.types import AttributeInput, AttributeType, AttributeValue, JsonMap

__all__ = ["AttributeSpec", "Check", "Fault", "SpecVersion", "of_type"]

#: The fault of a value, and the section of the specification that it breaks.
Fault = tuple[str, str]
#: The quick check of an attribute: its name, and `valid_values` and `quick` of its AttributeSpec.
Check = tuple[str, set[str], Callable[[str], object]]

#: The specification advises against longer names (CloudEvents 1.0 "Naming Conventions").
ADVISED_NAME_LENGTH: Final = 20

#: The maximum number of extension names that are cached as valid, so that each name is checked
#: once. A topic has a handful of names; the limit protects the memory if producers invent names.
REMEMBERED_NAMES: Final = 1024
#: The maximum number of values of one attribute that are cached as valid; a full cache is cleared.
#: Sources, types and content types repeat within a topic.
REMEMBERED_VALUES: Final = 1024
#: The maximum number of characters (or bytes of a header) of a value that is cached.
REMEMBERED_LENGTH: Final = 256


class AttributeSpec:
    """An attribute of a version: its name, its type, and the checks of its values.

    `fault(text)` checks type and constraints; it returns the fault, or None if the text is valid.
    `quick(text)` is truthy only for a valid text, as in `AttributeType`; the text must not be
    empty. If `repeats` is True, the values repeat within a topic and are slow to check, so
    `valid_values` caches the valid values.
    """

    __slots__ = (
        "fault",
        "name",
        "quick",
        "repeats",
        "required",
        "type",
        "valid_values",
    )

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
        self.valid_values: set[str] = set()

    def check_of(self, name: str) -> Check:
        """Returns `name` with the cached values and the quick test of this spec (see `Check`)."""
        return name, self.valid_values, self.quick


class SpecVersion:
    """One version of CloudEvents: its attributes, its names for common attributes, its name rule.

    `specversion` is the name of the version attribute, `label` its value, and `title` the version's
    name in errors. `id`, `source`, `type`, `time` and so on are this version's names for the
    attributes of 1.0, or None if this version lacks the attribute. `aliases` maps other accepted
    spellings of attributes to their names.

    If `base64_member` is set, a JSON document marks Base64 data by the member `data_base64`. If
    `data_encoding` is set, it is the attribute that marks Base64 data. If neither is set, nothing
    marks Base64 data. `extension_map` is the attribute that has all extensions as one Map, or None
    if each extension is an attribute. `has_maps` is true if Map is a type of attributes.
    """

    __slots__ = (
        "_valid_names",
        "aliases",
        "attributes",
        "base64_member",
        "content_type",
        "data_encoding",
        "data_schema",
        "extension_map",
        "has_maps",
        "id",
        "label",
        "name_advice",
        "name_pattern",
        "name_rule",
        "name_section",
        "plans",
        "required",
        "required_section",
        "source",
        "specversion",
        "subject",
        "time",
        "title",
        "type",
        "type_names",
    )

    def __init__(
        self,
        label: str,
        attributes: tuple[AttributeSpec, ...],
        *,
        title: str | None = None,
        type_names: frozenset[str],
        name_pattern: str,
        name_rule: str,
        name_section: str,
        name_advice: bool = True,
        required_section: str = "REQUIRED Attributes",
        specversion: str = "specversion",
        id: str = "id",  # noqa: A002 - the specification's own name
        source: str = "source",
        type: str = "type",  # noqa: A002 - the specification's own name
        subject: str | None = None,
        time: str = "time",
        content_type: str = "datacontenttype",
        data_schema: str = "dataschema",
        data_encoding: str | None = None,
        base64_member: bool = False,
        extension_map: str | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.label = label
        self.title = title or label
        self._valid_names: set[str] = set()
        #: The plans that `check_plans` has learned, by tuple of names.
        self.plans: dict[tuple[str, ...], tuple[Check, ...]] = {}
        self.attributes = {spec.name: spec for spec in attributes}
        self.attributes[specversion].valid_values.add(label)  # the value in every event
        self.required = tuple(spec.name for spec in attributes if spec.required)
        self.name_pattern = re.compile(name_pattern)
        self.name_rule = name_rule
        self.name_section = name_section
        self.name_advice = name_advice
        self.required_section = required_section
        self.type_names = type_names
        self.has_maps = types.MAP.name in type_names
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
        self.extension_map = extension_map
        self.aliases = aliases or {}

    def __repr__(self) -> str:
        return f"SpecVersion({self.specversion} {self.label!r})"

    @property
    def marks_binary(self) -> bool:
        """Returns True if a JSON document of this version marks data that is Base64."""
        return self.base64_member or self.data_encoding is not None

    def clause(self, section: str) -> str:
        """Returns the citation of a section of this version: `CloudEvents 1.0 "Timestamp"`."""
        return f'CloudEvents {self.title} "{section}"'

    def checked_spec(self, name: str, where: str, clauses: tuple[str, ...] = ()) -> AttributeSpec:
        """Returns the spec of an attribute; EXTENSION if the version does not define it.

        Raises CloudEventError for an invalid name. Issues a `CloudEventWarning` for a name that
        should be avoided, unless the name is cached as valid.
        """
        spec = self.attributes.get(name)
        if spec is not None:
            return spec
        if name not in self._valid_names:
            self._check_name(name, where, clauses)
        return EXTENSION

    def known_spec(self, name: str) -> AttributeSpec | None:
        """Returns the spec of an attribute; None for an extension whose name is not cached."""
        spec = self.attributes.get(name)
        if spec is None and name in self._valid_names:
            return EXTENSION
        return spec

    def _check_name(self, name: str, where: str, clauses: tuple[str, ...]) -> None:
        if not isinstance(name, str):
            raise CloudEventError(
                f"an attribute name is a str, not {type(name).__name__}",
                clauses=(self.clause(self.name_section),),
            )
        where = where if where.isprintable() and 0 < len(where) <= MAX_SHOWN else quoted(where)
        clauses = (*clauses, self.clause(self.name_section))
        if name == "data":
            raise CloudEventError("no attribute may be called data", where=where, clauses=clauses)
        if self.name_pattern.fullmatch(name) is None:
            raise CloudEventError(self.name_rule, where=where, clauses=clauses)
        if len(self._valid_names) < REMEMBERED_NAMES and len(name) <= MAX_SHOWN:
            self._valid_names.add(name)
        if not self.name_advice:
            return
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
        """Raises CloudEventError if the text breaks a rule of the attribute `name`.

        The text of an extension must be a valid String.
        """
        spec = self.attributes.get(name, EXTENSION)
        if text in spec.valid_values or (text and spec.quick(text)):
            return
        fault = spec.fault(text)
        if fault is not None:
            raise self.fault_error(fault, text, where=where, clauses=clauses)
        if spec.repeats and len(text) <= REMEMBERED_LENGTH:
            if len(spec.valid_values) >= REMEMBERED_VALUES:
                spec.valid_values.clear()
            spec.valid_values.add(text)

    def fault_error(
        self, fault: Fault, text: str, *, where: str, clauses: tuple[str, ...] = ()
    ) -> CloudEventError:
        """Returns the error for a fault: with the text, the fault and the clauses."""
        reason, section = fault
        return CloudEventError(
            f"{quoted(text)} {reason}", where=where, clauses=(*clauses, self.clause(section))
        )

    def check_native(self, name: str, value: AttributeValue) -> None:
        """Raises CloudEventError if the attribute or version does not allow the value's type."""
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

    def check_read_native(
        self, name: str, value: AttributeValue, *, where: str, clauses: tuple[str, ...]
    ) -> None:
        """Raises CloudEventError as `check_native` does, for a value that was read.

        Call it for a value that is not a string in its document or message. Also raises
        CloudEventError for an Integer beyond 32 bits, and for an extension's Map with a duplicate
        name.
        """
        try:
            types.canonical(value)
            self.check_native(name, value)
        except CloudEventError as error:
            raise CloudEventError(
                error.reason, where=where, clauses=(*clauses, *error.clauses)
            ) from None
        if isinstance(value, JsonMap) and name not in self.attributes:
            reason = types.MAP.fault(value)
            if reason is not None:
                fault = reason, types.MAP.name
                raise self.fault_error(fault, value, where=where, clauses=clauses)

    def checked_value(self, name: str, value: AttributeInput) -> AttributeValue:
        """Returns the value as an event stores it. Raises CloudEventError if it is invalid.

        The value must not be None, which means unset.
        """
        if type(value) is str:
            self.check_text(name, value, where=name)
            return value
        try:
            native = types.native(value)
        except CloudEventError as error:
            raise CloudEventError(error.reason, where=name, clauses=error.clauses) from None
        if isinstance(native, str) and name in self.attributes:
            self.check_text(name, native, where=name)
            return native
        if isinstance(native, str):
            # A Timestamp, Uri, UriReference or JsonMap of an extension.
            reason = types.type_of(native).fault(native)
            if reason is not None:
                raise self.fault_error((reason, types.type_of(native).name), native, where=name)
            if isinstance(native, JsonMap):
                # Compact, because a header must be able to carry it as a String.
                native = JsonMap(compact_json(native))
        self.check_native(name, native)
        return native

    def with_map(self, attributes: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
        """Converts the attribute `extension_map` from str to JsonMap; returns `attributes`.

        Does nothing if the version has no such attribute, or if the attribute is unset.
        """
        name = self.extension_map
        if name is not None and name in attributes:
            attributes[name] = JsonMap(types.canonical(attributes[name]))
        return attributes

    def missing_error(self, where: str, clauses: tuple[str, ...] = ()) -> CloudEventError:
        """Returns the error for a required attribute that is unset."""
        return CloudEventError(
            "the required attribute is missing",
            where=where,
            clauses=(*clauses, self.clause(self.required_section)),
        )


def of_type(kind: AttributeType) -> Callable[[str], Fault | None]:
    """Returns a function that checks only whether a text is valid for the type `kind`."""
    check, section = kind.fault, kind.name

    def fault(text: str) -> Fault | None:
        reason = check(text)
        return None if reason is None else (reason, section)

    return fault


#: The spec of any attribute that a version does not define.
EXTENSION: Final = AttributeSpec("", types.STRING, of_type(types.STRING))
