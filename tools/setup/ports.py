"""Finds free TCP ports for a program that takes its port as an argument."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

__all__ = ["LOOPBACK", "free_ports", "ports_to_choose"]

LOOPBACK = "127.0.0.1"

#: The file in which Linux shows the range of ports that Linux assigns, for example to outgoing
#: connections.
_GIVEN_BY_LINUX: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
#: The lowest port that Linux assigns by default; other systems assign only higher ports.
_GIVEN: Final = 32_768
_LOWEST: Final = 10_000
_ATTEMPTS: Final = 100


def ports_to_choose() -> range:
    """Returns the ports that the system never assigns by itself.

    If `free_ports` chose another port, the system could assign it to another listener or connection
    before the program binds it.
    """
    given = _GIVEN
    with suppress(OSError, ValueError):
        given = int(_GIVEN_BY_LINUX.read_text(encoding="ascii").split()[0])
    return range(_LOWEST, given) if given > _LOWEST + _ATTEMPTS else range(_LOWEST, _GIVEN)


def free_ports(count: int, *, host: str = LOOPBACK, first: int = 0) -> list[int]:
    """Returns `count` different free ports; the first is `first`, unless `first` is 0.

    Raises OSError if port `first` is in use.
    """
    with ExitStack() as open_sockets:
        found = []
        for wanted in [first, *[0] * (count - 1)]:
            chooser = open_sockets.enter_context(socket.socket())
            if wanted:  # SO_REUSEADDR allows binding a port that was just released
                chooser.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                chooser.bind((host, wanted))
            else:
                _bind_any(chooser, host)
            found.append(int(chooser.getsockname()[1]))
        return found


def _bind_any(chooser: socket.socket, host: str) -> None:
    # Not a seeded generator: two processes with the same seed would choose the same ports.
    choice = random.SystemRandom().sample(ports_to_choose(), _ATTEMPTS)
    for port in choice[:-1]:
        with suppress(OSError):
            chooser.bind((host, port))
            return
    chooser.bind((host, choice[-1]))
