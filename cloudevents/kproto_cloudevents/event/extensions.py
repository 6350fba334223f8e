"""Typed extensions: declares the attributes of an extension, and reads them from an event.

An event keeps an extension attribute as it was written: in a header, the Integer `5` and the String
"5" look the same. An application reads the attributes through the declaration of the extension,
which checks and converts them. The end of the module declares five of the extensions that the
specification's repository documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ..errors import CloudEventError, quoted
from ..values import types
from ..values.types import AttributeType, AttributeValue, canonical
from .cloud_event import CloudEvent

__all__ = [
    "DATAREF",
    "DISTRIBUTED_TRACING",
    "DOCUMENTED",
    "PARTITIONING",
    "SAMPLED_RATE",
    "SEQUENCE",
    "Extension",
    "ExtensionAttribute",
    "ExtensionRegistry",
]


class ExtensionAttribute(NamedTuple):
    """One attribute of an extension.

    `rule(value)` checks a value of the right type, and returns the fault, or None for a valid
    value.
    """

    name: str
    type: AttributeType
    required: bool = False
    rule: Callable[[AttributeValue], str | None] | None = None


#: Checks the values of an extension together: returns the attribute at fault and the fault, or None
#: if the values are valid.
Together = Callable[[Mapping[str, AttributeValue]], tuple[str, str] | None]


class Extension:
    """An extension: its name in errors, and its attributes.

    `together` checks the combination of values that are each valid. `together` returns the
    attribute at fault and the fault, or None if the combination is valid.
    """

    __slots__ = ("attributes", "name", "together")

    def __init__(
        self, name: str, *attributes: ExtensionAttribute, together: Together | None = None
    ) -> None:
        self.name = name
        self.together = together
        self.attributes: Mapping[str, ExtensionAttribute] = {
            attribute.name: attribute for attribute in attributes
        }

    def __repr__(self) -> str:
        return f"Extension({self.name!r}, {', '.join(self.attributes)})"

    def read(self, event: CloudEvent) -> dict[str, AttributeValue] | None:
        """Returns the native values of the extension's attributes that are set.

        Returns None if no attribute of the extension is set. Raises CloudEventError for a value
        that has the wrong type or breaks a rule, and if a required attribute is unset while another
        attribute is set.
        """
        extensions = event.extensions
        found = {
            name: self._value(attribute, extensions[name])
            for name, attribute in self.attributes.items()
            if name in extensions
        }
        if not found:
            return None
        for name, attribute in self.attributes.items():
            if attribute.required and name not in found:
                raise CloudEventError(
                    "the extension's required attribute is missing",
                    where=name,
                    clauses=(f'Extension "{self.name}"',),
                )
        fault = None if self.together is None else self.together(found)
        if fault is not None:
            where, reason = fault
            raise CloudEventError(
                f"{quoted(canonical(found[where]))} {reason}",
                where=where,
                clauses=(f'Extension "{self.name}"',),
            )
        return found

    def _value(self, attribute: ExtensionAttribute, raw: AttributeValue) -> AttributeValue:
        text = canonical(raw)
        reason = attribute.type.fault(text)
        value = raw
        if reason is None:
            value = attribute.type.parse(text)
            reason = None if attribute.rule is None else attribute.rule(value)
        if reason is not None:
            raise CloudEventError(
                f"{quoted(text)} {reason}",
                where=attribute.name,
                clauses=(f'Extension "{self.name}", {attribute.type.name}',),
            )
        return value


class ExtensionRegistry:
    """The extensions that an application has registered."""

    __slots__ = ("_by_name",)

    def __init__(self, extensions: Iterable[Extension] = ()) -> None:
        self._by_name: dict[str, Extension] = {}
        for extension in extensions:
            self.register(extension)

    def register(self, extension: Extension) -> None:
        """Adds an extension; replaces a registered extension of the same name.

        Raises CloudEventError if an extension with another name declares the same attribute.
        """
        for name in extension.attributes:
            owner = self.owner(name)
            if owner is not None and owner.name != extension.name:
                raise CloudEventError(f"belongs to the extension {owner.name} already", where=name)
        self._by_name[extension.name] = extension

    def owner(self, attribute: str) -> Extension | None:
        """Returns the extension that declares an attribute; None if no extension declares it."""
        return next((each for each in self._by_name.values() if attribute in each.attributes), None)

    def read(self, event: CloudEvent) -> dict[str, AttributeValue]:
        """Returns the extension attributes; those of registered extensions are native values.

        Raises CloudEventError as `Extension.read` does.
        """
        values = dict(event.extensions)
        for extension in self._by_name.values():
            values.update(extension.read(event) or {})
        return values

    def typed(self, event: CloudEvent) -> CloudEvent:
        """Returns the event with native attributes, so that JSON has numbers instead of strings.

        Converts the Booleans, Integers and Binaries of registered extensions. Other attributes,
        and the entries of the map of 0.1, do not change. Returns the event itself if nothing
        changes. Raises CloudEventError as `read` does, and for a type that the event's version
        does not have.
        """
        changed = {
            name: value
            for name, value in self.read(event).items()
            if name in event and type(value) is not type(event[name]) and not isinstance(value, str)
        }
        return event.replace(changed) if changed else event


def _not_empty(value: AttributeValue) -> str | None:
    return None if value else "must not be empty"


def _above_zero(value: AttributeValue) -> str | None:
    return None if isinstance(value, int) and value > 0 else "is not greater than zero"


_TRACEPARENT: Final = re.compile(
    "(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)


def _w3c_traceparent(value: AttributeValue) -> str | None:
    match = _TRACEPARENT.fullmatch(canonical(value))
    if match is None or (match[0].startswith("00-") and len(match[0]) != _TRACEPARENT_LENGTH):
        return "is no traceparent (W3C Trace Context 3.2)"
    return None


#: The length of a traceparent of version 00, in characters; this version ends with the flags.
_TRACEPARENT_LENGTH: Final = 55

#: A sequence may be padded with zeros, so that strings sort like numbers.
_PADDED_INTEGER: Final = re.compile("-?[0-9]+")
#: The maximum number of characters of a sequence whose sequencetype is Integer; a longer sequence
#: is refused.
_MAX_PADDED: Final = 64


def _integer_sequence(values: Mapping[str, AttributeValue]) -> tuple[str, str] | None:
    """Checks that the sequence is a 32-bit Integer if the sequencetype is Integer.

    Returns ("sequence", fault) if the check fails, else None.
    """
    if values.get("sequencetype") != "Integer":
        return None
    text = canonical(values["sequence"])
    right = _PADDED_INTEGER.fullmatch(text) is not None and len(text) <= _MAX_PADDED
    if right and types.INTEGER_MIN <= int(text) <= types.INTEGER_MAX:
        return None
    return "sequence", "is no Integer of 32 bits, which the sequencetype requires"


#: The following extensions are documented in
#: https://github.com/cloudevents/spec/tree/main/cloudevents/extensions.
PARTITIONING: Final = Extension(
    "Partitioning", ExtensionAttribute("partitionkey", types.STRING, True, _not_empty)
)
DISTRIBUTED_TRACING: Final = Extension(
    "Distributed Tracing",
    ExtensionAttribute("traceparent", types.STRING, True, _w3c_traceparent),
    ExtensionAttribute("tracestate", types.STRING),
)
SEQUENCE: Final = Extension(
    "Sequence",
    ExtensionAttribute("sequence", types.STRING, True, _not_empty),
    ExtensionAttribute("sequencetype", types.STRING, False, _not_empty),
    together=_integer_sequence,
)
DATAREF: Final = Extension("Dataref", ExtensionAttribute("dataref", types.URI_REFERENCE))
SAMPLED_RATE: Final = Extension(
    "Sampled Rate", ExtensionAttribute("sampledrate", types.INTEGER, True, _above_zero)
)

#: The extensions declared above.
DOCUMENTED: Final = ExtensionRegistry(
    (PARTITIONING, DISTRIBUTED_TRACING, SEQUENCE, DATAREF, SAMPLED_RATE)
)
