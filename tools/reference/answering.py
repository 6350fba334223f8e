"""Answers the questions of `kproto fuzz` with Kafka's Java classes (`tools.reference answer`).

A question is answered by the newest release that has the message and the version.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any, Final, TextIO

from .pairs import KprotoMessageVersion, ReleaseMessageVersion, forms
from .process import (
    Answer,
    JavaProgramOperation,
    KafkaJavaProgram,
    Outcome,
    ReferenceFailedError,
    question,
)

__all__ = ["serve"]

_OPERATIONS: Final = {
    "rewrite": JavaProgramOperation.REWRITE,
    "decode": JavaProgramOperation.TO_JSON,
    "encode": JavaProgramOperation.FROM_JSON,
}


def serve(source: TextIO, target: TextIO) -> None:
    """Answers each line of `source` with a line of `target`. Raises ReferenceUnavailableError."""
    newest = {form: max(pairs, key=_release) for form, pairs in forms().items()}
    with ExitStack() as stack:
        running: dict[str, KafkaJavaProgram] = {}
        for line in source:
            asked = json.loads(line)
            pair = newest.get(KprotoMessageVersion(asked["message"], asked["version"]))
            operation = _OPERATIONS.get(asked["operation"])
            if pair is None or operation is None:
                said: dict[str, Any] = {
                    "unsupported": "no release has this message at this version"
                }
            else:
                if pair.release not in running:
                    running[pair.release] = stack.enter_context(KafkaJavaProgram(pair.release))
                said = _answered(running[pair.release], pair, operation, asked)
            target.write(json.dumps({"id": asked["id"], **said}, separators=(",", ":")) + "\n")
            target.flush()


def _release(pair: ReleaseMessageVersion) -> tuple[int, ...]:
    return tuple(int(part) for part in pair.release.split("."))


def _answered(
    judge: KafkaJavaProgram,
    pair: ReleaseMessageVersion,
    operation: JavaProgramOperation,
    asked: dict[str, Any],
) -> dict[str, Any]:
    if operation is JavaProgramOperation.FROM_JSON:
        content = json.dumps(asked["json"], separators=(",", ":")).encode()
    else:
        content = bytes.fromhex(asked["hex"])
    try:
        (answer,) = judge.ask([question(operation, pair.name, pair.version, content)])
    except ReferenceFailedError as error:
        return {"failed": str(error)}
    return _said(answer, operation)


def _said(answer: Answer, operation: JavaProgramOperation) -> dict[str, Any]:
    reason = answer.data.decode(errors="replace")
    if answer.outcome is Outcome.UNWRITABLE:
        return {"refused": f"decoded, but not encoded: {reason}", "taken": answer.taken}
    if not answer.accepted:
        return {"refused": reason}
    if operation is JavaProgramOperation.FROM_JSON:
        return {"hex": answer.data.hex()}
    if operation is JavaProgramOperation.TO_JSON:
        return {"json": json.loads(answer.data), "taken": answer.taken}
    return {"hex": answer.data.hex(), "taken": answer.taken}
