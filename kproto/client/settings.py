"""The client's settings: every limit by name, with its default and the reason for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from ..protocol.framing import DEFAULT_MAX_FRAME_BYTES
from ..records import MAX_DECOMPRESSED_BYTES
from ..security.mechanisms import Sasl, check_sasl
from ..security.tls import AnyTls, check_tls
from ..wire.checks import check_least
from ..wire.errors import ConfigurationError
from .observing.hooks import Hooks, check_hooks
from .release import release_called

__all__ = ["Address", "ClientSettings", "RecoveryStrategy", "parse_bootstrap"]

#: What to do when no broker that is known can be reached.
RecoveryStrategy: TypeAlias = Literal["rebootstrap", "none"]

_DEFAULT_PORT: Final = 9092
_PORT_DIGITS: Final = 5


#: Settings that count something, with the least that works.
_LEAST: Final = {
    "connect_timeout_ms": 1,
    "connect_timeout_max_ms": 1,
    "reconnect_backoff_ms": 0,
    "reconnect_backoff_max_ms": 0,
    "max_idle_ms": 0,
    "throttle_max_ms": 0,
    "request_timeout_ms": 1,
    "delivery_timeout_ms": 1,
    "error_flush_ms": 1,
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 1,
    "metadata_max_age_ms": 1,
    "metadata_recovery_rebootstrap_trigger_ms": 0,
    "topic_timeout_ms": 1,
    "max_frame_bytes": 1,
    "max_decompressed_bytes": 1,
    "max_in_flight": 1,
    "max_request_bytes": 1,
}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How a `Client` behaves. Times are in ms, sizes in bytes."""

    #: Names this client in the broker's logs, quotas and metrics.
    client_id: str = "kproto"
    #: Where this client stands: brokers then name a replica near by to read from (client.rack,
    #: KIP-392).
    rack: str | None = None
    #: The release of the brokers, such as "0.9" or "2.8", for those before 0.10, which cannot tell
    #: what they take. From 0.10 on it holds the client to what that release takes.
    broker_version: str | None = None
    #: True for TLS with what this machine trusts, a `Tls` to say more, or an `ssl.SSLContext`; the
    #: broker is verified, unless a `Tls` or the context says otherwise.
    tls: AnyTls = False
    #: Who this client is: `Plain`, `ScramSha512`, `OAuthBearer`, or what has the form of `Sasl`.
    sasl: Sasl | None = field(default=None, repr=False)
    #: To open a TCP connection and to agree on versions: a broker that is up does so at once, a
    #: lost packet or two and a TLS handshake fit in. As long again to get a token, and as long to
    #: authenticate.
    connect_timeout_ms: int = 10_000
    #: It doubles with each attempt in a row that a broker was too slow for, up to this (KIP-601): a
    #: network that is overloaded needs more time, not more attempts.
    connect_timeout_max_ms: int = 30_000
    #: Wait before a broker that could not be reached is tried again; doubles with each further
    #: failure, with jitter of a fifth (KIP-144, KIP-580), so that one that comes back is not
    #: trampled down.
    reconnect_backoff_ms: int = 50
    #: The longest wait between two attempts to reach a broker.
    reconnect_backoff_max_ms: int = 1_000
    #: A connection that nobody has used for so long is closed, and opened again when it is needed.
    #: Brokers close one after 10 minutes (connections.max.idle.ms): the client is a minute earlier,
    #: so that no request meets a connection that the broker is closing. 0: never.
    max_idle_ms: int = 540_000
    #: The longest that one answer may have a connection wait (KIP-219). Brokers ask for no more
    #: than their quota windows, 11 s by default: what is beyond this is a mistake, and no reason to
    #: stop a client.
    throttle_max_ms: int = 60_000
    #: From writing a request to its response. Brokers hold a Produce for up to 30 s.
    request_timeout_ms: int = 40_000
    #: One operation with all its retries, such as an acknowledged send (Java's delivery timeout).
    delivery_timeout_ms: int = 120_000
    #: When a block `async with producer` ends with an exception: how long what was given may still
    #: be sent, so that a broker that is away does not hide the exception.
    error_flush_ms: int = 1_000
    #: Wait before the first retry; doubles with each further one, with jitter of a fifth.
    retry_backoff_ms: int = 100
    #: The longest wait between two retries.
    retry_backoff_max_ms: int = 1_000
    #: Metadata older than this is asked for again before it is used.
    metadata_max_age_ms: int = 300_000
    #: When no broker that is known can be reached, or metadata says that the client must: go back
    #: to the servers it was given, looking up their names anew (`rebootstrap`), or not (`none`).
    #: Behind those names other brokers may be by then (KIP-899).
    metadata_recovery_strategy: RecoveryStrategy = "rebootstrap"
    #: So long no metadata came, though it was asked for: every connection is closed, and the client
    #: begins anew with the servers it was given (KIP-1102).
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    #: How long a topic or leader that is not known yet is asked for: one just created takes a
    #: moment to be known everywhere.
    topic_timeout_ms: int = 5_000
    #: Largest response that is read; a larger one ends the connection with an error.
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    #: Largest decompressed size of one batch that is read; a larger one is a CorruptBatchError, for
    #: a batch of a few KB can stand for gigabytes.
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
    #: Largest request that the producer makes of several batches; one batch alone may be larger.
    #: Brokers refuse requests over 100 MiB (socket.request.max.bytes).
    max_request_bytes: int = 16_777_216
    #: Requests on one connection that wait for a response; more wait their turn here. Brokers
    #: work on one request of a connection at a time, so more would only queue there.
    max_in_flight: int = 16
    #: Let brokers remember what a consumer reads (KIP-227): a fetch then names what has changed.
    fetch_sessions: bool = True
    #: Negotiate versions that the definitions mark as unstable.
    unstable_versions: bool = False
    #: Is told what the client does, and may change records on their way.
    hooks: Hooks | None = None

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        if not isinstance(self.client_id, str):
            raise ConfigurationError(f"client_id is {self.client_id!r}; it must be a str")
        if self.rack is not None and not isinstance(self.rack, str):
            raise ConfigurationError(f"rack is {self.rack!r}; it must be a str, or None")
        if self.metadata_recovery_strategy not in get_args(RecoveryStrategy):
            raise ConfigurationError(
                f"metadata_recovery_strategy is {self.metadata_recovery_strategy!r}; it must be "
                "'rebootstrap' or 'none'"
            )
        if self.broker_version is not None:
            if not isinstance(self.broker_version, str):
                raise ConfigurationError(
                    f"broker_version is {self.broker_version!r}; it must be a str such as '0.9'"
                )
            release_called(self.broker_version)
        check_tls(self.tls)
        check_sasl(self.sasl)
        check_hooks(self.hooks)


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_bootstrap(servers: str | Sequence[str]) -> list[Address]:
    """`host:port,host:port`, or a list of such, as addresses. IPv6 stands in brackets.

    Raises ConfigurationError, which quotes the part that is wrong.
    """
    if isinstance(servers, str):
        parts = servers.split(",")
    elif isinstance(servers, Iterable):
        parts = list(servers)
    else:
        raise ConfigurationError(f"{servers!r} is no address of a broker; write 'host:port'")
    for part in parts:
        if not isinstance(part, str):
            raise ConfigurationError(f"{part!r} is no address of a broker; write 'host:port'")
    addresses = [_parse_address(part.strip()) for part in parts if part.strip()]
    if not addresses:
        raise ConfigurationError("no bootstrap server is given; write host:port")
    return addresses


def _parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if text.startswith("[") and text.endswith("]"):
        host, colon, port = text, "", ""
    elif not colon:
        host, port = text, ""
    number = -1 if colon else _DEFAULT_PORT
    if len(port) <= _PORT_DIGITS and port.isascii() and port.isdigit():
        number = int(port)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        number = -1
    if not host or not 0 < number < 65_536:
        raise ConfigurationError(
            f"{text!r} is no address of a broker; write host:port, and [address]:port for IPv6"
        )
    return Address(host, number)
