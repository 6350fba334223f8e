"""Disables delays on the TCP connection between a worker's Python and its JVM.

Both ends write several small segments. With Nagle's algorithm, the second segment waits for the
acknowledgement of the first, which Linux delays by 40 ms. This delay occurs once for the task and
once for its rows, and takes most of the time of a small micro-batch. Spark's Unix domain sockets
(`spark.python.unix.domain.socket.enabled`, from PySpark 4.1) have no such delay.

`__setstate__` sets the socket options: unpickling a reader or writer is the first code of kproto
that runs in a worker, before the worker has read the whole task.
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

#: The open file descriptors of this process, on Linux.
_OPEN_FILES: Final = Path("/proc/self/fd")


class WorkerSocketTuning:
    """A base class of objects that are pickled for a worker.

    When the worker unpickles such an object, `__setstate__` sets the worker's socket options.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "pyspark.worker" in sys.modules:
            disable_socket_delays()


def disable_socket_delays() -> None:
    """Sets TCP_NODELAY and TCP_QUICKACK on this process's loopback connections.

    Later writes are sent at once; the next received segments are acknowledged at once. Does nothing
    on systems without `/proc/self/fd`.
    """
    with suppress(OSError):
        for file in _OPEN_FILES.iterdir():
            with suppress(OSError, ValueError):  # the descriptor may be closed by now
                _set_options(int(file.name))


def _set_options(descriptor: int) -> None:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return
    # Duplicates the descriptor, so that closing the socket does not close the connection.
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        if (
            connection.family in {socket.AF_INET, socket.AF_INET6}
            and connection.type == socket.SOCK_STREAM
            and ip_address(connection.getpeername()[0]).is_loopback
        ):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
