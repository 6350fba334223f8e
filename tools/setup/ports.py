"""TCP ports that are free, for a program that must be told which to listen on."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack, suppress
from typing import Final

__all__ = ["LOOPBACK", "NAMED_ALONE", "free_ports"]

LOOPBACK = "127.0.0.1"

#: Ports that systems give to nobody who does not name them: Linux gives those from 32768 on, others
#: from 49152 on. What is chosen here stays free until a program is up that listens there, and while
#: it is down and comes back, whatever else asks for any port meanwhile.
NAMED_ALONE: Final = range(20_000, 32_768)

_TRIES: Final = 100
#: Not that of a run with a seed: another process would draw the same ports.
_CHANCE: Final = random.SystemRandom()


def free_ports(count: int, *, host: str = LOOPBACK, first: int = 0) -> list[int]:
    """Ports that were free a moment ago, all different; `first` may be a named one.

    Raises OSError if that one is taken.
    """
    with ExitStack() as open_sockets:

        def bound(port: int) -> int:
            chooser = open_sockets.enter_context(socket.socket())
            if port == first != 0:  # one that was just let go of is free
                chooser.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            chooser.bind((host, port))
            return int(chooser.getsockname()[1])

        def chosen() -> int:
            for port in _CHANCE.sample(NAMED_ALONE, _TRIES):
                with suppress(OSError):
                    return bound(port)
            return bound(0)

        return [bound(first) if first else chosen(), *(chosen() for _ in range(count - 1))]
