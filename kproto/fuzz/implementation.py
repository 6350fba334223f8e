"""Runs a command that answers cases, and detects a crash, a hang, and lines that are no answers.

`Implementation` writes cases to the command's process, reads answers from it with a time limit, and
restarts the process after a failure. A missing answer becomes an `Outcome`. `judging` decides
whether answers are right.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final, Self

from ..wire.errors import ConfigurationError, KprotoError
from .case import SHOWN, Answer, Case, InvalidAnswerError, Outcome, parse_answer, printable
from .settings import FuzzSettings

__all__ = ["Implementation", "ImplementationError", "TooManyRestartsError"]


class ImplementationError(KprotoError):
    """The command cannot be started, never answers, or answers with ids of a wrong type."""


class TooManyRestartsError(ImplementationError):
    """The command was restarted more than `max_restarts` times.

    `answers` has the answers before the error, by the index of the case.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.answers: dict[int, Answer] = {}


#: How many bytes are kept from the start of the command's error output, and from its end.
_ERROR_BYTES: Final = 4096

#: Maximum number of output lines that are queued. When the queue is full, the command must wait
#: before it can write more.
_WAITING_LINES: Final = 1024

_END: Final = b""


class _RunningCommand:
    """A process of the command, with threads that write its input and read its output.

    `lines` queues the lines of its output, and b"" at the end of the output. The first and last
    bytes of its error output are kept.
    """

    def __init__(self, command: Sequence[str], folder: Path | None, max_line_bytes: int) -> None:
        try:
            self.process = subprocess.Popen(  # noqa: S603 - the command that the user named
                command,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ImplementationError(f"cannot run {shlex.join(command)}: {error}") from error
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.lines: queue.Queue[bytes] = queue.Queue(_WAITING_LINES)
        self.outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.stderr_head: list[bytes] = []
        self.stderr_tail: deque[bytes] = deque(maxlen=_ERROR_BYTES // 256)
        self.answered = 0
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(target=work, args=arguments, daemon=True)
            for work, arguments in (
                (self._write, (self.process.stdin,)),
                (self._read, (self.process.stdout, max_line_bytes)),
                (self._read_stderr, (self.process.stderr,)),
            )
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, target: IO[bytes]) -> None:
        try:
            with target:
                while (block := self.outgoing.get()) is not None:
                    target.write(block)
                    target.flush()
        except OSError:
            pass  # the command ended or closed its input, so answers will be missing

    def _read(self, source: IO[bytes], max_line_bytes: int) -> None:
        with source:
            while line := source.readline(max_line_bytes):
                if not self._enqueue(line):
                    return
        self._enqueue(_END)

    def _enqueue(self, line: bytes) -> bool:
        while not self._ending.is_set():
            try:
                self.lines.put(line, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def _read_stderr(self, source: IO[bytes]) -> None:
        with source:
            while piece := source.read1(256):  # type: ignore[attr-defined]  # a BufferedReader
                if len(self.stderr_head) < _ERROR_BYTES // 256:
                    self.stderr_head.append(piece)
                self.stderr_tail.append(piece)

    def error_line(self) -> str:
        """Returns the first line of the error output, or the last line of a Python traceback."""
        lines = b"".join(self.stderr_head).decode(errors="replace").strip().splitlines()
        if lines and lines[0].startswith("Traceback"):
            lines = b"".join(self.stderr_tail).decode(errors="replace").strip().splitlines()[-1:]
        return lines[0][:SHOWN] if lines else ""

    def end(self) -> int | None:
        """Ends the process and its process group.

        Returns the exit code if the process ended by itself within 0.2 s, else None.
        """
        self._ending.set()
        self.outgoing.put(None)
        try:
            code: int | None = self.process.wait(0.2)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for thread in self._threads:
            thread.join(2.0)
        return code


class Implementation:
    """Runs the command under test or the command of a judge; starts it at the first `respond`.

    As a context manager, ends the process on exit. Raises ConfigurationError for a command that is
    empty or has an open quotation mark.
    """

    def __init__(
        self,
        command: str,
        settings: FuzzSettings | None = None,
        *,
        name: str = "",
        folder: Path | None = None,
    ) -> None:
        try:
            self.command = shlex.split(command)
        except ValueError as error:
            raise ConfigurationError(f"command {command!r}: {error}") from None
        if not self.command:
            raise ConfigurationError("command is empty: name the program under test, as one text")
        self.settings = settings or FuzzSettings()
        self.name = name or command
        self.folder = folder
        self.restarts = 0
        self._silent_starts = 0
        self._running: _RunningCommand | None = None
        self._next = 0
        self._start_s: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process, if it is running."""
        if self._running is not None:
            self._running.end()
            self._running = None

    def respond(self, cases: Sequence[Case]) -> list[Answer]:
        """Returns the answer to each case, in the order of `cases`.

        If the command ends or hangs, it is restarted, and gets the unanswered cases again, one at a
        time. Raises ImplementationError if the command cannot be started or never answers, and
        TooManyRestartsError after too many restarts.
        """
        found: dict[int, Answer] = {}
        try:
            self._respond_all(cases, found)
        except TooManyRestartsError as error:
            error.answers = found
            raise
        return [found[index] for index in range(len(cases))]

    def _respond_all(self, cases: Sequence[Case], found: dict[int, Answer]) -> None:
        for first in range(0, len(cases), self.settings.at_once):
            in_flight = list(range(first, min(first + self.settings.at_once, len(cases))))
            failure = self._send_cases(cases, in_flight, found)
            if failure is None:
                continue
            unanswered = [index for index in in_flight if index not in found]
            for index in unanswered if len(in_flight) > 1 else ():
                alone = self._send_cases(cases, [index], found)
                if alone is not None:
                    found[index] = alone
                    failure = None
            if failure is not None:  # no case alone caused the failure
                first_open = unanswered[0]
                reason = failure.reason
                if len(in_flight) > 1:
                    reason = f"{reason} (only after the cases before it)"
                faults = (*found.get(first_open, failure).faults, *failure.faults)
                found[first_open] = failure._replace(reason=reason, faults=faults)

    def _send_cases(
        self, cases: Sequence[Case], in_flight: list[int], found: dict[int, Answer]
    ) -> Answer | None:
        """Sends the cases with the indexes `in_flight` together, and adds the answers to `found`.

        If the command fails, restarts it and returns the failure; else returns None.
        """
        running = self._ensure_running()
        numbers = {self._next + offset: index for offset, index in enumerate(in_flight)}
        self._next += len(in_flight)
        lines = [f"{cases[index].question(number)}\n" for number, index in numbers.items()]
        running.outgoing.put("".join(lines).encode())
        batch = _InFlightCases(cases, numbers, found)
        while batch.open:
            failure = self._receive_line(running, batch)
            if failure is not None:
                try:
                    self._restart(failure)
                except TooManyRestartsError:
                    found[next(iter(batch.open.values()))] = failure
                    raise
                return failure
        return None

    def _receive_line(self, running: _RunningCommand, in_flight: _InFlightCases) -> Answer | None:
        """Reads a line and handles it as an answer; returns a failure of the command or None."""
        settings = self.settings
        allowed = settings.answer_timeout_s
        if not running.answered:
            # A restart may take three times as long as the first start, in addition to the time
            # that the answer may take.
            slowest = settings.start_timeout_s
            known = self._start_s
            allowed = slowest if known is None else min(slowest, allowed + 3 * known)
        started = time.monotonic()
        try:
            line = running.lines.get(timeout=max(0.0, allowed))
        except queue.Empty:
            try:
                line = running.lines.get(timeout=settings.late_s)
            except queue.Empty:
                if in_flight.garbage:
                    return Answer(Outcome.GARBAGE, reason=in_flight.garbage)
                waited = time.monotonic() - started
                return Answer(Outcome.HUNG, reason=f"no answer within {waited:.0f} s")
            if line != _END:
                in_flight.late = f"an answer after more than {allowed:g} s"
        if line == _END:
            return self._ended(running, in_flight)
        if len(line) >= settings.max_line_bytes:
            return Answer(Outcome.GARBAGE, reason=f"a line of {len(line)} bytes or more")
        in_flight.add_line(line)
        if in_flight.answered and not running.answered and self._start_s is None:
            self._start_s = time.monotonic() - started
        running.answered += in_flight.answered
        self._silent_starts = 0 if in_flight.answered else self._silent_starts
        in_flight.answered = 0
        if in_flight.garbage_lines > settings.max_garbage:
            return Answer(
                Outcome.GARBAGE,
                reason=f"{in_flight.garbage_lines} lines such as {in_flight.garbage}",
            )
        return None

    def _ended(self, running: _RunningCommand, in_flight: _InFlightCases) -> Answer:
        code = running.end()
        how = "closed its output" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was ended by signal {signal.Signals(-code).name}"
        error_line = running.error_line()
        reason = f"{how}: {error_line}" if error_line else how
        if in_flight.garbage:
            reason = f"{reason}; before that it printed {in_flight.garbage}"
        return Answer(Outcome.CRASHED, reason=reason)

    def _ensure_running(self) -> _RunningCommand:
        if self._running is None:
            self._running = _RunningCommand(self.command, self.folder, self.settings.max_line_bytes)
        return self._running

    def _restart(self, failure: Answer) -> None:
        running = self._running
        assert running is not None
        self._silent_starts += not running.answered
        running.end()
        self._running = None
        if self._silent_starts >= self.settings.max_silent_starts and self._never_answered():
            error_line = running.error_line()
            wrote = failure.reason if failure.outcome is Outcome.GARBAGE else ""
            words = (f"; it wrote {wrote}" if wrote else "") + (
                f"; it said: {error_line}" if error_line else ""
            )
            raise ImplementationError(
                f"{self.name} was started {self._silent_starts} times and never answered"
                + printable(words)
                + ". Does it read lines and flush each answer?"
            )
        self.restarts += 1
        if self.restarts > self.settings.max_restarts:
            raise TooManyRestartsError(
                f"{self.name} was restarted {self.settings.max_restarts} times (max_restarts)"
            )

    def _never_answered(self) -> bool:
        return self.restarts + 1 == self._silent_starts


def _as_id(number: str | float) -> int:
    """Returns the id that an adapter may have meant by text or by a float; -1 if there is none."""
    try:
        return int(number)
    except (ValueError, OverflowError):
        return -1


class _InFlightCases:
    """Tracks cases that are sent before any of their answers is read.

    `numbers` maps the id of a line to the index of its case. `open` has the entries of `numbers`
    that lack an answer. `found` collects the answers, by the index of the case.
    """

    def __init__(
        self, cases: Sequence[Case], numbers: dict[int, int], found: dict[int, Answer]
    ) -> None:
        self.cases = cases
        self.numbers = numbers
        self.found = found
        self.open = dict(numbers)
        self.faults: dict[int, list[tuple[str, str]]] = {}
        self.garbage = ""
        self.garbage_lines = 0
        self.late = ""
        self.answered = 0

    def add_line(self, line: bytes) -> None:
        """Handles a line: an answer to an open case, or a line that is not an answer (garbage)."""
        try:
            number, node = self._parsed(line)
        except InvalidAnswerError as error:
            self._fault("garbage", str(error))
            self.garbage = str(error)
            self.garbage_lines += 1
            return
        first = next(iter(self.open))
        index = self.open[number]
        if number != first:
            self._fault("order", "the answer to a later question comes first")
        try:
            answer = parse_answer(node, self.cases[index].operation)
        except InvalidAnswerError as error:
            answer = Answer(Outcome.GARBAGE, reason=str(error))
        if self.late:
            answer, self.late = Answer(Outcome.LATE, reason=self.late), ""
        del self.open[number]
        self.answered += 1
        faults = tuple(self.faults.pop(number, ()))
        self.garbage = "" if number == first else self.garbage
        self.found[index] = answer._replace(faults=faults)

    def _parsed(self, line: bytes) -> tuple[int, dict[str, Any]]:
        shown = line[:SHOWN].decode(errors="replace").rstrip("\n")
        try:
            node = json.loads(line)
        except (ValueError, RecursionError):
            raise InvalidAnswerError(f"a line that is no JSON: {shown}") from None
        if not isinstance(node, dict):
            raise InvalidAnswerError(f"a line that is no JSON object: {shown}")
        number = node.get("id")
        if isinstance(number, str | float) and _as_id(number) in self.open:
            raise ImplementationError(
                f"an answer has the id {json.dumps(number)}: it must be the number of the "
                f"question, {_as_id(number)}, as a whole number of JSON"
            )
        if type(number) is not int or number not in self.open:
            known = type(number) is int and 0 <= number <= max(self.numbers)
            what = "a second answer to one question" if known else "an id that was not asked"
            raise InvalidAnswerError(f"{what}: {shown}")
        return number, node

    def _fault(self, kind: str, reason: str) -> None:
        faults = self.faults.setdefault(next(iter(self.open)), [])
        if (kind, reason) not in faults:
            faults.append((kind, reason))
