"""Defines the cases that a command under test gets, and its answers, both as lines of JSON.

docs/how-to/fuzzing.md describes the lines. `implementation` runs the command.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any, Final, NamedTuple

from .. import messages
from ..messages.base import Message
from ..protocol.message_classes import definitions_in
from ..schema.layout import StructLayout, layout
from ..wire.errors import ConfigurationError
from .packages import KAFKA, message_class

__all__ = [
    "ONE_WAY",
    "Answer",
    "Case",
    "InvalidAnswerError",
    "MessageVersion",
    "Operation",
    "Outcome",
    "all_message_versions",
    "parse_answer",
    "printable",
]


class Operation(Enum):
    """The operation that an implementation performs in a case.

    DECODE converts bytes to JSON, ENCODE converts JSON to bytes. REWRITE decodes bytes and encodes
    the message again.
    """

    DECODE = "decode"
    ENCODE = "encode"
    REWRITE = "rewrite"


class Outcome(Enum):
    """The outcome of a case.

    DONE, REFUSED, UNSUPPORTED, READ_ONLY, WRITE_ONLY and FAILED are answers of the implementation.
    CRASHED, HUNG, LATE and GARBAGE say why there was no valid answer in time.
    """

    DONE = "done"
    REFUSED = "refused"
    UNSUPPORTED = "unsupported"
    READ_ONLY = "readOnly"
    WRITE_ONLY = "writeOnly"
    FAILED = "failed"
    CRASHED = "crashed"
    HUNG = "hung"
    LATE = "late"
    GARBAGE = "garbage"


class MessageVersion(NamedTuple):
    """A message, one of its versions, and the name of the package that has its class."""

    name: str
    version: int
    package: str = KAFKA

    @property
    def cls(self) -> type[Message]:
        """Returns the generated class of the message."""
        return message_class(self.package, self.name)

    @property
    def shape(self) -> StructLayout:
        """Returns the layout of the message version."""
        return layout(self.cls._definition(), self.version)

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


def all_message_versions(package: ModuleType = messages) -> tuple[MessageVersion, ...]:
    """Returns all message versions of a generated package, sorted by name and version.

    Raises ConfigurationError if `package` is not a generated package.
    """
    known = definitions_in(package)
    return tuple(
        MessageVersion(name, version, package.__name__)
        for name in sorted(known)
        for version in known[name].valid_versions
    )


@cache
def _kind_of(message_version: MessageVersion) -> dict[str, Any]:
    """Returns the type of the message and its API key, which codecs need that have no names."""
    spec = message_version.cls._definition()
    return {"type": spec.type, "apiKey": spec.api_key}


@dataclass(frozen=True, slots=True)
class Case:
    """A message version with content to decode, encode or rewrite.

    `content` is bytes, or for ENCODE a JSON string. `kind` is a key of `case_generation.KINDS`.
    """

    operation: Operation
    message_version: MessageVersion
    content: bytes | str
    kind: str

    def question(self, number: int) -> str:
        """Returns the line of JSON for an implementation, with `number` as id, without line end."""
        asked = {"id": number, **self._body(), **_kind_of(self.message_version)}
        return json.dumps(asked, ensure_ascii=True, separators=(",", ":"))

    def to_json(self) -> dict[str, Any]:
        """Returns the case as JSON data, which reports contain and `from_json` reads."""
        return {**self._body(), "kind": self.kind}

    def _body(self) -> dict[str, Any]:
        head = {
            "operation": self.operation.value,
            "message": self.message_version.name,
            "version": self.message_version.version,
        }
        if isinstance(self.content, bytes):
            return {**head, "hex": self.content.hex()}
        return {**head, "json": json.loads(self.content)}

    @classmethod
    def from_json(cls, node: object, package: ModuleType = messages) -> Case:
        """Returns the case in the JSON data of `to_json`, for a message of `package`.

        Raises ConfigurationError if a key is missing or has a wrong value; the error names the key.
        """
        if not isinstance(node, dict):
            raise ConfigurationError("a case is a JSON object; copy one from a report")
        try:
            operation = Operation(node.get("operation"))
        except ValueError:
            operations = ", ".join(each.value for each in Operation)
            raise ConfigurationError(
                f"operation is {node.get('operation')!r}: it must be one of {operations}"
            ) from None
        name, version = node.get("message"), node.get("version")
        known = definitions_in(package)
        if not isinstance(name, str) or name not in known:
            raise ConfigurationError(f"message is {name!r}, which the definitions do not have")
        versions = known[name].valid_versions
        if type(version) is not int or version not in versions:
            raise ConfigurationError(f"version is {version!r}: {name} has versions {versions}")
        kind = node.get("kind", "given")
        message_version = MessageVersion(name, version, package.__name__)
        return cls(operation, message_version, _content(operation, node), str(kind))

    def with_content(self, content: bytes | str) -> Case:
        """Returns a copy of the case with a new content."""
        return replace(self, content=content)

    def __str__(self) -> str:
        shown = self.content.hex() if isinstance(self.content, bytes) else self.content
        return f"{self.operation.value} {self.message_version} {shown}"


def _content(operation: Operation, node: dict[str, Any]) -> bytes | str:
    if operation is Operation.ENCODE:
        if "json" not in node:
            raise ConfigurationError("a case of encode needs the key json")
        return json.dumps(node["json"], separators=(",", ":"))
    return _bytes_of(node.get("hex"), "a case of decode or rewrite needs the key hex, bytes in hex")


def _bytes_of(value: object, error_text: str) -> bytes:
    try:
        return bytes.fromhex(value)  # type: ignore[arg-type]  # TypeError is handled below
    except (TypeError, ValueError):
        raise ConfigurationError(error_text) from None


#: The answers of an implementation that only reads or only writes a message version, and the
#: operations to which each answer is valid. An implementation that answers REWRITE with READ_ONLY
#: has read the bytes.
ONE_WAY: Final[dict[Outcome, frozenset[Operation]]] = {
    Outcome.READ_ONLY: frozenset({Operation.ENCODE, Operation.REWRITE}),
    Outcome.WRITE_ONLY: frozenset({Operation.DECODE, Operation.REWRITE}),
}

#: The keys of an answer; an answer has exactly one of them.
_KEYS: Final = ("hex", "json", "refused", "failed", "unsupported", "readOnly", "writeOnly")


class Answer(NamedTuple):
    """The answer to a case, or the outcome if there is no answer.

    With the outcome DONE, `value` is bytes, or for DECODE JSON data. `taken` is the number of bytes
    that were read; None if the answer lacks this number. `faults` are faults besides the answer, as
    tuples: (`garbage`, description) for lines that are not answers, (`order`, description) if a
    later case was answered first.
    """

    outcome: Outcome
    value: Any = None
    reason: str = ""
    taken: int | None = None
    faults: tuple[tuple[str, str], ...] = ()


def printable(text: str) -> str:
    """Returns the text of another program so that it can be printed safely.

    Escapes non-printable characters, except line ends.
    """
    return "".join(
        each if each == "\n" or each.isprintable() else each.encode("unicode_escape").decode()
        for each in text
    )


class InvalidAnswerError(Exception):
    """A line that the command printed is not a valid answer. The error text says why."""


#: Maximum number of characters of a line or a reason that are kept.
SHOWN: Final = 200


def parse_answer(node: dict[str, Any], operation: Operation) -> Answer:
    """Returns the answer in `node`, the JSON object of a line.

    Raises InvalidAnswerError if it is not a valid answer to a case of `operation`.
    """
    keys = [key for key in _KEYS if key in node]
    if len(keys) != 1:
        raise InvalidAnswerError(
            f"an answer has one of {', '.join(_KEYS[:-1])} and {_KEYS[-1]}, not {keys or 'none'}"
        )
    key = keys[0]
    taken = node.get("taken")
    if taken is not None and type(taken) is not int:
        raise InvalidAnswerError(f"taken is {str(taken)[:SHOWN]}, not a number of bytes")
    if key not in ("hex", "json"):
        outcome = Outcome(key)
        if operation not in ONE_WAY.get(outcome, Operation):
            raise InvalidAnswerError(f"it answers {operation.value} with {key}")
        return Answer(outcome, reason=str(node[key])[:SHOWN], taken=taken)
    if (key == "json") != (operation is Operation.DECODE):
        raise InvalidAnswerError(f"it answers {operation.value} with {key}")
    if key == "json":
        return Answer(Outcome.DONE, node["json"], taken=taken)
    try:
        return Answer(Outcome.DONE, bytes.fromhex(node["hex"]), taken=taken)
    except (TypeError, ValueError):
        raise InvalidAnswerError(f"hex is not hexadecimal: {str(node['hex'])[:SHOWN]}") from None
