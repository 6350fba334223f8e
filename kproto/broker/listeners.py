"""Defines a broker's listeners, and the endpoints that they advertise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ..wire.checks import check_whole_number
from ..wire.errors import ConfigurationError
from .security.sasl_session import MECHANISMS
from .security.server_tls import ServerTls

__all__ = ["PLAINTEXT", "Endpoint", "Listener", "check_names"]

_WILDCARDS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
_LAST_PORT: Final = 65_535

PLAINTEXT: Final = "PLAINTEXT"

#: Kafka's security protocols, by whether the listener uses TLS, and whether it uses SASL.
_PROTOCOLS: Final = {
    (False, False): PLAINTEXT,
    (True, False): "SSL",
    (False, True): "SASL_PLAINTEXT",
    (True, True): "SASL_SSL",
}


class Endpoint(NamedTuple):
    """Holds the address that a node advertises for one listener.

    `port` may be 0 until the node listens. Responses contain the endpoints for the listener that
    the client connected to.
    """

    node_id: int
    host: str
    port: int
    listener: str = PLAINTEXT
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """Configures a listener. Raises ConfigurationError for invalid settings.

    If `tls` is set, the listener uses TLS. If `mechanisms` is not empty, clients must authenticate
    by one of these SASL mechanisms: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. Responses to
    clients of the listener contain the addresses that the nodes advertise for this listener.
    """

    #: The listener name: one of Kafka's four security protocols, or a name of your own.
    name: str = PLAINTEXT
    #: The address to listen on. A broker for tests is local, so the default is this machine only.
    host: str = "127.0.0.1"
    #: The port to listen on; 0 lets the system choose a free port, see `Broker.bootstrap_of`.
    port: int = 0
    #: The host that clients connect to; None for `host`.
    advertised_host: str | None = None
    #: The port that clients connect to; None for the bound port.
    advertised_port: int | None = None
    tls: ServerTls | None = None
    mechanisms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanisms", tuple(self.mechanisms))
        check_whole_number("port", self.port, 0, _LAST_PORT)
        if self.advertised_port is not None:
            check_whole_number("advertised_port", self.advertised_port, 1, _LAST_PORT)
        if self.advertised_host is None and self.host in _WILDCARDS:
            raise ConfigurationError(
                f"host {self.host!r} stands for every address of this machine, to which no client "
                "can connect; name one with advertised_host"
            )
        for (
            mechanism
        ) in self.mechanisms:  # a str instead of a tuple gives letters, which are unknown
            if mechanism not in MECHANISMS:
                raise ConfigurationError(
                    f"listener {self.name!r}: SASL mechanism {mechanism!r} is not known: take one"
                    f" of {', '.join(MECHANISMS)}"
                )
        self._check_name()

    def _check_name(self) -> None:
        if not self.name:
            raise ConfigurationError("a listener has no name; give it one")
        if self.name in _PROTOCOLS.values() and self.name != self.security_protocol:
            raise ConfigurationError(
                f"listener {self.name!r} has the security protocol {self.security_protocol} by its"
                " tls and mechanisms: change those, or give it another name"
            )

    @property
    def security_protocol(self) -> str:
        """Returns the value of security.protocol that clients of this listener need."""
        return _PROTOCOLS[self.tls is not None, bool(self.mechanisms)]


def check_names(listeners: tuple[Listener, ...]) -> None:
    """Raises ConfigurationError if two listeners have the same name."""
    names = [listener.name for listener in listeners]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"two listeners are called {name!r}; give them other names")
