"""Runs a broker of an old release together with its ZooKeeper.

`python with_zookeeper.py HOST PORT WAIT_SECONDS ZOOKEEPER_COMMAND... -- BROKER_COMMAND...` starts
ZooKeeper, waits until ZooKeeper accepts connections at the address, waits WAIT_SECONDS for the
session of an earlier broker to end, and then runs the broker. ZooKeeper stops after the broker,
because a broker that stops cleanly needs it. The script imports only the standard library, because
it runs by its path.
"""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

SUPERVISOR = Path(__file__).parents[1] / "setup" / "supervisor.py"

GRACE_S = 5.0
POLL_S = 0.05

PR_SET_PDEATHSIG = 1


def _die_with_this_process() -> None:
    """Makes Linux kill the broker if this process is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(host: str, port: int, wait_s: float, zookeeper: Sequence[str], broker: list[str]) -> int:
    """Runs both commands; returns the exit code of the broker, or 1 if ZooKeeper ends first."""
    stopping = threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def stop(_number: int, _frame: object) -> None:
        stopping.set()
        for process in running:
            process.terminate()

    signal.signal(signal.SIGTERM, stop)
    # In a session of its own: the signal to the group of this process must reach the broker first.
    # The pipe ends ZooKeeper when this process ends, even if it is killed.
    supervisor = subprocess.Popen(
        [sys.executable, str(SUPERVISOR), str(GRACE_S), *zookeeper],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        while not accepts(host, port):
            if supervisor.poll() is not None or stopping.is_set():
                return 1
            time.sleep(POLL_S)
        if stopping.wait(wait_s):
            return 1
        started = subprocess.Popen(
            broker,
            stdin=subprocess.DEVNULL,
            close_fds=False,  # the broker inherits the lock of the node's folder
            preexec_fn=_die_with_this_process if sys.platform == "linux" else None,
        )
        running.append(started)
        if stopping.is_set():
            started.terminate()
        return started.wait()
    finally:
        assert supervisor.stdin is not None
        supervisor.stdin.close()
        supervisor.wait()


def accepts(host: str, port: int) -> bool:
    """Returns True if a server accepts a connection at this address."""
    try:
        socket.create_connection((host, port), 1.0).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    address, commands = sys.argv[1:4], sys.argv[4:]
    at = commands.index("--")
    sys.exit(
        main(address[0], int(address[1]), float(address[2]), commands[:at], commands[at + 1 :])
    )
