"""Runs the Java program, and sends it questions without waiting for each answer.

Encodes questions and decodes answers (see `java/Reference.java`). `JavaProgramOperation` describes
the input and output of each operation.
"""

from __future__ import annotations

import queue
import struct
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Generator, Iterable
from enum import IntEnum
from itertools import islice
from types import TracebackType
from typing import Final, NamedTuple, Self

from tools.setup import java

from .classes import class_path

__all__ = [
    "Answer",
    "JavaProgramOperation",
    "KafkaJavaProgram",
    "Outcome",
    "ReferenceFailedError",
    "question",
    "records_question",
]


class JavaProgramOperation(IntEnum):
    """The operations of the Java program, with the numbers that the program uses.

    REWRITE decodes a message and encodes it again. TO_JSON decodes bytes and writes JSON. FROM_JSON
    reads JSON and encodes bytes. READ_RECORDS decodes record batches and message sets, and
    describes them in JSON; BUILD_RECORDS builds a batch or message set from such a description.
    DECIDE_RIGHTS runs KRaft's authorizer (`rights`). MEASURE runs the measurements of quotas
    (`quotas`). ASSIGN runs the client-side assignors (`assignors`). MEMBER_DATA runs the codec of
    the data that members exchange (`member_data`). MATCH_REGEX runs java.util.regex or re2j
    (`regexes`). SERIALIZE runs the serializers of keys and values (`serializers`).
    """

    REWRITE = 0
    TO_JSON = 1
    FROM_JSON = 2
    READ_RECORDS = 3
    BUILD_RECORDS = 4
    DECIDE_RIGHTS = 5
    MEASURE = 6
    ASSIGN = 7
    MEMBER_DATA = 8
    MATCH_REGEX = 9
    SERIALIZE = 10


class Outcome(IntEnum):
    """The outcome of a question, by its number in the Java program.

    DONE: Kafka's class decoded and encoded the message. REFUSED: the class cannot decode the
    message. UNWRITABLE: the class decoded the message, but cannot encode it. FAILED: the question
    or the program is wrong.
    """

    DONE = 0
    REFUSED = 1
    UNWRITABLE = 2
    FAILED = 3


class Answer(NamedTuple):
    """The answer of Kafka's class.

    `data` is the output of the class if the outcome is DONE, else the reason in UTF-8. `taken` is
    the number of bytes that the class decoded, without bytes after the message; 0 if the class
    refused the bytes.
    """

    outcome: Outcome
    data: bytes
    taken: int = 0

    @property
    def accepted(self) -> bool:
        """Returns True if Kafka's class decoded the input and encoded it."""
        return self.outcome is Outcome.DONE


class ReferenceFailedError(RuntimeError):
    """The Java program ended, or reported a failure instead of an answer of Kafka's class."""


QUESTIONS_AT_ONCE: Final = 256
"""The number of questions in a batch; up to `BATCHES_IN_FLIGHT` batches may await answers."""

BATCHES_IN_FLIGHT: Final = 3

PIPE_BYTES: Final = 1 << 18

MEMORY: Final = "512m"
"""The heap of the JVM; the longest question is about 10 MB."""

END_TIMEOUT_S: Final = 30.0
"""The longest wait, in seconds, for the program to end after the end of its input."""

_OUTCOMES: Final = tuple(Outcome)
_SIZE: Final = struct.Struct(">i")


def question(operation: JavaProgramOperation, message: str, version: int, content: bytes) -> bytes:
    """Returns an encoded question for the Java program about one message version.

    `message` and `version` are those of the release whose jars the program uses.
    """
    name = message.encode("ascii")
    size = 4 + len(name) + len(content)
    head = struct.pack(f">iBB{len(name)}sh", size, operation, len(name), name, version)
    return head + content


def records_question(operation: JavaProgramOperation, content: bytes) -> bytes:
    """Returns an encoded question for an operation that needs no message name."""
    return struct.pack(">iB", 1 + len(content), operation) + content


class KafkaJavaProgram:
    """The Java program on the jars of one release; a context manager.

    The constructor starts the program, and raises ReferenceUnavailableError if Java, Maven or a
    compiler is missing.
    """

    def __init__(self, release: str) -> None:
        self.release = release
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        try:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=PIPE_BYTES,
            )
        except BaseException:
            self._errors.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self._output = self._process.stdout
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="questions", daemon=True)
        self._writer.start()

    def _command(self) -> list[str]:
        classes = class_path(self.release)
        program = str(java.java_home() / "bin" / "java")
        options = ["-XX:+UseSerialGC", "-XX:-UsePerfData", f"-Xmx{MEMORY}"]
        return [program, *options, "-classpath", classes, "Reference"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the program, and waits for its end."""
        if self._errors.closed:
            return
        self._outgoing.put(None)
        if self._writer_stuck():
            self._process.kill()  # its output pipe is full, and nothing reads it
        self._writer.join()
        self._output.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _writer_stuck(self) -> bool:
        self._writer.join(END_TIMEOUT_S)
        return self._writer.is_alive()

    def ask(self, questions: Iterable[bytes]) -> Generator[Answer, None, None]:
        """Yields the answer to each question, in order; reads a few hundred questions ahead.

        Raises ReferenceFailedError if the program fails; a refusal by Kafka's class is an answer.
        If the caller stops early, reads and ignores the pending answers.
        """
        source = iter(questions)
        in_flight: deque[int] = deque()
        try:
            while True:
                batch = list(islice(source, QUESTIONS_AT_ONCE))
                if batch:
                    self._outgoing.put(b"".join(batch))
                    in_flight.append(len(batch))
                elif not in_flight:
                    return
                if not batch or len(in_flight) == BATCHES_IN_FLIGHT:
                    while in_flight[0]:
                        in_flight[0] -= 1
                        yield self._answer()
                    in_flight.popleft()
        finally:
            if self._process.poll() is None:
                for _ in range(sum(in_flight)):
                    self._frame()

    def _write(self) -> None:
        """Writes the questions in a separate thread, because a write may block.

        While answers of the program are unread, the program reads no more questions.
        """
        try:
            with self._input:
                while (block := self._outgoing.get()) is not None:
                    self._input.write(block)
                    self._input.flush()
        except BrokenPipeError:
            pass  # the program ended; `_frame` detects this

    def _answer(self) -> Answer:
        status, body = self._frame()
        outcome = _OUTCOMES[status]
        if outcome is Outcome.FAILED:
            raise ReferenceFailedError(body.decode(errors="replace"))
        if outcome is Outcome.REFUSED:
            return Answer(outcome, body)
        (taken,) = _SIZE.unpack_from(body)
        return Answer(outcome, body[4:], taken)

    def _frame(self) -> tuple[int, bytes]:
        head = self._output.read(5)
        if len(head) == 5:
            size, status = struct.unpack(">iB", head)
            body = self._output.read(size - 1)
            if len(body) == size - 1:
                return status, body
        self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        raise ReferenceFailedError(f"the Java program ended early: {said or 'no output'}")
