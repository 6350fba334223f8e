"""Describes admin calls as plain data: how to build a request, and how to read its response.

The modules of the areas, such as `topics`, return these calls; `requester` sends them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from ...messages.base import Request
from ...protocol.error_codes import error_code, error_of_code
from ...schema.version_limits import lowest_version_limit, versioned_fields
from ...wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    KprotoError,
    RequestTimeoutError,
    UnsupportedVersionError,
)

__all__ = [
    "PartCall",
    "by_topic",
    "error_in",
    "explained_unsupported",
    "is_retried",
    "outcome",
    "was_maybe_executed",
]

P = TypeVar("P", bound=Hashable)
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)
#: The key and the value of a group of pairs.
K = TypeVar("K")

#: The error of a change beyond the quota of the principal (KIP-599).
_THROTTLED: Final = "THROTTLING_QUOTA_EXCEEDED"

#: Errors after which the same request may succeed at the same broker or at another broker.
_RETRIED: Final = frozenset(
    {
        "BROKER_NOT_AVAILABLE",
        "CONCURRENT_TRANSACTIONS",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "LEADER_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "NOT_CONTROLLER",
        "NOT_COORDINATOR",
        "NOT_LEADER_OR_FOLLOWER",
        "OFFSET_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        _THROTTLED,
        "UNKNOWN_LEADER_EPOCH",
        "UNSTABLE_OFFSET_COMMIT",
    }
)

#: Errors of a topic that was just created; see `PartCall.awaits_topics`.
_NEW_TOPIC: Final = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"})

#: Errors of a broker that may have executed the request nevertheless.
_UNFINISHED: Final = frozenset({"NETWORK_EXCEPTION", "REQUEST_TIMED_OUT"})


@dataclass(frozen=True, slots=True)
class PartCall(Generic[P, V_co]):
    """An admin call with many parts, such as topics, groups or partitions.

    - `action`: the call in words, for errors: "creating topics".
    - `build(parts, left_ms)`: returns the request for these parts; `left_ms` is the time that a
      broker may take.
    - `read(response, parts)`: returns the result or the error of each part.
    - `parts_of(request)`: returns the parts in a request that was split for several brokers; None
      if one broker answers all parts.
    - `build_older`: builds the request for brokers that do not support that of `build`; for a call
      with `parts_of`, a request of one part.
    - `with_broker(result, node)`: returns the result with the node id of the broker that sent it.
    - `check(request, version)`: raises UnsupportedVersionError if the version of the broker cannot
      express the request; only for requests to the controller.
    - `changes`: True if the call changes the cluster.
    - `done_errors`: the errors of a change that is already made.
    - `repeats`: False if the call must not repeat a request that a broker may have executed.
    - `retries_throttling`: False if THROTTLING_QUOTA_EXCEEDED is raised at once.
    - `awaits_topics`: True if an unknown topic may be a new topic, so that the call is repeated for
      `unknown_topic_wait_ms`.
    """

    action: str
    build: Callable[[Sequence[P], int], Request[Any]]
    read: Callable[[Any, Sequence[P]], Mapping[P, V_co | KprotoError]]
    parts_of: Callable[[Any], Iterable[P]] | None = None
    build_older: Callable[[Sequence[P], int], Request[Any]] | None = None
    with_broker: Callable[[Any, int | None], Any] | None = None
    check: Callable[[Any, int], None] | None = None
    changes: bool = False
    done_errors: frozenset[str] = frozenset()
    repeats: bool = True
    retries_throttling: bool = True
    awaits_topics: bool = False


def error_in(code: int, action: str, message: str | None = None) -> BrokerResponseError | None:
    """Returns the error of a code and the broker's message; None for the code 0."""
    if not code:
        return None
    return error_of_code(code, f"{action}: {message}" if message else action)


def outcome(code: int, action: str, message: str | None, value: V) -> V | BrokerResponseError:
    """Returns `value` for the code 0, otherwise the error; `message` is the broker's message."""
    error = error_in(code, action, message)
    return value if error is None else error


def by_topic(pairs: Iterable[tuple[str, K]]) -> dict[str, list[K]]:
    """Groups pairs of a topic and a value, such as partitions, by topic."""
    found: dict[str, list[K]] = {}
    for topic, value in pairs:
        found.setdefault(topic, []).append(value)
    return found


def is_retried(error: KprotoError, *, awaits_topics: bool, retries_throttling: bool = True) -> bool:
    """Returns True if an admin call repeats a request after `error`.

    `awaits_topics` is True while the call waits for metadata of new topics.
    """
    if isinstance(error, BrokerResponseError):
        if error.name == _THROTTLED and not retries_throttling:
            return False
        return error.name in _RETRIED or (awaits_topics and error.name in _NEW_TOPIC)
    return isinstance(error, BrokerConnectionError | RequestTimeoutError)


def was_maybe_executed(error: KprotoError) -> bool:
    """Returns True if a broker may have executed the request that failed with `error`."""
    if isinstance(error, BrokerConnectionError):
        return not error.never_written
    if isinstance(error, BrokerResponseError):
        return error_code(error.code).name in _UNFINISHED
    return isinstance(error, RequestTimeoutError)


def explained_unsupported(
    error: UnsupportedVersionError, request: Request[Any]
) -> UnsupportedVersionError:
    """Returns `error` with the first release of Kafka that supports `request`.

    Returns `error` itself if it is explained already, or if no release is known.
    """
    from ...schema import release_table  # a table that few clients need

    kind = type(request)
    limit = lowest_version_limit(versioned_fields(kind._definition()), request)
    lowest = kind.VALID_VERSIONS.start if limit is None else limit.versions.lowest
    stable = range(lowest, kind.LATEST_STABLE + 1)  # the lowest may never have been stable
    try:
        found = ((each, release_table.added_in(kind.API_KEY, each)) for each in stable)
        version, release = next((each for each in found if each[1]), (lowest, None))
    except LookupError:  # a request of the user
        return error
    if release is None or _SINCE in str(error):
        return error
    api = kind.__name__.removesuffix("Request")
    field = "" if limit is None else f" with {limit.path}"
    return UnsupportedVersionError(f"{error}; {api} v{version}{field} {_SINCE} {release}")


#: Begins the release in the text of `explained_unsupported`.
_SINCE: Final = "is supported since Kafka"
