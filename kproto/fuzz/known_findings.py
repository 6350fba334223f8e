"""Reads and writes the file of known findings, which do not fail a run of `kproto fuzz`.

The file has one finding per line, as JSON; docs/how-to/fuzzing.md describes the keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Final, Self, TypeVar

from .. import messages
from ..protocol.message_classes import definitions_in
from ..schema.definitions import Definitions
from ..schema.unknown_names import unknown_name_error
from ..wire.errors import ConfigurationError, KprotoError
from .case import MessageVersion, Operation
from .judging import Fault, Verdict

__all__ = [
    "KnownFinding",
    "KnownFindings",
    "known_from_finding",
    "parse_known",
    "parse_spans",
    "spans",
]

T = TypeVar("T")

#: The largest int16, because versions are int16 in requests.
_MAX_VERSION: Final = 0x7FFF

#: Faults whose cause may quote the case, so it is not the same for all cases of the fault.
_CAUSE_VARIES: Final = frozenset(
    {Fault.CRASHED, Fault.HUNG, Fault.LATE, Fault.GARBAGE, Fault.ORDER}
)

_KEYS: Final = ("message", "versions", "operation", "fault", "trait", "cause", "reason")


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A fault that is known, and the cases in which it is known.

    `message`, `versions`, `operation` and `cause` are None if the fault is known for all of them.
    `trait` has the traits that a case must have; a case may have further traits. `reason` is text
    for readers of the file.
    """

    fault: Fault
    message: str | None = None
    versions: frozenset[int] | None = None
    operation: Operation | None = None
    trait: str = ""
    cause: str | None = None
    reason: str = ""

    def matches(
        self, verdict: Verdict, operation: Operation, message_version: MessageVersion
    ) -> bool:
        """Returns True if `verdict` on a case of this operation and message version is known."""
        return (
            verdict.fault is self.fault
            and (self.cause is None or verdict.cause == self.cause)
            and _traits(self.trait) <= _traits(verdict.trait)
            and self.covers(operation, message_version)
        )

    def covers(self, operation: Operation, message_version: MessageVersion) -> bool:
        """Returns True if the fault is known for cases of this operation and message version."""
        return (
            self.message in (None, message_version.name)
            and (self.versions is None or message_version.version in self.versions)
            and self.operation in (None, operation)
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the finding as JSON data of a line of the file."""
        content = {
            "message": self.message,
            "versions": None if self.versions is None else spans(self.versions),
            "operation": None if self.operation is None else self.operation.value,
            "fault": self.fault.name.lower(),
            "trait": self.trait or None,
            "cause": self.cause,
        }
        return {key: value for key, value in content.items() if value is not None} | {
            "reason": self.reason
        }

    @classmethod
    def from_json(cls, node: object) -> Self:
        """Returns the finding in the JSON data of a line.

        Raises ConfigurationError if a key is unknown or has a wrong value; the error names the key.
        """
        if not isinstance(node, dict):
            raise ConfigurationError("a known finding is a JSON object")
        for key, value in node.items():
            if key not in _KEYS:
                raise ConfigurationError(f"key {key!r} is unknown: use some of {', '.join(_KEYS)}")
            if not isinstance(value, str):
                raise ConfigurationError(f"{key} is {json.dumps(value)}: it must be a string")
        if "fault" not in node:
            raise ConfigurationError("the key fault is missing")
        operation = node.get("operation")
        versions = node.get("versions")
        return cls(
            _enum_member("fault", node["fault"], {each.name.lower(): each for each in Fault}),
            node.get("message"),
            None if versions is None else parse_spans(versions),
            None
            if operation is None
            else _enum_member("operation", operation, {each.value: each for each in Operation}),
            node.get("trait", ""),
            node.get("cause"),
            node.get("reason", ""),
        )


def _enum_member(key: str, value: str, known: dict[str, T]) -> T:
    if value not in known:
        raise ConfigurationError(f"{key} is {value!r}: it must be one of {', '.join(known)}")
    return known[value]


def _traits(text: str) -> frozenset[str]:
    return frozenset(text.split(", ")) - {""}


def spans(versions: Iterable[int]) -> str:
    """Returns versions as text, such as `4-11,13`."""
    found: list[list[int]] = []
    for version in sorted(versions):
        if found and found[-1][1] == version - 1:
            found[-1][1] = version
        else:
            found.append([version, version])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def parse_spans(text: str) -> frozenset[int]:
    """Returns the versions in a text of `spans`; spaces have no meaning.

    Raises ConfigurationError for another text.
    """
    found: set[int] = set()
    try:
        for part in text.split(","):
            low, _, high = part.partition("-")
            first, last = int(low), int(high or low)
            if not first <= last <= _MAX_VERSION:
                raise ValueError("no range of versions")
            found.update(range(first, last + 1))
    except ValueError:
        raise ConfigurationError(f"versions is {text!r}: it must be like 4-11,13") from None
    return frozenset(found)


def parse_known(text: str, package: ModuleType = messages) -> list[KnownFinding]:
    """Returns the known findings in the text of a file; empty lines have no meaning.

    A message of `package` with a former name gets its present name. Raises ConfigurationError for a
    line that is not a known finding or names no message of `package`; the error has the number of
    the line.
    """
    known = definitions_in(package)
    found: list[KnownFinding] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found += _with_present_names(KnownFinding.from_json(json.loads(line)), known)
        except KprotoError as error:
            raise ConfigurationError(f"line {number}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"line {number} is no JSON: {error}") from None
    return found


def _with_present_names(finding: KnownFinding, known: Definitions) -> list[KnownFinding]:
    """Returns the finding for each message that formerly had the name of the finding's message.

    Raises UnknownNameError if no message has, or had, this name, and ConfigurationError if the
    message has none of the finding's versions.
    """
    if finding.message is None:
        return [finding]
    if finding.message in known:
        valid = known[finding.message].valid_versions
        if finding.versions is not None and not finding.versions.intersection(valid):
            raise ConfigurationError(
                f"versions is {spans(finding.versions)!r}: {finding.message} has {valid}"
            )
        return [finding]
    present = known.former(finding.message)
    if not present:
        raise unknown_name_error("no message is called", finding.message, known)
    return [replace(finding, message=name) for name in present]


def known_from_finding(
    verdict: Verdict, operation: Operation, message_versions: Iterable[MessageVersion]
) -> list[KnownFinding]:
    """Returns a known finding with an empty reason for each message of a finding, sorted by name.

    A finding whose cause may differ between its cases becomes known for all causes.
    """
    versions: dict[str, set[int]] = {}
    for message_version in sorted(message_versions):
        versions.setdefault(message_version.name, set()).add(message_version.version)
    cause = None if verdict.fault in _CAUSE_VARIES else verdict.cause
    return [
        KnownFinding(verdict.fault, name, frozenset(found), operation, verdict.trait, cause or None)
        for name, found in versions.items()
    ]


class KnownFindings:
    """Counts, for each known finding, the faults of a run that match it, in the attribute `counts`.

    Also tracks the cases of the run, so that `unseen` knows which known findings it has tested.
    """

    def __init__(self, known: Sequence[KnownFinding] = ()) -> None:
        self.counts: dict[KnownFinding, int] = dict.fromkeys(known, 0)
        self._by_fault: dict[tuple[Fault, str | None], list[KnownFinding]] = {}
        for each in self.counts:
            self._by_fault.setdefault((each.fault, each.message), []).append(each)
        self._tried: set[tuple[Operation, MessageVersion]] = set()

    def add_case(self, operation: Operation, message_version: MessageVersion) -> None:
        """Notes that the run has a case of this operation and message version."""
        self._tried.add((operation, message_version))

    def count(
        self, verdict: Verdict, operation: Operation, message_version: MessageVersion
    ) -> bool:
        """Counts a fault at all known findings that it matches; returns True if there are any."""
        found = [
            each
            for message in (message_version.name, None)
            for each in self._by_fault.get((verdict.fault, message), ())
            if each.matches(verdict, operation, message_version)
        ]
        for each in found:
            self.counts[each] += 1
        return bool(found)

    def unseen(self) -> list[KnownFinding]:
        """Returns the known findings that match no fault, although the run has cases of them.

        A case of a known finding has the message, one of the versions, and the operation.
        """
        return [
            each
            for each, count in self.counts.items()
            if not count and any(each.covers(*tried) for tried in self._tried)
        ]
