"""`RetryingCalls`: runs the calls of a client until a deadline, and retries them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias, TypeVar

from ...clock import Clock
from ...wire.errors import BrokerResponseError, KprotoError, RequestTimeoutError
from ..observing.observer import Observer
from ..settings import ClientSettings
from .retry import TIMER_RESOLUTION_S, Attempts, Remedy, remedy_of

__all__ = ["RetryingCalls"]

T = TypeVar("T")

#: The settings that bound a call with its retries.
TimeoutSetting: TypeAlias = Literal["api_timeout_ms", "delivery_timeout_ms"]


class RetryingCalls(ABC):
    """Runs operations until a deadline, and retries them after retriable errors."""

    def __init__(self, settings: ClientSettings, clock: Clock, observer: Observer) -> None:
        self.settings = settings
        self.clock = clock
        self.observer = observer

    @abstractmethod
    def invalidate_brokers(self) -> None:
        """Marks the known brokers as outdated, so that the client requests them again."""

    async def sleep_until(self, at: float) -> None:
        """Waits until the clock shows `at`, in seconds."""
        await self.clock.sleep(at - self.clock.monotonic())

    async def with_deadline(
        self,
        deadline: float,
        operation: Awaitable[T],
        limit_ms: int | None = None,
        limited_by: TimeoutSetting = "api_timeout_ms",
    ) -> T:
        """Returns the result of `operation`; raises RequestTimeoutError at `deadline`.

        `deadline` is in seconds of the clock. The error names the limit: the setting `limited_by`,
        or the number `limit_ms` if it is given and differs from that setting.
        """
        try:
            async with self.clock.timeout(max(0.0, deadline - self.clock.monotonic())):
                return await operation
        except TimeoutError as error:
            if (
                isinstance(error, KprotoError)
                or self.clock.monotonic() < deadline - TIMER_RESOLUTION_S
            ):
                raise  # the operation's own timeout
            named_ms: int = getattr(self.settings, limited_by)
            is_named = limit_ms in (None, named_ms)
            limit = f"{named_ms} ms ({limited_by})" if is_named else f"{limit_ms} ms"
            raise RequestTimeoutError(f"no broker answered within {limit}") from None

    async def within(self, limit_ms: int | None, operation: Awaitable[T]) -> T:
        """Returns the result of `operation`; raises RequestTimeoutError after `limit_ms`.

        None is no limit.
        """
        if limit_ms is None:
            return await operation
        deadline = self.clock.monotonic() + limit_ms / 1000
        return await self.with_deadline(deadline, operation, limit_ms)

    async def retrying(
        self,
        operation: Callable[[], Awaitable[T]],
        *,
        responses: bool = True,
        started_at: float | None = None,
        limited_by: TimeoutSetting = "api_timeout_ms",
    ) -> T:
        """Retries `operation` after retriable errors, for the time of the setting `limited_by`.

        The time runs from `started_at` on, in seconds of the clock; by default from now. Lost
        connections and timeouts are retried, and with `responses` also retriable error codes. Any
        other error is raised at once. A backoff ends at the deadline at the latest. An attempt that
        runs at the deadline is cancelled, but each retry may run for at least 0.1 s. After the
        deadline the call raises the error of the last attempt, or RequestTimeoutError if no attempt
        has failed.
        """
        started_at = self.clock.monotonic() if started_at is None else started_at
        limit_ms: int = getattr(self.settings, limited_by)
        attempts = Attempts(self.settings, limit_ms, started_at)
        while True:
            try:
                return await self._attempt(attempts, operation(), limited_by)
            except KprotoError as error:
                answered = isinstance(error, BrokerResponseError)
                if remedy_of(error) is Remedy.FAIL or (answered and not responses):
                    raise
                if not attempts.failed(error, self.clock.monotonic()):
                    raise
                if remedy_of(error) is not Remedy.RETRY:
                    self.invalidate_brokers()
                self.observer.retried("call", error, attempts)
            await self.sleep_until(attempts.not_before)

    async def _attempt(
        self,
        attempts: Attempts,
        operation: Awaitable[T],
        limited_by: TimeoutSetting = "api_timeout_ms",
    ) -> T:
        """Returns the result of `operation`, which is cancelled at the deadline of the attempt.

        Raises the error of `operation`. If the deadline passes, raises the last error of
        `attempts`, or RequestTimeoutError if there is none.
        """
        ends_at = attempts.ends_at(self.clock.monotonic())
        try:
            return await self.with_deadline(ends_at, operation, limited_by=limited_by)
        except RequestTimeoutError as error:
            if self.clock.monotonic() < ends_at - TIMER_RESOLUTION_S:
                raise  # the operation's own timeout
            raise attempts.error or error from None
