"""Keeps a broker's JVM from outliving the process that started it.

`python supervisor.py GRACE_SECONDS COMMAND...` runs the command and watches its own standard input,
a pipe whose other end the starting process holds. However that process ends, even killed, the pipe
closes and the command is stopped: asked first, killed if it does not respond. Works for any
starting thread, unlike the kernel's own parent-death signal. Standard library only, and nothing of
this project: it runs as a script.
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
    """Makes Linux kill the command if this process is killed itself."""
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
    """Runs `command` to its end and returns its exit code."""
    # The whole process group gets the signal to stop; this process then ends after the command, so
    # that a process that waits for it knows that the command has ended. A handler, unlike SIG_IGN,
    # is not inherited by the command.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        close_fds=False,  # the lock on the node's folder is passed on
        preexec_fn=_die_with_supervisor if sys.platform == "linux" else None,
    )
    watch = threading.Thread(target=_stop_at_end_of_input, args=(process, grace_s), daemon=True)
    watch.start()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
