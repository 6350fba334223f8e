"""Authenticates a connection by SASL, and again before its session ends (KIP-368).

`kproto.security.authentication` creates the requests, the connection sends them. A thread derives
SCRAM keys, because the derivation takes milliseconds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from ...clock import Clock, Timer
from ...protocol.negotiation import ApiRange
from ...protocol.sasl import ClientExchange
from ...security.authentication import Answer, Authentication, Step, reauthenticate_after_ms
from ...security.sasl import Sasl
from ...tasks import start_task
from ...wire.errors import AuthenticationError, KprotoError, RequestTimeoutError
from ..settings import Address, ClientSettings

__all__ = ["Authenticator", "SaslTransport"]

#: If a token request fails less than this many seconds before the end of the session, the token
#: request is not retried.
_MIN_REMAINING_S: Final = 1.0

_NEVER: Final = float("inf")


class SaslTransport(Protocol):
    """The connection that an authentication uses."""

    ranges: Mapping[int, ApiRange]

    def send_step(self, step: Step, ends_at: float) -> Awaitable[Answer]:
        """Sends a step of the authentication; returns the response, which is due by `ends_at`.

        Raises the error of a lost connection.
        """
        ...

    def exclusive(self) -> AbstractAsyncContextManager[float]:
        """Delays all other requests of the connection, for the block of a `with` statement.

        Yields the time by which responses are due, in seconds of the clock.
        """
        ...

    def fail(self, error: KprotoError) -> None:
        """Fails the connection with `error`."""
        ...


class Authenticator:
    """Authenticates one connection to `address`, and again before each SASL session ends."""

    def __init__(
        self,
        connection: SaslTransport,
        sasl: Sasl,
        address: Address,
        settings: ClientSettings,
        clock: Clock,
    ) -> None:
        self._connection = connection
        self._sasl = sasl
        self._address = address
        self._limit_ms = settings.connect_timeout_ms
        self._clock = clock
        self._session_ends_at = _NEVER
        self._current: Authentication | None = None
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._loop = asyncio.get_running_loop()

    async def exchange(self) -> ClientExchange:
        """Creates a SASL exchange; the mechanism may fetch a token for it.

        Raises AuthenticationError, and RequestTimeoutError after `connect_timeout_ms`.
        """
        try:
            async with self._clock.timeout(self._limit_ms / 1000):
                return await self._sasl.exchange(self._address.host)
        except KprotoError:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # A CancelledError of the token provider would end the caller's task silently.
            raise AuthenticationError(
                f"{self._address}: getting a token for {self._sasl.mechanism} was cancelled from"
                " within: by the token function, or by a future that it awaits"
            ) from None
        except TimeoutError:
            raise RequestTimeoutError(
                f"{self._address}: {self._sasl.mechanism} had no token within {self._limit_ms} ms"
                " (connect_timeout_ms)"
            ) from None
        except Exception as error:  # noqa: BLE001 - a mechanism of the user's may raise anything
            raise AuthenticationError(
                f"{self._address}: the mechanism {self._sasl.mechanism} raised"
                f" {type(error).__name__}"
            ) from None

    async def authenticate(self, exchange: ClientExchange, ends_at: float = _NEVER) -> None:
        """Authenticates; the broker must answer each request by `ends_at`, in seconds of the clock.

        Raises AuthenticationError, and the error of a lost connection.
        """
        again = self._session_ends_at != _NEVER
        current = Authentication(
            exchange, self._connection.ranges, str(self._address), reauthenticating=again
        )
        self._current = current
        try:
            step: Step | None = current.begin()
            while step is not None:
                answer = await self._connection.send_step(step, ends_at)
                if current.derives_keys(answer):
                    step = await asyncio.to_thread(current.next, answer)
                else:
                    step = current.next(answer)
        finally:
            self._current = None
        lifetime_ms = current.session_lifetime_ms
        # The connection may be lost while the last answer is checked.
        if lifetime_ms and not self._is_stopped:
            self._session_ends_at = self._clock.monotonic() + lifetime_ms / 1000
            chance = random.random()  # noqa: S311 - jitter, no secret
            after_s = reauthenticate_after_ms(lifetime_ms, chance) / 1000
            self._timer = self._clock.call_later(after_s, self._start_reauthentication)

    def cut_off_error(self) -> AuthenticationError | None:
        """Returns the error for a connection that the broker closes during authentication.

        Returns None if no authentication is in progress.
        """
        return None if self._current is None else self._current.disconnect_error()

    def _start_reauthentication(self) -> None:
        self._timer = None
        self._task = start_task(self._reauthenticate())

    async def _reauthenticate(self) -> None:
        """Starts a new session; fails the connection if the broker or the mechanism refuses it.

        Other requests wait while the broker authenticates, but not while a token is fetched.
        """
        try:
            exchange = await self._exchange_with_retries()
            async with self._connection.exclusive() as ends_at:
                await self.authenticate(exchange, ends_at)
        except KprotoError as error:
            self._connection.fail(error)

    async def _exchange_with_retries(self) -> ClientExchange:
        """Retries `exchange` until the session is about to end: the token issuer may be down.

        Raises the error of the last attempt.
        """
        while True:
            try:
                return await self.exchange()
            except KprotoError:
                left = self._session_ends_at - self._clock.monotonic()
                if left < _MIN_REMAINING_S:
                    raise
            await self._clock.sleep(left / 2)

    def stop(self) -> None:
        """Stops authentication, because the connection is lost."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None and self._task is not asyncio.current_task(self._loop):
            self._task.cancel()

    async def stopped(self) -> None:
        """Waits until no authentication runs."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
