"""Which APIs the broker answers, in which versions, and by which function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from ..messages.base import Request, Response

if TYPE_CHECKING:
    from .settings import BrokerSettings
    from .state import BrokerState

__all__ = ["APIS", "Answer", "Api", "CloseConnection", "handles", "served_versions"]

Answer: TypeAlias = "Response | Awaitable[Response | None] | None"
"""What a handler returns: a response, None for none, or either of them later."""

Q = TypeVar("Q", bound=Request[Any])


class CloseConnection(Exception):  # noqa: N818 - what to do, not what went wrong
    """Raised by a handler when Kafka's answer is to close the connection; the text says why."""


class Api(NamedTuple):
    """One API: its request, the versions it is answered in, and the function that does it.

    The function gets the broker's state, the request and the version of both it and the response.
    """

    request: type[Request[Any]]
    versions: range
    handle: Callable[[BrokerState, Any, int], Answer]


#: Every API that has a handler, by api key.
APIS: Final[dict[int, Api]] = {}


def handles(
    request: type[Q], versions: range
) -> Callable[[Callable[[BrokerState, Q, int], Answer]], Callable[[BrokerState, Q, int], Answer]]:
    """Register a function as the handler of `request` in `versions`."""

    def register(
        handle: Callable[[BrokerState, Q, int], Answer],
    ) -> Callable[[BrokerState, Q, int], Answer]:
        APIS[request.API_KEY] = Api(request, versions, handle)
        return handle

    return register


def served_versions(api: Api, settings: BrokerSettings) -> range:
    """The versions of `api` that this broker takes: without unstable ones unless set so."""
    if settings.unstable_versions:
        return api.versions
    return range(api.versions.start, min(api.versions.stop, api.request.LATEST_STABLE + 1))
