"""`AdminRequester`: sends admin calls to the brokers that answer them, and retries failed parts.

`calls` decides which errors are retried, and which parts a broker may have executed although the
call failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.base import Request, Response
from ...wire.checks import check_whole_number
from ...wire.errors import (
    BrokerConnectionError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from ..core.gather import gather_all
from ..core.retry import LAST_ATTEMPT_S, TIMER_RESOLUTION_S, Attempts, Remedy, remedy_of
from ..metadata.cluster_view import ClusterView
from ..metadata.routing import Route, route_of
from .calls import PartCall, explained_unsupported, is_retried, was_maybe_executed
from .errors import AdminError

__all__ = ["AdminRequester"]

P = TypeVar("P", bound=Hashable)
V = TypeVar("V")
R = TypeVar("R", bound=Response)

#: The only part of a call without parts.
_WHOLE: Final = "the whole call"


class AdminRequester:
    """Sends the admin calls of one client."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view

    async def by_part(
        self, call: PartCall[P, V], parts: Iterable[P], timeout_ms: int | None = None
    ) -> dict[P, V]:
        """Returns the result of each part, in the order of `parts`.

        Parts with a retriable error, and parts whose broker was lost, are sent again until
        `timeout_ms` are over (by default `api_timeout_ms`). Raises AdminError if a part failed.
        """

        def send(left: Sequence[P], left_ms: int) -> Awaitable[Mapping[P, V | KprotoError]]:
            return self._send(call, call.build, left, left_ms)

        return await self.run(call, send, parts, timeout_ms)

    async def run(
        self,
        call: PartCall[P, Any],
        send: Callable[[Sequence[P], int], Awaitable[Mapping[P, V | KprotoError]]],
        parts: Iterable[P],
        timeout_ms: int | None,
    ) -> dict[P, V]:
        """Works as `by_part`; `send` makes one attempt for some parts, within a time in ms."""
        results, errors, unknown = await self._attempts(call, send, parts, timeout_ms)
        if errors:
            raise AdminError(call.action, results, errors, unknown)
        return results

    async def attempt(
        self, call: PartCall[P, V], parts: Sequence[P], left_ms: int
    ) -> dict[P, V | KprotoError]:
        """Makes one attempt of a call for `parts`, within `left_ms`; returns their outcomes."""
        return await self._send(call, call.build, parts, left_ms)

    async def single(
        self,
        action: str,
        request: Request[R] | Callable[[int], Request[R]],
        read: Callable[[R], V | KprotoError],
        timeout_ms: int | None = None,
        *,
        broker: int | None = None,
        changes: bool = False,
        repeats: bool = True,
        done_errors: frozenset[str] = frozenset(),
    ) -> V:
        """Sends a request without parts, and returns what `read` returns for the response.

        `request` may be a function of the time in ms that a broker may take. The other arguments
        are those of `PartCall`. Raises the error that `read` returns, and the errors of requests.
        """

        def build(_: Sequence[str], left_ms: int) -> Request[R]:
            return request if isinstance(request, Request) else request(left_ms)

        call: PartCall[str, V] = PartCall(
            action,
            build=build,
            read=lambda response, _: {_WHOLE: read(response)},
            changes=changes,
            repeats=repeats,
            done_errors=done_errors,
        )

        async def send(_: Sequence[str], left_ms: int) -> Mapping[str, V | KprotoError]:
            limit_ms = min(left_ms, self.view.settings.request_timeout_ms)
            return {_WHOLE: await self.at_broker(build((), limit_ms), read, broker, limit_ms)}

        return await self.whole(call, send, timeout_ms)

    async def whole(
        self,
        call: PartCall[str, V],
        send: Callable[[Sequence[str], int], Awaitable[Mapping[str, V | KprotoError]]],
        timeout_ms: int | None,
    ) -> V:
        """Returns the only result of a call without parts, or raises its error."""
        results, errors, unknown = await self._attempts(call, send, [_WHOLE], timeout_ms)
        for error in errors.values():
            if unknown:
                error.add_note("an attempt was not answered; a broker may have made the change")
            raise error
        return results[_WHOLE]

    async def by_broker(
        self,
        action: str,
        request_of: Callable[[int], Request[R]],
        read: Callable[[R], V | KprotoError],
        brokers: Iterable[int] | None = None,
        timeout_ms: int | None = None,
        *,
        changes: bool = False,
    ) -> dict[int, V]:
        """Sends a request to each broker, by default to every broker; returns the results.

        `request_of` returns the request for a node id. Raises AdminError if a broker failed.
        """
        call: PartCall[int, V] = PartCall(
            action,
            build=lambda parts, left_ms: request_of(parts[0]),
            read=lambda response, parts: {parts[0]: read(response)},
            changes=changes,
        )

        async def send(nodes: Sequence[int], left_ms: int) -> Mapping[int, V | KprotoError]:
            found = await gather_all(
                self.at_broker(request_of(node), read, node, left_ms) for node in nodes
            )
            return dict(zip(nodes, found, strict=True))

        if brokers is None:
            started_at = self.view.clock.monotonic()
            brokers = await self.brokers(timeout_ms)
            if timeout_ms is not None:
                passed_ms = int((self.view.clock.monotonic() - started_at) * 1000)
                timeout_ms = max(1, timeout_ms - passed_ms)
        return await self.run(call, send, brokers, timeout_ms)

    async def brokers(self, timeout_ms: int | None = None) -> list[int]:
        """Refreshes the metadata; returns the node ids of all brokers, in order."""
        await self.within("listing brokers", timeout_ms, lambda: self.view.refresh([]))
        found = sorted(self.view.cluster.brokers)
        if not found:  # Kafka 0.8 lists only brokers with partitions
            raise BrokerConnectionError("the metadata has no broker")
        return found

    async def within(
        self, action: str, timeout_ms: int | None, operation: Callable[[], Awaitable[V]]
    ) -> V:
        """Returns the result of `operation`, which reads; retries it as a call without parts."""

        async def send(parts: Sequence[str], left_ms: int) -> Mapping[str, V | KprotoError]:
            try:
                return {_WHOLE: await operation()}
            except KprotoError as error:
                return {_WHOLE: error}

        call: PartCall[str, V] = PartCall(
            action, build=lambda parts, left_ms: ApiVersionsRequest(), read=lambda _, parts: {}
        )
        return await self.whole(call, send, timeout_ms)

    def _check(self, timeout_ms: int | None) -> None:
        if timeout_ms is not None:
            check_whole_number("timeout_ms", timeout_ms, 1)
        self.view.raise_if_closed()
        self.view.loop_guard.check()

    async def _attempts(
        self,
        call: PartCall[P, Any],
        send: Callable[[Sequence[P], int], Awaitable[Mapping[P, V | KprotoError]]],
        parts: Iterable[P],
        timeout_ms: int | None,
    ) -> tuple[dict[P, V], dict[P, KprotoError], set[P]]:
        """Sends parts until each part has a result, or an error that is not retried.

        Returns the results, the errors, and those failed parts that a broker may have executed.
        """
        self._check(timeout_ms)
        view = self.view
        every = list(dict.fromkeys(parts))
        left = every
        started_at = view.clock.monotonic()
        attempts = Attempts(view.settings, timeout_ms, started_at)
        topics_until = started_at + view.settings.unknown_topic_wait_ms / 1000
        found: dict[P, V | KprotoError] = {}
        unanswered: set[P] = set()
        while left:
            now = view.clock.monotonic()
            ends_at = attempts.ends_at(now)
            left_ms = max(1, int((ends_at - now) * 1000))
            try:
                answers = await view.with_deadline(
                    ends_at + LAST_ATTEMPT_S, send(left, left_ms), timeout_ms
                )
            except KprotoError as error:
                answers = dict.fromkeys(left, error)
            earlier = {part: found[part] for part in left if part in found}
            found |= answers
            now = view.clock.monotonic()
            if now >= attempts.deadline - TIMER_RESOLUTION_S:
                found |= self._named_timeouts(answers, earlier, timeout_ms)
            awaits_topics = call.awaits_topics and now < topics_until
            again = []
            for part in left:
                error_or_result = found[part]
                if not isinstance(error_or_result, KprotoError):
                    continue
                if call.changes and was_maybe_executed(error_or_result):
                    unanswered.add(part)
                    if not call.repeats:
                        continue
                if is_retried(
                    error_or_result,
                    awaits_topics=awaits_topics,
                    retries_throttling=call.retries_throttling,
                ):
                    again.append(part)
            left = again
            if left and not await self._back_off(attempts, [found[part] for part in left]):
                break
        errors = {part: it for part in every if isinstance(it := found[part], KprotoError)}
        results = {part: it for part in every if not isinstance(it := found[part], KprotoError)}
        unknown = {
            part
            for part, error in errors.items()
            if part in unanswered
            and (was_maybe_executed(error) or getattr(error, "name", "") in call.done_errors)
        }
        return results, errors, unknown

    def _named_timeouts(
        self,
        answers: Mapping[P, V | KprotoError],
        earlier: Mapping[P, V | KprotoError],
        timeout_ms: int | None,
    ) -> dict[P, KprotoError]:
        """Returns the timeouts at the end of a call; they name its limit and the error before."""
        limit = f"{self.view.settings.api_timeout_ms} ms (api_timeout_ms)"
        if timeout_ms is not None:
            limit = f"{timeout_ms} ms (timeout_ms)"
        named: dict[P, KprotoError] = {}
        for part, error in answers.items():
            if isinstance(error, RequestTimeoutError):
                before = f"; the attempt before: {earlier[part]}" if part in earlier else ""
                named[part] = RequestTimeoutError(f"no broker answered within {limit}{before}")
        return named

    async def _back_off(self, attempts: Attempts, errors: Sequence[object]) -> bool:
        """Waits until the next attempt; returns False if the time of the call is over."""
        failures = [each for each in errors if isinstance(each, KprotoError)]
        view = self.view
        if not attempts.failed(failures[0], view.clock.monotonic()):
            return False
        if any(remedy_of(each) is not Remedy.RETRY for each in failures):
            view.invalidate_brokers()
        view.observer.retried("call", failures[0], attempts)
        await view.sleep_until(attempts.not_before)
        return True

    async def _send(
        self,
        call: PartCall[P, V],
        build: Callable[[Sequence[P], int], Request[Any]],
        parts: Sequence[P],
        left_ms: int,
    ) -> dict[P, V | KprotoError]:
        """Sends the request for `parts` to its brokers; returns the outcome of each part."""
        limit_ms = min(left_ms, self.view.settings.request_timeout_ms)
        try:
            request = build(parts, limit_ms)
            if call.check is not None:
                await self._check_version(call.check, request)
            answers = await self.view.request_by_broker(
                request, timeout_ms=limit_ms, within_ms=left_ms
            )
        except KprotoError as error:
            if isinstance(error, BrokerConnectionError):
                error.never_written = True  # the brokers were not found
            if len(parts) == 1 or call.parts_of is None:
                return dict.fromkeys(parts, error)
            # A part whose brokers are unknown fails the whole request: send each part alone.
            alone: list[Coroutine[Any, Any, dict[P, V | KprotoError]]]
            alone = [self._send(call, build, [part], left_ms) for part in parts]
            return {part: it for each in await gather_all(alone) for part, it in each.items()}
        found: dict[P, V | KprotoError] = {}
        for answer in answers:
            its = parts
            if len(answers) > 1 and call.parts_of is not None:
                its = list(call.parts_of(answer.request))
            failure = answer.error
            if isinstance(failure, UnsupportedVersionError):
                older = call.build_older
                if older is not None and older is not build:
                    found |= await self._send_older(call, older, its, left_ms)
                    continue
                failure = explained_unsupported(failure, answer.request)
            if failure is not None:
                found |= dict.fromkeys(its, failure)
                continue
            try:
                read = call.read(answer.response, its)
            except KprotoError as error:
                found |= dict.fromkeys(its, error)
                continue
            api = type(answer.request).__name__.removesuffix("Request")
            for part in its:
                lacks = ProtocolError(f"the response to {api} lacks {part!r}")
                found[part] = read.get(part, lacks)
                if call.with_broker is not None and not isinstance(found[part], KprotoError):
                    found[part] = call.with_broker(found[part], answer.broker)
        return found

    async def _send_older(
        self,
        call: PartCall[P, V],
        build: Callable[[Sequence[P], int], Request[Any]],
        parts: Sequence[P],
        left_ms: int,
    ) -> dict[P, V | KprotoError]:
        """Sends parts to brokers that support only the older request, which may have one part."""
        if call.parts_of is None:
            return await self._send(call, build, parts, left_ms)
        alone: list[Coroutine[Any, Any, dict[P, V | KprotoError]]]
        alone = [self._send(call, build, [part], left_ms) for part in parts]
        return {part: it for each in await gather_all(alone) for part, it in each.items()}

    async def _check_version(
        self, check: Callable[[Any, int], None], request: Request[Any]
    ) -> None:
        """Calls `check` with the version in which the controller gets `request`."""
        if route_of(request) is Route.CONTROLLER:
            connection = await self.view.connection_for(request)
            try:
                check(request, connection.version_for(request))
            except UnsupportedVersionError as error:
                raise explained_unsupported(error, request) from None

    async def at_broker(
        self,
        request: Request[R],
        read: Callable[[R], V | KprotoError],
        broker: int | None,
        left_ms: int,
    ) -> V | KprotoError:
        """Sends a request to a broker, None for the broker of its route; returns the outcome."""
        limit_ms = min(left_ms, self.view.settings.request_timeout_ms)
        try:
            sending = self.view.request(request, broker=broker, timeout_ms=limit_ms)
            return read(await self.view.within(left_ms, sending))
        except UnsupportedVersionError as error:
            return explained_unsupported(error, request)
        except KprotoError as error:
            return error
