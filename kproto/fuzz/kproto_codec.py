"""Answers the questions of `case` by kproto's own codec, the judge if there is no other.

`answer` answers one case. `serve` answers lines, as any implementation under test does:

    python -m kproto.fuzz.kproto_codec                # of Kafka's messages
    python -m kproto.fuzz.kproto_codec my_messages    # of a package that kproto-codegen generated
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
    """Returns the answer of kproto's codec; DecodeError and EncodeError are refusals."""
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
    """Judges by kproto's codec."""

    name = "kproto's codec"

    def respond(self, cases: Sequence[Case]) -> list[Answer]:
        """Returns the answer to each case."""
        return [answer(case) for case in cases]

    def close(self) -> None:
        """Does nothing: the codec has no process."""


def serve(source: TextIO, target: TextIO, package: ModuleType = messages) -> None:
    """Answers each line of `source`, about messages of `package`, with one on `target`."""
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
