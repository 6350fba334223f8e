"""Rules about a message as a whole: its file, name, versions and listeners.

Each function is a rule in `table`. A message without valid versions only reserves its api key;
Kafka's generator does not check the rest of its definition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from kproto.schema.versions import Versions

from ..errors import DefinitionError
from ..reading.parser import Definition
from .finding import Finding, message_finding

__all__ = ["LISTENERS"]

#: The listeners of a request; zkBroker exists up to 3.9.
LISTENERS: Final = ("zkBroker", "broker", "controller")

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)


# Rules about the file


def repeated_keys(definition: Definition) -> Iterator[Finding]:
    """Reports a key that an object has twice with the same value, as a note, not as an error."""
    for error in definition.repeated:
        yield Finding(error, accepted=True)


def trailing_content(definition: Definition) -> Iterator[Finding]:
    """Reports content after the definition as a finding that is accepted: a note, not an error.

    Only a lenient parser accepts such content; a strict parser refuses it.
    """
    if definition.trailing_line is not None:
        error = DefinitionError(
            "there is content after the end of the definition",
            file=definition.file,
            line=definition.trailing_line,
        )
        yield Finding(error, accepted=True)


# Rules about the message


def message_name(definition: Definition) -> Iterator[Finding]:
    """Checks that the name of a message is a valid name of a class and of a module."""
    name = definition.spec.name
    if _NAME.fullmatch(name) is None:
        yield message_finding(
            definition,
            "name",
            f"{name!r} is no name of a message: use ASCII letters and digits, a capital first",
        )


def rpc_name(definition: Definition) -> Iterator[Finding]:
    """Checks that a request's name ends with Request, and a response's name with Response."""
    suffix = {"request": "Request", "response": "Response"}.get(definition.spec.type)
    if suffix is not None and not definition.spec.name.endswith(suffix):
        yield message_finding(
            definition,
            "name",
            f"the name of a {definition.spec.type} must end with {suffix}, "
            f"not be {definition.spec.name!r}",
        )


def tabled_api_key(definition: Definition) -> Iterator[Finding]:
    """Checks that requests, responses and metadata have an api key, even without valid versions.

    Kafka's generator writes tables of these messages by api key, and fails without a key.
    """
    spec = definition.spec
    if spec.type in {"request", "response", "metadata"} and spec.api_key is None:
        yield message_finding(definition, "type", f"a {spec.type} must have an apiKey")


def api_key_range(definition: Definition) -> Iterator[Finding]:
    """Checks that an api key is from 0 to 32,767."""
    key = definition.spec.api_key
    if key is not None and not 0 <= key <= 32767:
        yield message_finding(definition, "apiKey", f"{key} is no api key: use 0 to 32767")


def valid_versions_closed(definition: Definition) -> Iterator[Finding]:
    """Checks that validVersions have an end, such as `0-3`."""
    versions = definition.spec.valid_versions
    if versions and versions.open_ended:
        yield message_finding(
            definition,
            "validVersions",
            f"validVersions {versions} has no end; name the highest version",
        )


def flexible_versions_stated(definition: Definition) -> Iterator[Finding]:
    """Checks that a message with valid versions has flexibleVersions.

    With CheckStrictness.LEGACY a violation is a note, not an error.
    """
    if definition.spec.valid_versions and not definition.states("flexibleVersions"):
        yield message_finding(
            definition,
            "flexibleVersions",
            'there is no "flexibleVersions"; write 0+ for a new message, or none',
        )


def flexible_versions_open(definition: Definition) -> Iterator[Finding]:
    """Checks that flexibleVersions have no end, such as `3+`, or are `none`."""
    versions = definition.spec.flexible_versions
    if definition.spec.valid_versions and versions and not versions.open_ended:
        yield message_finding(
            definition,
            "flexibleVersions",
            f"flexibleVersions {versions} has an end; write {versions.lowest}+ or none",
        )


def deprecated_versions_valid(definition: Definition) -> Iterator[Finding]:
    """Reports deprecatedVersions outside of validVersions, as a note instead of an error."""
    spec = definition.spec
    if spec.valid_versions and not spec.valid_versions.covers(spec.deprecated_versions):
        yield message_finding(
            definition,
            "deprecatedVersions",
            f"deprecatedVersions {spec.deprecated_versions} are not all among the valid versions "
            f"{spec.valid_versions}",
            accepted=True,
        )


def listeners_of_request(definition: Definition) -> Iterator[Finding]:
    """Checks that only requests have listeners, which must be in LISTENERS without duplicates."""
    spec = definition.spec
    if spec.listeners and spec.type != "request" and spec.valid_versions:
        yield message_finding(definition, "listeners", f"a {spec.type} has no listeners")
    for listener in spec.listeners:
        if listener not in LISTENERS:
            yield message_finding(
                definition,
                "listeners",
                f"{listener!r} is no listener: use {', '.join(LISTENERS)}",
            )
    for listener, count in Counter(spec.listeners).items():
        if count > 1:
            yield message_finding(definition, "listeners", f"the listener {listener} occurs twice")


def unstable_request(definition: Definition) -> Iterator[Finding]:
    """Checks that only a request has latestVersionUnstable, which applies to its response too."""
    spec = definition.spec
    if spec.latest_version_unstable and spec.type != "request" and spec.valid_versions:
        yield message_finding(
            definition,
            "latestVersionUnstable",
            f"a {spec.type} cannot have latestVersionUnstable, only a request",
        )


def coordinator_record(definition: Definition) -> Iterator[Finding]:
    """Checks that a coordinator record has an api key, and that its key has only version 0.

    Version 0 of the key must not be flexible.
    """
    spec = definition.spec
    if not spec.type.startswith("coordinator-") or not spec.valid_versions:
        return
    if spec.api_key is None:
        yield message_finding(definition, "type", f"a {spec.type} must have an apiKey")
    if spec.type == "coordinator-key" and spec.valid_versions != Versions.single(0):
        yield message_finding(
            definition,
            "validVersions",
            f"the validVersions of a coordinator-key must be 0, not {spec.valid_versions}",
        )
    if spec.type == "coordinator-key" and spec.flexible_versions:
        yield message_finding(
            definition,
            "flexibleVersions",
            f"a coordinator-key cannot be flexible; write none, not {spec.flexible_versions}",
        )
