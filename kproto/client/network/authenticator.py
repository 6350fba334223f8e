"""Authenticates a connection by SASL, and again before its session ends (KIP-368).

`kproto.security.authentication` creates the requests, the connection sends them. Keys are derived
in a thread.
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
from ...security.mechanisms import Sasl
from ...wire.errors import AuthenticationError, KprotoError, RequestTimeoutError
from ..settings import Address, ClientSettings

__all__ = ["Authenticator", "SaslTransport"]

#: No token is requested if less than this time is left of the session, in seconds.
_MIN_REMAINING_S: Final = 1.0

_NEVER: Final = float("inf")


class SaslTransport(Protocol):
    """The connection that an authentication uses."""

    ranges: Mapping[int, ApiRange]

    def send_step(self, step: Step, ends_at: float) -> Awaitable[Answer]:
        """Sends a step, and returns the response. Raises the error of a lost connection."""
        ...

    def exclusive(self) -> AbstractAsyncContextManager[float]:
        """Delays all other requests; yields the deadline of the responses, in seconds."""
        ...

    def fail(self, error: KprotoError) -> None:
        """Fails the connection with `error`."""
        ...


class Authenticator:
    """Authenticates one connection to `address`, session after session."""

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
        """Returns a new exchange; to create it may fetch a token.

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
        """Authenticates; each request must be answered by `ends_at`, in seconds of the clock.

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

    def cut_off(self) -> AuthenticationError | None:
        """Returns the error if the broker closes the connection during authentication.

        None if no authentication is in progress.
        """
        return None if self._current is None else self._current.disconnect_error()

    def _start_reauthentication(self) -> None:
        self._timer = None
        self._task = asyncio.create_task(self._reauthenticate())

    async def _reauthenticate(self) -> None:
        """Starts a new session; requests wait while it authenticates, but not for a token."""
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
