"""Keeps the last requests of clients, for assertions of tests: `RequestLog` is a control function.

log = RequestLog()
broker.control(log)
...
assert not any(it.message.allow_auto_topic_creation for it in log.requests(MetadataRequest))
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast, overload

from ..messages.base import Request
from ..protocol.connection import ReceivedRequest
from ..wire.checks import check_whole_number
from .faults import Outcome

__all__ = ["MAX_LOGGED_BYTES", "MAX_LOGGED_REQUESTS", "LoggedRequest", "RequestLog"]

#: Requests that a log keeps. A consumer without records sends two a second, so these are the
#: requests of minutes.
MAX_LOGGED_REQUESTS: Final = 1000
#: Bytes of requests that a log keeps: a log of large Produce requests stays small.
MAX_LOGGED_BYTES: Final = 8_388_608

R = TypeVar("R", bound=Request[Any])


@dataclass(frozen=True, slots=True)
class LoggedRequest(Generic[R]):
    """A request of a client: the `name` of its class, `version`, `client_id` and `message`.

    `size` is the number of bytes of the request. `message` is the decoded request; None if no
    definition has its API key and version.
    """

    name: str
    version: int
    client_id: str | None
    message: R
    size: int

    def __str__(self) -> str:
        return f"{self.name} v{self.version} from {self.client_id or 'no client id'}"


class RequestLog:
    """Keeps the last `max_requests` requests, and at most `max_bytes` bytes of them.

    Register the log by `broker.control(log)` before other control functions: a control function
    that refuses a request hides the request from later functions. Raises ConfigurationError for a
    limit below 1.
    """

    def __init__(
        self, max_requests: int = MAX_LOGGED_REQUESTS, max_bytes: int = MAX_LOGGED_BYTES
    ) -> None:
        check_whole_number("max_requests", max_requests, 1)
        check_whole_number("max_bytes", max_bytes, 1)
        self._max_requests = max_requests
        self._max_bytes = max_bytes
        self._kept: deque[LoggedRequest[Any]] = deque()
        self._kept_bytes = 0
        #: How many requests the log has dropped, because newer ones filled it.
        self.dropped = 0

    def __call__(self, request: ReceivedRequest) -> Outcome:
        """Adds a request, and drops the oldest requests that exceed the limits."""
        self._kept.append(
            LoggedRequest(
                request.name,
                request.version,
                request.client_id,
                request.message,
                request.size,
            )
        )
        self._kept_bytes += request.size
        while len(self._kept) > self._max_requests or (
            self._kept_bytes > self._max_bytes and len(self._kept) > 1
        ):
            self._kept_bytes -= self._kept.popleft().size
            self.dropped += 1
        return None

    @overload
    def requests(self, request: type[R]) -> list[LoggedRequest[R]]: ...

    @overload
    def requests(self, request: None = None) -> list[LoggedRequest[Any]]: ...

    def requests(self, request: type[R] | None = None) -> list[LoggedRequest[Any]]:
        """Returns the requests of the class `request`, oldest first; without it, all requests."""
        if request is None:
            return list(self._kept)
        return [cast("LoggedRequest[R]", it) for it in self._kept if type(it.message) is request]

    def clear(self) -> None:
        """Forgets all requests, so that a test can look at those of its next step only."""
        self._kept.clear()
        self._kept_bytes = 0
        self.dropped = 0
