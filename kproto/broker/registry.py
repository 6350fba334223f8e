"""Defines an API of the broker: its request class, its versions, and its handler.

A handler returns a response, None for no response, or a `DelayedResponse`, which corresponds to a
delayed operation in Kafka's purgatory. A handler raises `CloseConnection` to close the connection.
`session` calls the handlers and waits for delayed responses. `handlers.KAFKA_APIS` has Kafka's
APIs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ..messages.base import Request, Response
from .context import Context
from .groups import ClassicGroup, PendingResult
from .releases import supported_versions
from .settings import BrokerSettings
from .watchable import Watchable

__all__ = [
    "Api",
    "CloseConnection",
    "Decision",
    "DelayedResponse",
    "by_key",
    "handles",
    "respond_when_complete",
    "served_apis",
    "served_versions",
]

Q = TypeVar("Q", bound=Request[Any])
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class DelayedResponse:
    """Describes a response that is not complete yet.

    `deadline` is in seconds of the monotonic clock (`Context.deadline`). `try_complete` is called
    with False when an object in `watched` changes, and with True at the deadline. `try_complete`
    returns the response, the same `DelayedResponse` to keep waiting, or a new `DelayedResponse`. At
    the deadline, `try_complete` must not return the same `DelayedResponse`. After the end of the
    connection, `try_complete` is not called.
    """

    deadline: float
    watched: Sequence[Watchable]
    try_complete: Callable[[bool], Decision]


Decision: TypeAlias = Response | DelayedResponse | None
"""The result of a handler; None for no response."""


class CloseConnection(Exception):  # noqa: N818 - an instruction, not an error
    """Raised by a handler or by the session to close the connection.

    The text is the reason, for the log.
    """


class Api(NamedTuple):
    """Describes an API: its request class, the supported versions, and the handler.

    `handle` gets the context, the request, and the version of the request and its response.
    `fallback` returns the response to a request of an unsupported version; the response is encoded
    as v0. If `fallback` is None, such a request closes the connection.
    """

    request: type[Request[Any]]
    versions: range
    handle: Callable[[Context, Any, int], Decision]
    fallback: Callable[[Context], Response] | None = None


def handles(
    request: type[Q],
    versions: range,
    fallback: Callable[[Context], Response] | None = None,
) -> Callable[[Callable[[Context, Q, int], Decision]], Api]:
    """Returns a decorator that replaces a handler function by an `Api` with this function.

    `request` is the class of the requests. For `versions` and `fallback`, see `Api`.
    """

    def make(handle: Callable[[Context, Q, int], Decision]) -> Api:
        return Api(request, versions, handle, fallback)

    return make


def by_key(apis: Iterable[Api]) -> dict[int, Api]:
    """Returns the APIs by API key; a later API replaces an earlier API with the same key."""
    return {api.request.API_KEY: api for api in apis}


def served_apis(apis: Iterable[Api], settings: BrokerSettings) -> dict[int, Api]:
    """Returns the APIs by API key, with the versions that a broker with `settings` supports.

    Versions are limited to those of `settings.release`. An API without a supported version is
    omitted.
    """
    found = {}
    release_versions = None
    if settings.release is not None:
        release_versions = supported_versions(settings.release, unstable=settings.unstable_versions)
    for key, api in by_key(apis).items():
        versions = served_versions(api, settings)
        if release_versions is not None:
            its = release_versions.get(key, range(0))
            versions = range(max(versions.start, its.start), min(versions.stop, its.stop))
        if versions:
            found[key] = api._replace(versions=versions)
    return found


def served_versions(api: Api, settings: BrokerSettings) -> range:
    """Returns the versions of `api`, without unstable versions unless `settings` enables them."""
    if settings.unstable_versions:
        return api.versions
    return range(api.versions.start, min(api.versions.stop, api.request.LATEST_STABLE + 1))


def respond_when_complete(
    context: Context,
    group: ClassicGroup,
    pending: PendingResult[R],
    respond: Callable[[R], Response],
) -> Decision:
    """Returns the response that `respond` creates from the result in `pending`.

    If the result is not complete yet, returns a `DelayedResponse` that waits for it. While the
    response is delayed, the group's timeouts are handled at their deadlines.
    """

    def decide() -> Decision:
        if pending.answer is not None:
            return respond(pending.answer)
        deadline_ms = group.next_deadline_ms
        assert deadline_ms is not None, "a group with a pending result has a deadline"
        return DelayedResponse(deadline_ms / 1000, [group], try_complete)

    def try_complete(_is_deadline: bool) -> Decision:
        group.advance(context.now)
        return decide()

    return decide()
