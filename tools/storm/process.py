"""The process of a member of a storm: waits for its end, and kills, stalls or wakes it."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

__all__ = ["StormProcess"]


class StormProcess:
    """The process of one member, from its start to its end.

    `output` is the file with the output of the process. `harmed` gets the times of kills, stalls
    and wakes, in seconds since 1970.
    """

    def __init__(
        self, name: str, process: subprocess.Popen[bytes], output: Path, harmed: list[float]
    ) -> None:
        self.name = name
        self.is_stalled = False
        self._process = process
        self._output = output
        self._harmed = harmed

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while the process runs."""
        return self._process.poll()

    @property
    def is_there(self) -> bool:
        """True while the process runs."""
        return self.exit_code is None

    def ask_to_leave(self) -> None:
        """Sends SIGTERM: the member leaves the group and ends."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the process, and waits for its end."""
        self._harmed.append(time.time())
        self._process.kill()
        self._process.wait()

    def stall(self) -> None:
        """Suspends the process with SIGSTOP."""
        self._harmed.append(time.time())
        self._process.send_signal(signal.SIGSTOP)
        self.is_stalled = True

    def wake(self) -> None:
        """Resumes the process with SIGCONT, if it is suspended."""
        if self.is_stalled and self.is_there:
            self._harmed.append(time.time())
            self._process.send_signal(signal.SIGCONT)
        self.is_stalled = False

    def ended_by(self, deadline: float) -> bool:
        """Returns True when the process ends, or False at the time `deadline` (monotonic clock)."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def last_words(self) -> str:
        """Returns the last 1,500 characters of the output."""
        return self._output.read_text(errors="replace")[-1500:]
