"""Answers cases with kproto's own codec, which is the judge if Kafka's Java classes cannot be run.

`serve` answers lines of JSON, so that kproto itself can be the command under test:

    python -m kproto.fuzz.kproto_codec                # with Kafka's messages
    python -m kproto.fuzz.kproto_codec my_messages    # with a package of kproto-codegen
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, TextIO

from .. import messages
from ..wire.errors import ConfigurationError, DecodeError, EncodeError, KprotoError
from .case import Answer, Case, Operation, Outcome
from .packages import KAFKA

__all__ = ["KprotoCodec", "answer", "serve"]


def answer(case: Case) -> Answer:
    """Returns the answer of kproto's codec; DecodeError and EncodeError become REFUSED."""
    cls, version = case.message_version.cls, case.message_version.version
    try:
        if isinstance(case.content, str):
            message = cls.from_json(json.loads(case.content), version)
            return Answer(Outcome.DONE, message.encode(version))
        message, end = cls.decode_from(case.content, 0, version)
        if case.operation is Operation.DECODE:
            return Answer(Outcome.DONE, message.to_json(version), taken=end)
        return Answer(Outcome.DONE, message.encode(version), taken=end)
    except (DecodeError, EncodeError) as error:
        return Answer(Outcome.REFUSED, reason=str(error))


class KprotoCodec:
    """A judge that answers with kproto's codec, in this process."""

    name = "kproto's codec"

    def respond(self, cases: Sequence[Case]) -> list[Answer]:
        """Returns the answer to each case, in the order of `cases`."""
        return [answer(case) for case in cases]

    def close(self) -> None:
        """Does nothing: the codec has no process."""


def serve(source: TextIO, target: TextIO, package: ModuleType = messages) -> None:
    """Reads cases for messages of `package` from `source`, and writes an answer line for each."""
    for line in source:
        if line.strip():
            target.write(json.dumps(_answered(line, package), separators=(",", ":")) + "\n")
            target.flush()


def _answered(line: str, package: ModuleType = messages) -> dict[str, Any]:
    try:
        question = json.loads(line)
        number = question.get("id")
    except (ValueError, AttributeError):
        return {"id": None, "failed": "the line is no JSON object"}
    try:
        case = Case.from_json(question, package)
    except ConfigurationError as error:
        return {"id": number, "unsupported": str(error)}
    try:
        found = answer(case)
    except (KprotoError, RecursionError) as error:
        return {"id": number, "failed": repr(error)}
    if found.outcome is not Outcome.DONE:
        return {"id": number, found.outcome.value: found.reason}
    made = (
        {"json": found.value} if case.operation is Operation.DECODE else {"hex": found.value.hex()}
    )
    return {"id": number, **made, **({} if found.taken is None else {"taken": found.taken})}


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout, import_module(*sys.argv[1:] or [KAFKA]))
