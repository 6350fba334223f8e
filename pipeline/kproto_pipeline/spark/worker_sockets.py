"""The connection between a worker's Python and its JVM, which need not wait before it sends.

Both ends of it write in several small pieces, by TCP with Nagle's algorithm: the second piece goes
out when the first is acknowledged, and an acknowledgement takes its time, 40 ms on Linux. That is
once for what a task is to do, and once for its rows: most of what a small micro-batch takes. Only
Spark's sockets of the Unix domain (`spark.python.unix.domain.socket.enabled`, from PySpark 4.1)
have none of it.

What is unpickled in a worker is the first of ours that runs there, before the task is read to its
end: so it is there that the connection is told.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

__all__ = ["WorkerSocketTuning", "disable_socket_delays"]

#: The open files of this process, where the system tells them there: on Linux.
_OPEN: Final = Path("/proc/self/fd")


class WorkerSocketTuning:
    """What is pickled for a worker: where it arrives, the connection to the JVM is told."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "pyspark.worker" in sys.modules:
            disable_socket_delays()


def disable_socket_delays() -> None:
    """Let the connections of this process that end on this machine neither collect nor delay.

    What was received is acknowledged now, as are the next few segments; what is written goes out at
    once, from now on. Nothing where the system tells no open files.
    """
    with suppress(OSError):
        for opened in _OPEN.iterdir():
            with suppress(OSError, ValueError):  # it was closed meanwhile
                _tell(int(opened.name))


def _tell(descriptor: int) -> None:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return
    # A descriptor of its own: closing it leaves the connection as it is.
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        if (
            connection.family in {socket.AF_INET, socket.AF_INET6}
            and connection.type == socket.SOCK_STREAM
            and ip_address(connection.getpeername()[0]).is_loopback
        ):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
