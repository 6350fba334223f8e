"""The rules of Kafka's message generator: the table of all, and how their findings are taken.

The rules themselves, one function each, stand in `message_rules`, `struct_rules` and
`field_rules`. They look at a parsed Definition; what a definition must have to be read at all is
for `parser`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kproto.schema.naming import class_name, module_name
from kproto.schema.specs import MessageSpec

from . import field_rules, message_rules, struct_rules
from .errors import DefinitionError
from .finding import Finding, Profile, Rule, defining_places, of_message, of_place
from .parser import Definition

__all__ = [
    "DEFINITION_RULES",
    "LEGACY_EXCEPTIONS",
    "Finding",
    "Profile",
    "check_definition",
    "check_messages",
    "checked_spec",
]

#: Every rule that looks at one definition.
DEFINITION_RULES: Final[Sequence[Rule]] = (
    message_rules.repeated_keys,
    message_rules.trailing_content,
    message_rules.message_name,
    message_rules.rpc_name,
    message_rules.rpc_api_key,
    message_rules.api_key_range,
    message_rules.valid_versions_closed,
    message_rules.flexible_versions_stated,
    message_rules.flexible_versions_open,
    message_rules.deprecated_versions_valid,
    message_rules.listeners_of_request,
    message_rules.unstable_request,
    message_rules.coordinator_record,
    struct_rules.struct_defined_once,
    struct_rules.struct_name,
    struct_rules.struct_names_in_python,
    struct_rules.name_lengths,
    struct_rules.field_names,
    struct_rules.no_recursion,
    struct_rules.element_has_bytes,
    field_rules.field_versions_used,
    field_rules.nested_versions,
    field_rules.common_struct_versions,
    field_rules.nullable_type,
    field_rules.known_type,
    field_rules.fields_of_struct,
    field_rules.default_fits,
    field_rules.entity_type,
    field_rules.zero_copy_bytes,
    field_rules.field_flexible_versions,
    field_rules.map_key_place,
    field_rules.tag_numbers,
    field_rules.tag_and_tagged_versions,
    field_rules.tagged_versions_range,
    field_rules.tagged_null,
    field_rules.tagged_records,
)

#: Rules whose findings the legacy profile only reports.
LEGACY_EXCEPTIONS: Final[frozenset[Rule]] = frozenset({message_rules.flexible_versions_stated})


def check_definition(definition: Definition, *, profile: Profile = Profile.STRICT) -> list[Finding]:
    """What the rules find in one definition, in the order of the lines."""
    found = []
    for rule in DEFINITION_RULES:
        lenient = profile is Profile.LEGACY and rule in LEGACY_EXCEPTIONS
        found += [Finding(entry.error, entry.accepted or lenient) for entry in rule(definition)]
    return sorted(found, key=lambda finding: finding.error.line or 0)


def checked_spec(definition: Definition, *, profile: Profile = Profile.STRICT) -> MessageSpec:
    """The spec of a definition that breaks no rule. Raises DefinitionError with every fault."""
    found = check_definition(definition, profile=profile)
    faults = [finding.error for finding in found if not finding.accepted]
    if faults:
        raise DefinitionError.of(faults)
    return definition.spec


# Between the messages of one release


def check_messages(definitions: Iterable[Definition]) -> list[DefinitionError]:
    """What is wrong between the messages of one release, told of the later one.

    Two messages have one name, or names that make one module in Python, or one api key within a
    module and type; or a struct of a request has the name of the response.
    """
    names: dict[str, Definition] = {}
    modules: dict[str, Definition] = {}
    keys: dict[tuple[str, str, int], Definition] = {}
    faults = []
    for definition in definitions:
        message = definition.spec
        first = names.setdefault(message.name, definition)
        if first is not definition:
            reason = f"two messages are called {message.name}: the other stands in {first.file}"
            faults.append(of_message(definition, "name", reason).error)
            continue
        first = modules.setdefault(module_name(message.name), definition)
        if first is not definition:
            reason = (
                f"{first.spec.name} in {first.file} and {message.name} would be one module in "
                f"Python, {module_name(message.name)}"
            )
            faults.append(of_message(definition, "name", reason).error)
        if message.api_key is None:
            continue
        first = keys.setdefault((message.module, message.type, message.api_key), definition)
        if first is not definition:
            reason = (
                f"{first.spec.name} in {first.file} and {message.name} are both the "
                f"{message.type} of api key {message.api_key}"
            )
            faults.append(of_message(definition, "apiKey", reason).error)
    for (module, kind, key), request in keys.items():
        response = keys.get((module, "response", key))
        if kind == "request" and response is not None:
            faults += _named_as(request, response.spec)
    return faults


def _named_as(request: Definition, response: MessageSpec) -> list[DefinitionError]:
    """A request knows the class of its response, so that no struct of it may have that name."""
    reason = "the struct {} would have the name of the response in Python"
    return [
        of_place(request, place, "type", reason.format(name)).error
        for name, place in defining_places(request)
        if class_name(name) == class_name(response.name)
    ]
