"""Defines the proxy's settings: every limit by name, with its default and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..protocol.framing import DEFAULT_MAX_FRAME_BYTES
from ..security.mechanisms import Sasl, check_sasl
from ..security.tls import AnyTls, check_tls
from ..wire.checks import check_least, check_whole_number
from ..wire.errors import ConfigurationError

__all__ = ["Address", "ProxySettings", "parse_address"]

_WILDCARDS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
_LAST_PORT: Final = 65_535

#: Settings that count something, with the least that works.
_LEAST: Final = {
    "max_connections": 1,
    "max_brokers": 1,
    "max_frame_bytes": 1,
    "read_bytes": 1,
    "max_unsent_bytes": 1,
    "connect_timeout_ms": 1,
    "half_closed_timeout_ms": 1,
    "close_timeout_ms": 0,
}


class Address(NamedTuple):
    """Holds the host and port of a listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, least_port: int = 1) -> Address:
    """Reads `host:port` or `[host]:port`. Raises ConfigurationError."""
    host, _, port = text.rpartition(":")
    is_number = port.isascii() and port.isdigit() and len(port) <= len(str(_LAST_PORT))
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not is_number or not least_port <= int(port) <= _LAST_PORT:
        raise ConfigurationError(f"{text!r} is no address, as localhost:9092 is one")
    return Address(host, int(port))


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Configures a `Proxy`. Times are in ms, sizes in bytes. Raises ConfigurationError."""

    #: Rewrite the addresses of brokers in responses, so that clients stay behind the proxy.
    rewrite: bool = False
    #: The host that rewritten responses advertise to clients; None for the host of the listener. It
    #: is needed if the listener binds all addresses of the machine.
    advertised_host: str | None = None
    #: The first of the ports for single brokers, which are tried upwards; 0 lets the system choose
    #: each. Set it if ports are opened in a firewall or forwarded.
    first_broker_port: int = 0
    #: Most ports that are opened for single brokers: a response with more brokers is a mistake.
    max_brokers: int = 1_000
    #: Most clients at once; each uses two sockets of the process, whose limit is often 1,024.
    max_connections: int = 400
    #: Largest frame that is read. Larger ones are forwarded unread, and so are all bytes after
    #: them.
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    #: Bytes read at once from one side: a few typical requests.
    read_bytes: int = 65_536
    #: Unsent bytes to one side; with more, the other side is not read.
    max_unsent_bytes: int = 1_048_576
    #: How long to wait for a connection to the target: clients wait about as long for theirs.
    connect_timeout_ms: int = 10_000
    #: How long one side may still be silent after the other has ended its half of a connection.
    half_closed_timeout_ms: int = 60_000
    #: How long connections may still send their unsent bytes when the proxy ends.
    close_timeout_ms: int = 1_000
    #: TLS to the brokers, which are verified by the names that they advertise: True, a `Tls`, or an
    #: `ssl.SSLContext`. Clients connect to the proxy in plaintext.
    tls: AnyTls = False
    #: SASL credentials of the proxy for each connection to a broker; all clients then act as this
    #: user, and do not authenticate themselves.
    sasl: Sasl | None = field(default=None, repr=False)
    #: Log and record secrets as they are, instead of asterisks.
    show_secrets: bool = False

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        check_whole_number("first_broker_port", self.first_broker_port, 0, _LAST_PORT)
        check_tls(self.tls)
        check_sasl(self.sasl)

    def advertised_host_for(self, listen: Address) -> str:
        """Returns the host that rewritten responses advertise.

        Raises ConfigurationError if no client can connect to the host of `listen`.
        """
        host = self.advertised_host or listen.host
        if host in _WILDCARDS:
            raise ConfigurationError(
                f"{host!r} stands for every address of this machine, to which no client can "
                "connect; name one with advertised_host (--advertised-host)"
            )
        return host
