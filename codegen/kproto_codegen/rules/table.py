"""Lists the rules for a single definition, and applies them.

Most of these rules are those of Kafka's message generator; all other rules keep the generated
Python classes valid. `message_rules`, `struct_rules` and `field_rules` have a function for each
rule. `cross_message_rules` checks the messages of a release together. `parser` checks the syntax
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kproto.schema.specs import MessageSpec

from ..errors import DefinitionError
from ..reading.parser import Definition
from . import field_rules, message_rules, struct_rules
from .finding import CheckStrictness, Finding, Rule

__all__ = [
    "DEFINITION_RULES",
    "LEGACY_EXCEPTIONS",
    "CheckStrictness",
    "Finding",
    "check_definition",
    "checked_spec",
]

#: The rules for a single definition.
DEFINITION_RULES: Final[Sequence[Rule]] = (
    message_rules.repeated_keys,
    message_rules.trailing_content,
    message_rules.message_name,
    message_rules.rpc_name,
    message_rules.tabled_api_key,
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
    struct_rules.struct_in_a_version,
    struct_rules.inline_in_common,
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
    field_rules.valid_map_key,
    field_rules.tag_numbers,
    field_rules.tag_and_tagged_versions,
    field_rules.tagged_versions_range,
    field_rules.tagged_null,
    field_rules.tagged_records,
)

#: The rules whose findings are accepted with CheckStrictness.LEGACY.
LEGACY_EXCEPTIONS: Final[frozenset[Rule]] = frozenset({message_rules.flexible_versions_stated})


def check_definition(
    definition: Definition, *, profile: CheckStrictness = CheckStrictness.STRICT
) -> list[Finding]:
    """Returns the syntax errors of a definition and the findings of all rules, sorted by line.

    Leaves out a finding that may follow from a syntax error. `Definition.guesses` has specs in
    which the syntax errors are corrected in different ways. A finding is left out if one of these
    specs does not cause it.
    """
    found = [Finding(fault) for fault in definition.faults]
    guessed = [replace(definition, spec=spec) for spec in definition.guesses]
    for rule in DEFINITION_RULES:
        lenient = profile is CheckStrictness.LEGACY and rule in LEGACY_EXCEPTIONS
        other_findings = [{_identity(entry) for entry in rule(guess)} for guess in guessed]
        found += [
            Finding(entry.error, entry.accepted or lenient)
            for entry in rule(definition)
            if all(_identity(entry) in other for other in other_findings)
        ]
    return sorted(found, key=lambda finding: finding.error.line or 0)


def _identity(finding: Finding) -> tuple[int | None, str]:
    """Returns the line and the reason of a finding.

    `check_definition` compares both, to see if a rule finds the same error in the definition and in
    each corrected spec in `Definition.guesses`. The path of the field may differ between the specs,
    so the path is not compared.
    """
    return finding.error.line, finding.error.reason


def checked_spec(
    definition: Definition, *, profile: CheckStrictness = CheckStrictness.STRICT
) -> MessageSpec:
    """Returns the spec of a definition. Raises DefinitionError with all errors if it is invalid."""
    found = check_definition(definition, profile=profile)
    faults = [finding.error for finding in found if not finding.accepted]
    if faults:
        raise DefinitionError.of(faults)
    return definition.spec
