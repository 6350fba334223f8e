"""Resolves a broker's host name to IP addresses; connects to the first address that answers.

A host name may have several addresses, of IPv4 and IPv6 (KIP-302). IPv4 and IPv6 addresses are
tried alternately. The next attempt starts when the previous attempt has failed, or after
`NEXT_ADDRESS_S`: so an address that drops all packets delays the other addresses only for that
time. The module `connection` continues after the TCP handshake.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from ...clock import Clock
from ...tasks import start_task
from ...wire.errors import (
    BrokerConnectionError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
)
from ..settings import Address

__all__ = [
    "NEXT_ADDRESS_S",
    "HostAddresses",
    "SocketAddress",
    "alternate_families",
    "resolve_host",
    "wait_for_first",
]

T = TypeVar("T")

#: How long an address may take before the next one is tried concurrently, in seconds: the
#: Connection Attempt Delay that RFC 8305 recommends.
NEXT_ADDRESS_S: Final = 0.25


class SocketAddress(NamedTuple):
    """Holds an IP address of a host name: the address family, and the address to connect to."""

    family: int
    sockaddr: tuple[Any, ...]

    @property
    def ip(self) -> str:
        """The IP address as text, without the port."""
        return str(self.sockaddr[0])


def alternate_families(
    found: Sequence[SocketAddress], failed_ip: str | None = None
) -> list[SocketAddress]:
    """Returns each address once, IPv4 and IPv6 alternately, with `failed_ip` last."""
    by_family: dict[int, list[SocketAddress]] = {}
    for socket_address in dict.fromkeys(found):
        by_family.setdefault(socket_address.family, []).append(socket_address)
    most = max(map(len, by_family.values()), default=0)
    turns = [its[at] for at in range(most) for its in by_family.values() if at < len(its)]
    first = next(
        (at + 1 for at, socket_address in enumerate(turns) if socket_address.ip == failed_ip), 0
    )
    return turns[first:] + turns[:first]


async def resolve_host(address: Address) -> list[SocketAddress]:
    """Resolves a host name. Raises OSError, or ValueError if the host name is invalid."""
    # Python encodes a str by IDNA, whose tables take 0.4 MiB; no IP address needs them.
    host = address.host.encode() if address.host.isascii() else address.host
    try:  # an IP address needs no look-up in a thread
        found = socket.getaddrinfo(
            host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return [SocketAddress(int(family), tuple(sockaddr)) for family, _, _, _, sockaddr in found]


class HostAddresses:
    """The IP addresses of one host name.

    `remaining` are the addresses that are still to be tried. `failures` are the addresses that
    failed, with their errors.
    """

    def __init__(self, address: Address, remaining: Sequence[SocketAddress]) -> None:
        self.address = address
        self.remaining = list(remaining)
        self.failures: list[tuple[SocketAddress, KprotoError]] = []

    async def connect(self, clock: Clock) -> tuple[socket.socket, SocketAddress]:
        """Connects to the first of the remaining addresses that answers.

        Returns the connected socket and its address. Raises BrokerConnectionError if every address
        has failed.
        """
        if len(self.remaining) == 1:
            socket_address = self.remaining.pop()
            try:
                return await _connected(socket_address), socket_address
            except OSError as error:
                self._add_refused(socket_address, error)
                raise self.combined_error() from None
        attempts: dict[asyncio.Task[socket.socket], SocketAddress] = {}
        try:
            while True:
                if self.remaining:
                    socket_address = self.remaining.pop(0)
                    attempts[start_task(_connected(socket_address))] = socket_address
                if not attempts:
                    raise self.combined_error()
                done = await wait_for_first(
                    attempts, NEXT_ADDRESS_S if self.remaining else None, clock
                )
                for task in done:
                    socket_address = attempts.pop(task)
                    try:
                        return task.result(), socket_address
                    except OSError as error:
                        self._add_refused(socket_address, error)
        finally:
            # If the connected address does not work, these pending addresses are tried first.
            self.remaining[:0] = attempts.values()
            for task in attempts:
                task.cancel()
            for ended in await asyncio.gather(*attempts, return_exceptions=True):
                if isinstance(ended, socket.socket):
                    ended.close()

    def _add_refused(self, socket_address: SocketAddress, error: OSError) -> None:
        # The text of asyncio's error would repeat the address.
        why = os.strerror(error.errno) if error.errno else str(error)
        reason = f"cannot connect: {why}"
        self.add_failure(socket_address, BrokerConnectionError(reason, address=str(self.address)))

    def add_failure(self, socket_address: SocketAddress, error: KprotoError) -> None:
        """Adds the failure of an address."""
        self.failures.append((socket_address, error))

    def on_attempt_failed(self, socket_address: SocketAddress | None, error: KprotoError) -> None:
        """Adds the error of an attempt to connect to `socket_address`.

        `socket_address` is None if the attempt connected to no address. In this case a
        RequestTimeoutError is added for all remaining addresses, and other errors are ignored.
        """
        if socket_address is not None:
            self.add_failure(socket_address, error)
        elif isinstance(error, RequestTimeoutError):
            for silent in self.remaining:
                self.add_failure(silent, error)
            self.remaining.clear()

    @property
    def last_failed_ip(self) -> str | None:
        """The IP address that failed last; None if none has failed."""
        return self.failures[-1][0].ip if self.failures else None

    def combined_error(self) -> KprotoError:
        """Returns the error of the only failure, or one error that names each failed address."""
        errors = [error for _, error in self.failures]
        if len(errors) == 1:
            return errors[0]
        prefix = f"{self.address}: "
        each = "; ".join(
            f"{socket_address.ip}: {str(error).removeprefix(prefix)}"
            for socket_address, error in self.failures
        )
        reason = f"cannot connect: its {len(errors)} addresses failed: {each}"
        for kind in (RequestTimeoutError, ProtocolError):
            if errors and all(isinstance(error, kind) for error in errors):
                return kind(prefix + reason)
        return BrokerConnectionError(reason, address=str(self.address))


async def _connected(socket_address: SocketAddress) -> socket.socket:
    """Returns a socket that is connected to `socket_address`. Raises OSError."""
    made = socket.socket(socket_address.family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, socket_address.sockaddr)
    except BaseException:
        made.close()
        raise
    return made


async def wait_for_first(
    attempts: Collection[asyncio.Task[T]], seconds: float | None, clock: Clock
) -> list[asyncio.Task[T]]:
    """Waits until an attempt ends, for up to `seconds` (None: no limit); returns ended attempts."""
    if seconds is None:
        done, _ = await asyncio.wait(attempts, return_when=asyncio.FIRST_COMPLETED)
        return [task for task in attempts if task in done]
    pause = start_task(clock.sleep(seconds))
    try:
        ended, _ = await asyncio.wait({pause, *attempts}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        pause.cancel()
        await asyncio.gather(pause, return_exceptions=True)
    return [task for task in attempts if task in ended]
