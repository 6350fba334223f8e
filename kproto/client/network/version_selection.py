"""Selects the version of a request: a version that has all fields that the request sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from ...messages.base import Request, Response
from ...schema.version_limits import (
    VersionedFields,
    highest_version_limit,
    lowest_version_limit,
    versioned_fields,
)
from ...wire.errors import UnsupportedVersionError

__all__ = ["version_for"]

R = TypeVar("R", bound=Response)


def version_for(
    request: Request[R], version_of: Callable[[type[Request[R]], int | None], int]
) -> int:
    """Returns the version for a request; see `BrokerConnection.version_for`.

    `version_of(request class, limit)` negotiates the version with the broker; the version is at
    most `limit`, if that is not None. Raises UnsupportedVersionError if no version can be used. If
    no such version has all fields that are set, the error names a field that the versions of client
    and broker lack, or two fields that no version has together.
    """
    shape = _shape_of(type(request))  # type: ignore[arg-type]  # its objects have no hash
    ending = highest_version_limit(shape, request)
    beginning = lowest_version_limit(shape, request)
    name = type(request).__name__
    lowest = 0 if beginning is None else beginning.versions.lowest
    highest = None if ending is None else ending.versions.highest
    if beginning is not None and ending is not None and ending.versions.highest < lowest:
        raise UnsupportedVersionError(
            f"{name}: its fields {ending.path} (versions {ending.versions}) and "
            f"{beginning.path} (versions {beginning.versions}) are set, and no version has "
            "both; set one of them"
        )
    try:
        version = version_of(type(request), highest)
    except UnsupportedVersionError as error:
        if ending is None:
            raise
        raise UnsupportedVersionError(
            f"{error}: its field {ending.path} is set, which no later version has"
        ) from None
    if beginning is not None and version < lowest:
        raise UnsupportedVersionError(
            f"{name}: the highest version that this broker and the client support is {version}, "
            f"and its field {beginning.path} is set, which versions {beginning.versions} have"
        )
    return version


@lru_cache(maxsize=256)  # more than the number of request classes
def _shape_of(request: type[Request[Any]]) -> VersionedFields:
    return versioned_fields(request._definition())
