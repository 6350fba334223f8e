"""TCP ports that are free, for a program that must be told which to listen on."""

from __future__ import annotations

import socket
from contextlib import ExitStack

__all__ = ["LOOPBACK", "free_ports"]

LOOPBACK = "127.0.0.1"


def free_ports(count: int, *, host: str = LOOPBACK, first: int = 0) -> list[int]:
    """Ports that were free a moment ago, all different; `first` may be a named one.

    Raises OSError if that one is taken.
    """
    with ExitStack() as open_sockets:
        found = []
        for wanted in [first, *[0] * (count - 1)]:
            chooser = open_sockets.enter_context(socket.socket())
            if wanted:  # one that was just let go of is free
                chooser.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            chooser.bind((host, wanted))
            found.append(int(chooser.getsockname()[1]))
        return found
