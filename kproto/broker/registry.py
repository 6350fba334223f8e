"""Which APIs a broker answers, in which versions, and by which function: data, handed to it.

Knows no API. Those of Kafka are `handlers.KAFKA_APIS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from ..messages.base import Request, Response
from .context import Context
from .decisions import Decision
from .releases import supported_versions
from .settings import BrokerSettings

__all__ = ["Api", "by_key", "handles", "served_apis", "served_versions"]

Q = TypeVar("Q", bound=Request[Any])


class Api(NamedTuple):
    """One API: its request, the versions it is answered in, and the function that decides.

    The function gets the context, the request, and the version of both it and the response.
    `fallback` answers any other version, in the form of v0; without it, such a request closes the
    connection.
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
    """Make an `Api` of the function that answers `request` in `versions`."""

    def make(handle: Callable[[Context, Q, int], Decision]) -> Api:
        return Api(request, versions, handle, fallback)

    return make


def by_key(apis: Iterable[Api]) -> dict[int, Api]:
    """The APIs by api key; of two for one key, the later."""
    return {api.request.API_KEY: api for api in apis}


def served_apis(apis: Iterable[Api], settings: BrokerSettings) -> dict[int, Api]:
    """The APIs by api key, each with the versions that a broker of these settings takes."""
    found = {}
    taken = None
    if settings.release is not None:
        taken = supported_versions(settings.release, unstable=settings.unstable_versions)
    for key, api in by_key(apis).items():
        versions = served_versions(api, settings)
        if taken is not None:
            its = taken.get(key, range(0))
            versions = range(max(versions.start, its.start), min(versions.stop, its.stop))
        if versions:
            found[key] = api._replace(versions=versions)
    return found


def served_versions(api: Api, settings: BrokerSettings) -> range:
    """The versions of `api` that a broker takes: without unstable ones unless set so."""
    if settings.unstable_versions:
        return api.versions
    return range(api.versions.start, min(api.versions.stop, api.request.LATEST_STABLE + 1))
