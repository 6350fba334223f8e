"""The proxy's settings: every limit by name, with its default and the reason for it."""

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
    """Where somebody listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, least_port: int = 1) -> Address:
    """Read `host:port` or `[host]:port`. Raises ConfigurationError."""
    host, _, port = text.rpartition(":")
    is_number = port.isascii() and port.isdigit() and len(port) <= len(str(_LAST_PORT))
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not is_number or not least_port <= int(port) <= _LAST_PORT:
        raise ConfigurationError(f"{text!r} is no address, as localhost:9092 is one")
    return Address(host, int(port))


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """How a `Proxy` behaves. Times are in ms, sizes in bytes. Raises ConfigurationError."""

    #: Rewrite the addresses of brokers in responses, so that clients stay behind the proxy.
    rewrite: bool = False
    #: The name that clients are told to connect to when addresses are rewritten; None for the host
    #: that is listened at. Needed where that stands for all addresses of the machine.
    advertised_host: str | None = None
    #: The first of the ports for single brokers, which are tried upwards; 0 lets the system choose
    #: each. Named where ports are opened in a firewall or forwarded.
    first_broker_port: int = 0
    #: Most ports that are opened for single brokers: a response that names more is a mistake.
    max_brokers: int = 1_000
    #: Most clients at once; each takes two sockets of the process, which often may have 1,024.
    max_connections: int = 400
    #: Largest frame that is looked at. Larger ones pass unread, and so does all behind them.
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    #: What is read at once of one side: a few typical requests.
    read_bytes: int = 65_536
    #: Bytes that one side has not taken yet; with more, nothing is read from the other.
    max_unsent_bytes: int = 1_048_576
    #: How long to wait for the target to take a connection: clients wait about as long for theirs.
    connect_timeout_ms: int = 10_000
    #: How long one side may still be silent after the other has ended its half of a connection.
    half_closed_timeout_ms: int = 60_000
    #: How long connections may bring away what they hold when the proxy ends.
    close_timeout_ms: int = 1_000
    #: TLS towards the brokers, which are verified by the names that they advertise: True, a `Tls`,
    #: or an `ssl.SSLContext`. Clients speak to the proxy in the clear.
    tls: AnyTls = False
    #: Who the proxy says that it is, on each connection to a broker; all clients are then this
    #: user, and say nothing themselves.
    sasl: Sasl | None = field(default=None, repr=False)
    #: Log and record secrets as they are, instead of asterisks.
    show_secrets: bool = False

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        check_whole_number("first_broker_port", self.first_broker_port, 0, _LAST_PORT)
        check_tls(self.tls)
        check_sasl(self.sasl)

    def advertised_host_for(self, listen: Address) -> str:
        """The host that clients are told when addresses are rewritten.

        Raises ConfigurationError when `listen` names none to which a client can connect.
        """
        host = self.advertised_host or listen.host
        if host in _WILDCARDS:
            raise ConfigurationError(
                f"{host!r} stands for every address of this machine, to which no client can "
                "connect; name one with advertised_host (--advertised-host)"
            )
        return host
