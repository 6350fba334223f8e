"""TCP ports that are free, for a program that must be told which to listen on."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

__all__ = ["LOOPBACK", "free_ports", "ports_to_choose"]

LOOPBACK = "127.0.0.1"

#: Where Linux says which ports it gives to whoever asks for any, and to each connection.
_GIVEN_BY_LINUX: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
#: What it gives unless it is told otherwise; other systems give from higher ones on.
_GIVEN: Final = 32_768
_LOWEST: Final = 10_000
_ATTEMPTS: Final = 100


def ports_to_choose() -> range:
    """Ports that the system gives to nobody.

    One of those might be somebody else's, a listener's or a connection's, before the program that
    is told to listen there has begun.
    """
    given = _GIVEN
    with suppress(OSError, ValueError):
        given = int(_GIVEN_BY_LINUX.read_text(encoding="ascii").split()[0])
    return range(_LOWEST, given) if given > _LOWEST + _ATTEMPTS else range(_LOWEST, _GIVEN)


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
            else:
                _bind_any(chooser, host)
            found.append(int(chooser.getsockname()[1]))
        return found


def _bind_any(chooser: socket.socket, host: str) -> None:
    # Not by a seed that somebody has set: two processes would choose the same.
    choice = random.SystemRandom().sample(ports_to_choose(), _ATTEMPTS)
    for port in choice[:-1]:
        with suppress(OSError):
            chooser.bind((host, port))
            return
    chooser.bind((host, choice[-1]))
