"""Ends a broker's JVM when the process that started it ends.

`python supervisor.py GRACE_SECONDS COMMAND...` runs the command. Its standard input is a pipe from
the starting process. When that process ends, even if it is killed, the pipe closes, and the command
is stopped with SIGTERM, then SIGKILL. Unlike the kernel's parent-death signal, this works even if
the starting thread ends. The script imports only the standard library, because it runs by its path.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1


def _die_with_supervisor() -> None:
    """Makes Linux kill the command if this process is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _stop_at_end_of_input(process: subprocess.Popen[bytes], grace_s: float) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    process.terminate()
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()


def main(grace_s: float, command: list[str]) -> int:
    """Runs `command` to its end, and returns its exit code."""
    # SIGTERM reaches the whole process group. This process ignores the signal and ends after the
    # command, so that a process which waits for this one knows that the command has ended. The
    # handler is a function, because the command would inherit SIG_IGN.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        close_fds=False,  # the command inherits the lock of the node's folder
        preexec_fn=_die_with_supervisor if sys.platform == "linux" else None,
    )
    watch = threading.Thread(target=_stop_at_end_of_input, args=(process, grace_s), daemon=True)
    watch.start()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
