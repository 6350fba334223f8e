"""Typed extensions: what an extension's attributes are, and reading them from an event.

An event keeps an extension as it was written; a header cannot say that `5` is an Integer. Whoever
knows the extension reads it through its declaration, which checks and converts. The documented
extensions that come with the package stand at the end as a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from . import types
from .errors import CloudEventError, quoted
from .event import CloudEvent
from .types import AttributeType, AttributeValue, canonical

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

    `rule(value)` says what else is wrong with a value of the type, None when nothing is.
    """

    name: str
    type: AttributeType
    required: bool = False
    rule: Callable[[AttributeValue], str | None] | None = None


class Extension:
    """An extension: its name, as errors give it, and its attributes."""

    __slots__ = ("attributes", "name")

    def __init__(self, name: str, *attributes: ExtensionAttribute) -> None:
        self.name = name
        self.attributes: Mapping[str, ExtensionAttribute] = {
            attribute.name: attribute for attribute in attributes
        }

    def __repr__(self) -> str:
        return f"Extension({self.name!r}, {', '.join(self.attributes)})"

    def read(self, event: CloudEvent) -> dict[str, AttributeValue] | None:
        """The native values of the extension's attributes that are set.

        None for an event that does not use the extension. Raises CloudEventError for a value that
        is not of its type or breaks its rule, and for a required attribute that is unset while
        another is set.
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
        return found

    def _value(self, attribute: ExtensionAttribute, held: AttributeValue) -> AttributeValue:
        text = canonical(held)
        reason = attribute.type.fault(text)
        value = held
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
    """The extensions that an application knows."""

    __slots__ = ("_by_name",)

    def __init__(self, extensions: Iterable[Extension] = ()) -> None:
        self._by_name: dict[str, Extension] = {}
        for extension in extensions:
            self.register(extension)

    def register(self, extension: Extension) -> None:
        """Add an extension. Raises CloudEventError when another declares one of its attributes."""
        for name in extension.attributes:
            owner = self.owner(name)
            if owner is not None and owner.name != extension.name:
                raise CloudEventError(f"belongs to the extension {owner.name} already", where=name)
        self._by_name[extension.name] = extension

    def owner(self, attribute: str) -> Extension | None:
        """The extension that declares an attribute, or None."""
        return next((each for each in self._by_name.values() if attribute in each.attributes), None)

    def read(self, event: CloudEvent) -> dict[str, AttributeValue]:
        """The event's extension attributes, those of known extensions native and checked.

        Raises CloudEventError as `Extension.read` does.
        """
        values = dict(event.extensions)
        for extension in self._by_name.values():
            values.update(extension.read(event) or {})
        return values


def _not_empty(value: AttributeValue) -> str | None:
    return None if value else "must not be empty"


def _above_zero(value: AttributeValue) -> str | None:
    return None if isinstance(value, int) and value > 0 else "is not greater than zero"


#: https://github.com/cloudevents/spec/tree/main/cloudevents/extensions, one row an attribute.
PARTITIONING: Final = Extension(
    "Partitioning", ExtensionAttribute("partitionkey", types.STRING, True, _not_empty)
)
DISTRIBUTED_TRACING: Final = Extension(
    "Distributed Tracing",
    ExtensionAttribute("traceparent", types.STRING, True),
    ExtensionAttribute("tracestate", types.STRING),
)
SEQUENCE: Final = Extension(
    "Sequence",
    ExtensionAttribute("sequence", types.STRING, True, _not_empty),
    ExtensionAttribute("sequencetype", types.STRING, False, _not_empty),
)
DATAREF: Final = Extension("Dataref", ExtensionAttribute("dataref", types.URI_REFERENCE))
SAMPLED_RATE: Final = Extension(
    "Sampled Rate", ExtensionAttribute("sampledrate", types.INTEGER, True, _above_zero)
)

#: The extensions above.
DOCUMENTED: Final = ExtensionRegistry(
    (PARTITIONING, DISTRIBUTED_TRACING, SEQUENCE, DATAREF, SAMPLED_RATE)
)
