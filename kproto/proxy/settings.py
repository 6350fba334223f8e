"""Defines the proxy's settings, with their defaults and the reasons for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..protocol.framing import DEFAULT_MAX_FRAME_BYTES
from ..protocol.message_classes import KAFKA_MESSAGES, MessageClasses
from ..security.sasl import Sasl, check_sasl
from ..security.tls import AnyTls, check_tls
from ..wire.checks import check_least, check_whole_number
from ..wire.errors import ConfigurationError
from ..wire.listener_prefix import split_prefix

__all__ = ["Address", "ProxySettings", "parse_address"]

_WILDCARDS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
_LAST_PORT: Final = 65_535

#: Numeric settings with their minimum.
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
    """Holds a host and a port; its text has an IPv6 address in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, least_port: int = 1) -> Address:
    """Parses `host:port` or `[host]:port`; ignores a prefix, as in `SASL_SSL://host:port`.

    Raises ConfigurationError for other text, and for a port below `least_port` or above 65,535.
    """
    host, _, port = split_prefix(text)[1].rpartition(":")
    is_number = port.isascii() and port.isdigit() and len(port) <= len(str(_LAST_PORT))
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not is_number or not least_port <= int(port) <= _LAST_PORT:
        raise ConfigurationError(f"{text!r} is no address such as localhost:9092")
    return Address(host, int(port))


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Configures a `Proxy`. Times are in ms, sizes in bytes.

    Raises ConfigurationError for invalid values.
    """

    #: Rewrite the addresses of brokers in responses, so that clients connect to all brokers through
    #: the proxy.
    rewrite: bool = False
    #: The host that rewritten responses advertise to clients; None for the host of the listener.
    #: Required if the listener binds all addresses of the machine.
    advertised_host: str | None = None
    #: The first port to open for a single broker. Each further broker gets the next free port above
    #: it. 0 lets the system choose. Set it if a firewall or port forwarding needs known ports.
    first_broker_port: int = 0
    #: Maximum number of ports opened for single brokers. No cluster has so many: a response that
    #: names more is invalid.
    max_brokers: int = 1_000
    #: Maximum number of connected clients. Each uses two sockets, and the limit of open files of a
    #: process is often 1,024.
    max_connections: int = 400
    #: Largest frame that is decoded. A larger frame, and all bytes after it in the same direction,
    #: are forwarded without being decoded.
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    #: Maximum bytes of one read from a client or broker: a few typical requests.
    read_bytes: int = 65_536
    #: Maximum bytes that wait to be sent to a client. Above it, the proxy stops reading from the
    #: client's broker. The same applies to the opposite direction.
    max_unsent_bytes: int = 1_048_576
    #: How long connecting to a broker may take, with TLS and SASL. Kafka's clients wait 10 s too.
    connect_timeout_ms: int = 10_000
    #: How long to keep a connection after client or broker has closed its half, while the other
    #: half transfers no bytes.
    half_closed_timeout_ms: int = 60_000
    #: How long a closing connection may take to send its unsent bytes.
    close_timeout_ms: int = 1_000
    #: TLS of the connections to brokers: True, a `Tls`, or an `ssl.SSLContext`. The certificate of
    #: a broker must be for the name that it advertises. Clients connect to the proxy in plaintext.
    tls: AnyTls = False
    #: SASL credentials with which the proxy authenticates each connection to a broker. Clients do
    #: not authenticate: all have the proxy's principal.
    sasl: Sasl | None = field(default=None, repr=False)
    #: Log and record secrets in plaintext instead of as asterisks.
    show_secrets: bool = False
    #: The classes of requests and responses, by api key. Set it to decode the messages of your own
    #: packages. The bytes of unknown messages are forwarded too.
    classes: MessageClasses = field(default=KAFKA_MESSAGES, repr=False)

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        check_whole_number("first_broker_port", self.first_broker_port, 0, _LAST_PORT)
        check_tls(self.tls)
        check_sasl(self.sasl)

    def advertised_host_for(self, listen: Address) -> str:
        """Returns the host that rewritten responses advertise.

        Raises ConfigurationError if that host stands for all addresses of the machine, so that no
        client can connect to it.
        """
        host = self.advertised_host or listen.host
        if host in _WILDCARDS:
            raise ConfigurationError(
                f"{host!r} means every address of this machine, and clients cannot connect to it; "
                "name one address with advertised_host (--advertised-host)"
            )
        return host
