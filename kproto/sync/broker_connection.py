"""`BrokerConnection` without `await`.

`python -m tools.sync` writes this module from `kproto/client/network/connection.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ..client.network.connection import BrokerConnection as _BrokerConnection
from ..client.settings import Address
from ..messages.base import Request, Response
from ..protocol.negotiation import ApiRange
from .wrapper import Wrapper

__all__ = ["BrokerConnection"]

R = TypeVar("R", bound=Response)


class BrokerConnection(Wrapper[_BrokerConnection]):
    """A connection to a broker, with negotiated versions; `open` creates it."""

    __slots__ = ()

    @property
    def address(self) -> Address:
        """The address of the broker."""
        return self._wrapped.address

    @property
    def ranges(self) -> Mapping[int, ApiRange]:
        """The versions of each API that the broker supports, by API key."""
        return self._wrapped.ranges

    @property
    def message_magic(self) -> int:
        """The newest record format that the broker accepts."""
        return self._wrapped.message_magic

    @property
    def finalized_features(self) -> Mapping[str, int]:
        """The level of each finalized feature by name (KIP-584)."""
        return self._wrapped.finalized_features

    @property
    def usable(self) -> bool:
        """True until the connection is closed or fails."""
        return self._read(lambda: self._wrapped.usable)

    @property
    def in_flight(self) -> int:
        """The number of requests in flight."""
        return self._read(lambda: self._wrapped.in_flight)

    def version_of(self, request: type[Request[R]], at_most: int | None = None) -> int:
        """Returns the highest version of a request that both sides support, up to `at_most`.

        Raises UnsupportedVersionError if there is none.
        """
        return self._call_plain(self._wrapped.version_of, request, at_most)

    def version_for(self, request: Request[R]) -> int:
        """Returns the highest version that both sides support and that can express `request`.

        The version has every field whose value is not the default, with two exceptions. First, it
        may lack an ignorable field that only later versions have; an id, such as a topic id, is
        ignorable only if the request also has the name. Second, it may lack a name if the request
        also has the id that replaces the name.

        Raises UnsupportedVersionError if there is no such version. If a field is the reason, the
        error names the field. If no version has two of the fields together, the error names these
        two fields.
        """
        return self._call_plain(self._wrapped.version_for, request)

    def request(
        self, request: Request[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> R:
        """Sends `request`, and waits for its response.

        `version` is by default the result of `version_for`.

        Raises EncodeError if that version cannot express the request, BrokerConnectionError if the
        connection is lost, and DecodeError if the response cannot be decoded. Raises
        RequestTimeoutError if the request cannot be written within `timeout_ms` plus the throttle
        time, or if no response arrives within `timeout_ms` after the write. A timeout fails the
        connection, because the broker may be lost; a timeout during a throttle does not fail it.
        `timeout_ms` is by default `request_timeout_ms`; the wait for a free slot does not count.

        If the connection was closed before the request was written, the request is sent once more,
        on a new connection. A request that only reads is also sent once more if the broker closed
        an idle connection. Requests are sent once more only on the connections of a client, not on
        a connection that a program creates by `open`.
        """
        return self._call(self._wrapped.request, request, version=version, timeout_ms=timeout_ms)

    def send_only(self, request: Request[R], *, version: int | None = None) -> None:
        """Sends a request that brokers do not answer (Produce with acks=0).

        Waits while the broker does not read, and while it throttles the client. Raises the errors
        of `request`; after `request_timeout_ms` a broker that does not read counts as lost.
        """
        self._call(self._wrapped.send_only, request, version=version)

    def close(self) -> None:
        """Closes the connection and waits for the socket; requests in flight fail."""
        self._end(lambda: self._wrapped.close())
