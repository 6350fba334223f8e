"""The rules of Kafka's message generator: what a definition must keep, one function a rule.

Knows no JSON and no folder: a rule looks at a parsed Definition and yields what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from kproto.schema.specs import MessageSpec

from .errors import DefinitionError
from .parser import Definition

__all__ = ["Finding", "Profile", "check_definition", "check_messages", "checked_spec"]


class Profile(Enum):
    """How strictly a definition is taken."""

    STRICT = "strict"
    LEGACY = "legacy"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found. One that is `accepted` is odd, and no reason to refuse."""

    error: DefinitionError
    accepted: bool = False


Rule: TypeAlias = Callable[[Definition], Iterator[Finding]]


def repeated_keys(definition: Definition) -> Iterator[Finding]:
    """A key that stands twice with the same value is odd; with another, the reader refuses it."""
    for error in definition.repeated:
        yield Finding(error, accepted=True)


DEFINITION_RULES: Final[Sequence[Rule]] = (repeated_keys,)


def check_definition(definition: Definition, *, profile: Profile = Profile.STRICT) -> list[Finding]:
    """What the rules find in one definition."""
    return [finding for rule in DEFINITION_RULES for finding in rule(definition)]


def checked_spec(definition: Definition, *, profile: Profile = Profile.STRICT) -> MessageSpec:
    """The spec of a definition that breaks no rule. Raises DefinitionError with every fault."""
    found = check_definition(definition, profile=profile)
    faults = [finding.error for finding in found if not finding.accepted]
    if faults:
        raise DefinitionError.of(faults)
    return definition.spec


def check_messages(messages: Iterable[MessageSpec], *, file: str) -> list[DefinitionError]:
    """What is wrong between the messages of one release."""
    return []
