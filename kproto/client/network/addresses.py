"""Resolves the addresses of a broker's host name, and connects to the first that answers.

A name may have several addresses, of IPv4 and IPv6 (KIP-302). They are tried with alternating
families. The next attempt starts when one has failed, or after `NEXT_ADDRESS_S`: so an address that
drops all packets delays the others only for that time. `connection` continues after the TCP
handshake.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ...clock import Clock
from ...wire.errors import (
    BrokerConnectionError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
)
from ..settings import Address

__all__ = ["NEXT_ADDRESS_S", "Target", "Targets", "alternate_families", "resolve_host"]

#: How long an address may take before the next one is tried concurrently, in seconds: the
#: Connection Attempt Delay that RFC 8305 recommends.
NEXT_ADDRESS_S: Final = 0.25


class Target(NamedTuple):
    """One address of a name: its family, and the argument of `socket.connect`."""

    family: int
    sockaddr: tuple[Any, ...]

    @property
    def ip(self) -> str:
        """The address as text, without the port."""
        return str(self.sockaddr[0])


def alternate_families(found: Sequence[Target], failed_ip: str | None = None) -> list[Target]:
    """Returns each address once, with alternating families, starting after `failed_ip`."""
    by_family: dict[int, list[Target]] = {}
    for target in dict.fromkeys(found):
        by_family.setdefault(target.family, []).append(target)
    most = max(map(len, by_family.values()), default=0)
    turns = [its[at] for at in range(most) for its in by_family.values() if at < len(its)]
    first = next((at + 1 for at, target in enumerate(turns) if target.ip == failed_ip), 0)
    return turns[first:] + turns[:first]


async def resolve_host(address: Address) -> list[Target]:
    """Resolves a host name. Raises OSError, and ValueError if it is no valid host name."""
    try:  # an address needs no thread
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return [Target(int(family), tuple(sockaddr)) for family, _, _, _, sockaddr in found]


class Targets:
    """The addresses of one name that are `remaining` to try, and the failures of the others."""

    def __init__(self, address: Address, remaining: Sequence[Target]) -> None:
        self.address = address
        self.remaining = list(remaining)
        self.failures: list[tuple[Target, KprotoError]] = []

    async def connect(self, clock: Clock) -> tuple[socket.socket, Target]:
        """Returns a connected socket and its address. Raises BrokerConnectionError."""
        if len(self.remaining) == 1:
            target = self.remaining.pop()
            try:
                return await _connected(target), target
            except OSError as error:
                self._add_refused(target, error)
                raise self.combined_error() from None
        attempts: dict[asyncio.Task[socket.socket], Target] = {}
        try:
            while True:
                if self.remaining:
                    target = self.remaining.pop(0)
                    attempts[asyncio.create_task(_connected(target))] = target
                if not attempts:
                    raise self.combined_error()
                done = await _wait_for_first(
                    attempts, NEXT_ADDRESS_S if self.remaining else None, clock
                )
                for task in done:
                    target = attempts.pop(task)
                    try:
                        return task.result(), target
                    except OSError as error:
                        self._add_refused(target, error)
        finally:
            # If the connected address does not work, the pending ones are tried again first.
            self.remaining[:0] = attempts.values()
            for task in attempts:
                task.cancel()
            for ended in await asyncio.gather(*attempts, return_exceptions=True):
                if isinstance(ended, socket.socket):
                    ended.close()

    def _add_refused(self, target: Target, error: OSError) -> None:
        # The text of asyncio's error would repeat the address.
        why = os.strerror(error.errno) if error.errno else str(error)
        reason = f"cannot connect: {why}"
        self.add_failure(target, BrokerConnectionError(reason, address=str(self.address)))

    def add_failure(self, target: Target, error: KprotoError) -> None:
        """Adds the failure of an address."""
        self.failures.append((target, error))

    def on_attempt_failed(self, target: Target | None, error: KprotoError) -> None:
        """Adds the error of an attempt at `target`.

        Without `target` a timeout is added for all remaining addresses; other errors are ignored.
        """
        if target is not None:
            self.add_failure(target, error)
        elif isinstance(error, RequestTimeoutError):
            for silent in self.remaining:
                self.add_failure(silent, error)
            self.remaining.clear()

    @property
    def last_failed_ip(self) -> str | None:
        """The address that failed last; None without a failure."""
        return self.failures[-1][0].ip if self.failures else None

    def combined_error(self) -> KprotoError:
        """Returns the error after the last address; it names each address with its failure."""
        errors = [error for _, error in self.failures]
        if len(errors) == 1:
            return errors[0]
        prefix = f"{self.address}: "
        each = "; ".join(
            f"{target.ip}: {str(error).removeprefix(prefix)}" for target, error in self.failures
        )
        reason = f"cannot connect: its {len(errors)} addresses failed: {each}"
        for kind in (RequestTimeoutError, ProtocolError):
            if errors and all(isinstance(error, kind) for error in errors):
                return kind(prefix + reason)
        return BrokerConnectionError(reason, address=str(self.address))


async def _connected(target: Target) -> socket.socket:
    """Returns a connected socket. Raises OSError."""
    made = socket.socket(target.family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, target.sockaddr)
    except BaseException:
        made.close()
        raise
    return made


async def _wait_for_first(
    attempts: dict[asyncio.Task[socket.socket], Target], seconds: float | None, clock: Clock
) -> set[asyncio.Task[socket.socket]]:
    """Waits for an attempt to end, up to `seconds`; returns the attempts that have ended."""
    if seconds is None:
        done, _ = await asyncio.wait(attempts, return_when=asyncio.FIRST_COMPLETED)
        return done
    pause = asyncio.create_task(clock.sleep(seconds))
    try:
        ended, _ = await asyncio.wait({pause, *attempts}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        pause.cancel()
        await asyncio.gather(pause, return_exceptions=True)
    return {task for task in attempts if task in ended}
