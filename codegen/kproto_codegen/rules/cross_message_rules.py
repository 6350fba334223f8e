"""Checks the messages of a release together: names and api keys must not collide.

The definitions must already satisfy the rules in `table`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kproto.schema.naming import class_name, module_name
from kproto.schema.specs import MessageSpec

from ..errors import DefinitionError
from ..reading.parser import Definition
from .finding import message_finding, spec_finding, struct_definitions

__all__ = ["check_messages"]


def check_messages(definitions: Iterable[Definition]) -> list[DefinitionError]:
    """Returns an error for each conflict between messages of a release.

    Two messages conflict if they have the same name, the same Python module name, or the same
    Kafka module, type and api key; the error names the place of the later message. A struct of a
    request must not have the name of the response; this error names the place of the struct.
    """
    names: dict[str, Definition] = {}
    modules: dict[str, Definition] = {}
    keys: dict[tuple[str, str, int], Definition] = {}
    faults = []
    for definition in definitions:
        message = definition.spec
        first = names.setdefault(message.name, definition)
        if first is not definition:
            reason = f"two messages are called {message.name}: the other is in {first.file}"
            faults.append(message_finding(definition, "name", reason).error)
            continue
        first = modules.setdefault(module_name(message.name), definition)
        if first is not definition:
            reason = (
                f"{first.spec.name} in {first.file} and {message.name} would be one module in "
                f"Python, {module_name(message.name)}"
            )
            faults.append(message_finding(definition, "name", reason).error)
        if message.api_key is None:
            continue
        first = keys.setdefault((message.module, message.type, message.api_key), definition)
        if first is not definition:
            reason = (
                f"{first.spec.name} in {first.file} and {message.name} are both the "
                f"{message.type} of api key {message.api_key}"
            )
            faults.append(message_finding(definition, "apiKey", reason).error)
    for (module, kind, key), request in keys.items():
        response = keys.get((module, "response", key))
        if kind == "request" and response is not None:
            faults += _named_as(request, response.spec)
    return faults


def _named_as(request: Definition, response: MessageSpec) -> list[DefinitionError]:
    """Returns an error for each struct of `request` whose class has the name of `response`.

    The module of a request imports the class of the response, so the two class names would clash.
    """
    reason = "the struct {} would have the name of the response in Python"
    return [
        spec_finding(request, located, "type", reason.format(name)).error
        for name, located in struct_definitions(request)
        if class_name(name) == class_name(response.name)
    ]
