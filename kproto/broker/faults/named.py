"""Defines ready control functions: `broker.control(Slow(200), request=FetchRequest)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...protocol.connection import ReceivedRequest
from ...protocol.error_codes import code_of
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError
from .outcomes import Cut, Delay, Outcome, Refuse, Silence, Throttle

__all__ = ["CutFrame", "ErrorCode", "LoseResponses", "SilentConnection", "Slow", "Throttled"]

_LARGEST_CODE = 2**15 - 1


@dataclass(frozen=True, slots=True)
class Slow:
    """Delays each request by `ms`."""

    ms: int

    def __post_init__(self) -> None:
        Delay(self.ms)

    def __call__(self, request: ReceivedRequest) -> Outcome:
        return Delay(self.ms)


@dataclass(frozen=True, slots=True)
class Throttled:
    """Throttles each request for at least `ms`, as a quota does (KIP-219).

    The response has the throttle time, and the connection is muted for that time.
    """

    ms: int

    def __post_init__(self) -> None:
        Throttle(self.ms)

    def __call__(self, request: ReceivedRequest) -> Outcome:
        return Throttle(self.ms)


@dataclass(frozen=True, slots=True)
class CutFrame:
    """Handles the request, sends `after_bytes` of the response frame, and closes the connection.

    If `after_bytes` is None, sends half of the frame. Never sends the last byte, even if
    `after_bytes` is larger than the frame. If the request has no response, only handles the
    request.
    """

    after_bytes: int | None = None

    def __post_init__(self) -> None:
        Cut(self.after_bytes)

    def __call__(self, request: ReceivedRequest) -> Outcome:
        return Cut(self.after_bytes)


@dataclass(frozen=True, slots=True)
class LoseResponses:
    """Handles the request, but sends no response to it or to later requests of the connection."""

    def __call__(self, request: ReceivedRequest) -> Outcome:
        return Silence(after_handling=True)


@dataclass(frozen=True, slots=True)
class SilentConnection:
    """Keeps the connection open, but handles neither the request nor any later request on it."""

    def __call__(self, request: ReceivedRequest) -> Outcome:
        return Silence()


class ErrorCode:
    """Refuses `times` requests with an error code; refuses all requests if `times` is None.

    `error` is Kafka's name of an error, or an error code. `topics` are the names of the topics to
    refuse, or a mapping of names to partition indexes; if None, the whole request is refused. A
    name also selects the topic if the request has only its topic id. A name also selects a group or
    a resource with this name. The rest of a request is handled normally. A request that contains
    nothing selected is handled normally, and does not count as one of the `times` requests.

    The response has the error code for each refused partition, topic, group or resource. If the
    responses of the API have only a top-level error code, this error code is set. A refused Produce
    with acks=0 has no response: the connection is closed. Some APIs, such as AlterClientQuotas, are
    not supported: the connection is closed, and `Control.fault` is a ConfigurationError.
    """

    def __init__(
        self,
        error: str | int,
        times: int | None = 1,
        *,
        topics: Mapping[str, Iterable[int]] | Iterable[str] | None = None,
    ) -> None:
        if isinstance(error, str):
            try:
                self.code = code_of(error)
            except KeyError:
                raise ConfigurationError(
                    f"no error code is called {error!r}; give a name of Kafka's, such as "
                    "NOT_LEADER_OR_FOLLOWER"
                ) from None
        else:
            check_whole_number("the code of an ErrorCode", error, -1, _LARGEST_CODE)
            self.code = error
        self.times = times
        if not self.code:
            raise ConfigurationError(
                "an ErrorCode is NONE (0), which is no error: the client would take the request "
                "for successful, although it was not handled"
            )
        self._refuse = Refuse(self.code, {} if topics is None else _partitions_by_topic(topics))

    def __call__(self, request: ReceivedRequest) -> Outcome:
        return self._refuse


def _partitions_by_topic(
    topics: Mapping[str, Iterable[int]] | Iterable[str],
) -> dict[str, tuple[int, ...]]:
    """Returns the partition indexes by topic; () stands for all partitions.

    Raises ConfigurationError for invalid or empty `topics`.
    """
    if isinstance(topics, str) or not isinstance(topics, Iterable):
        raise ConfigurationError(f"topics is {topics!r}; give a list of names")
    if isinstance(topics, Mapping):
        partitions = {name: _indexes(name, indexes) for name, indexes in topics.items()}
    else:
        partitions = dict.fromkeys(topics, ())
    if not partitions or not all(isinstance(name, str) for name in partitions):
        raise ConfigurationError(
            f"topics is {topics!r:.80}; give names of topics, or leave it out to mean all"
        )
    return partitions


def _indexes(name: str, selected: Iterable[int]) -> tuple[int, ...]:
    indexes = tuple(selected) if isinstance(selected, Iterable) else ()
    if not indexes:
        raise ConfigurationError(
            f"topics[{name!r}] is {selected!r:.80}; give the indexes of partitions, such as [0], "
            f"or topics=[{name!r}] to mean all"
        )
    for index in indexes:
        check_whole_number(f"a partition of topics[{name!r}]", index, 0)
    return indexes
