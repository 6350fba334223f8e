"""The settings of a client, with their defaults and the reasons for the defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from ..protocol.framing import DEFAULT_MAX_FRAME_BYTES
from ..records import MAX_DECOMPRESSED_BYTES
from ..security.sasl import Sasl, check_sasl
from ..security.tls import AnyTls, check_tls
from ..wire.checks import check_least
from ..wire.errors import ConfigurationError
from ..wire.listener_prefix import prefix_contradiction, split_prefix
from .observing.hooks import Hooks, check_hooks
from .release import resolve_release

__all__ = [
    "Address",
    "ClientSettings",
    "RecoveryStrategy",
    "contradicting_prefixes",
    "parse_bootstrap",
]

#: The recovery if no known broker can be reached (KIP-899).
RecoveryStrategy: TypeAlias = Literal["rebootstrap", "none"]

_DEFAULT_PORT: Final = 9092
_PORT_DIGITS: Final = 5


#: The least value of each whole-number setting.
_LEAST: Final = {
    "connect_timeout_ms": 1,
    "connect_timeout_max_ms": 1,
    "connection_attempt_delay_ms": 1,
    "reconnect_backoff_ms": 0,
    "reconnect_backoff_max_ms": 0,
    "connections_max_idle_ms": 0,
    "throttle_max_ms": 0,
    "request_timeout_ms": 1,
    "delivery_timeout_ms": 1,
    "api_timeout_ms": 1,
    "error_flush_ms": 1,
    "cancelled_close_ms": 0,
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 1,
    "metadata_max_age_ms": 1,
    "metadata_recovery_rebootstrap_trigger_ms": 0,
    "metadata_wait_ms": 1,
    "unknown_topic_wait_ms": 1,
    "max_frame_bytes": 1,
    "max_decompressed_bytes": 1,
    "max_in_flight": 1,
    "max_request_bytes": 1,
}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of a `Client`. Times are in ms, sizes in bytes."""

    #: The name of this client in the logs, quotas and metrics of brokers.
    client_id: str = "kproto"
    #: The rack of this client: brokers then name a nearby replica to read from (client.rack,
    #: KIP-392).
    rack: str | None = None
    #: The release of the brokers, such as "0.9" or "2.8". Brokers before 0.10 require it, because
    #: they cannot report their API versions. For later brokers it limits the client to the API
    #: versions of that release.
    broker_version: str | None = None
    #: True for TLS with the trusted certificates of this machine, a `Tls` for more settings, or an
    #: `ssl.SSLContext`. The client verifies the broker, unless the `Tls` or the context turns that
    #: off.
    tls: AnyTls = False
    #: The credentials: `Plain`, `ScramSha512`, `OAuthBearer`, or an object of the protocol `Sasl`.
    sasl: Sasl | None = field(default=None, repr=False)
    #: Time to open a TCP connection, to finish the TLS handshake and to negotiate API versions. A
    #: running broker answers at once; 10 s allow for one or two lost packets. Fetching a token and
    #: authenticating may each take as long again.
    connect_timeout_ms: int = 10_000
    #: The connect timeout doubles with each consecutive attempt that timed out, up to this limit
    #: (KIP-601): an overloaded network needs more time, not more attempts.
    connect_timeout_max_ms: int = 30_000
    #: If any broker can answer a request, such as the bootstrap servers: how long the connection to
    #: one broker may take before the client also tries the next broker. The client uses the first
    #: broker that answers, and ends the other attempts. A running broker answers sooner; TCP
    #: repeats a lost SYN after 1 s.
    connection_attempt_delay_ms: int = 1_000
    #: Backoff before the client connects again to a broker that it could not reach. It doubles with
    #: each further failure, with a jitter of 20 %, so that a restarted broker is not overloaded
    #: (KIP-144, KIP-580).
    reconnect_backoff_ms: int = 50
    #: The longest backoff between two attempts to connect.
    reconnect_backoff_max_ms: int = 1_000
    #: A connection that was idle for this long is closed, and reopened when it is needed. Brokers
    #: close an idle connection after 10 minutes (connections.max.idle.ms): the client closes a
    #: minute earlier, so that no request meets a connection that the broker is closing. 0: never.
    connections_max_idle_ms: int = 540_000
    #: The longest throttle time that the client obeys (KIP-219). Brokers request at most their
    #: quota windows, 11 s by default: a longer time is a mistake, and must not stop a client.
    throttle_max_ms: int = 60_000
    #: The longest time from the write of a request to its response. The default exceeds the 30 s
    #: for which brokers may hold a Produce.
    request_timeout_ms: int = 40_000
    #: The longest time from the append of a record to its ack, with all retries
    #: (delivery.timeout.ms). Before the append, a call may wait equally long for metadata and
    #: memory.
    delivery_timeout_ms: int = 120_000
    #: How long consumers, commits, and calls such as `topic` and `list_offsets` retry
    #: (default.api.timeout.ms). The default equals that of `delivery_timeout_ms`: an outage that
    #: fails no send fails no consumer.
    api_timeout_ms: int = 120_000
    #: How long a producer still sends, and a group consumer still commits, when its `async with`
    #: block ends with an exception. It is short, because a broker that is down must not delay the
    #: exception.
    error_flush_ms: int = 1_000
    #: How long a cancelled `async with` block or `close` may take to end, besides `error_flush_ms`.
    #: Then callbacks that still run, such as `on_revoked`, are cancelled. 5 s let a callback save
    #: its state, and fit into the 30 s after which Kubernetes kills a pod.
    cancelled_close_ms: int = 5_000
    #: Backoff before the first retry; doubles with each further retry, with a jitter of 20 %.
    retry_backoff_ms: int = 100
    #: The longest backoff between two retries.
    retry_backoff_max_ms: int = 1_000
    #: Metadata older than this is refreshed. Calls and sends wait for the refresh, fetches do not.
    metadata_max_age_ms: int = 300_000
    #: The recovery if no known broker can be reached, or if a broker requests it (KIP-1102).
    #: `rebootstrap`: resolve the names of the configured servers again, because they may have other
    #: addresses by then, and connect to them (KIP-899). `none`: keep the known brokers.
    metadata_recovery_strategy: RecoveryStrategy = "rebootstrap"
    #: If requested metadata has not arrived for this long, the client closes every connection and
    #: bootstraps again (KIP-1102).
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    #: How long the client repeats a Metadata request for a topic without a leader: leaders are
    #: elected within seconds. Also how long it repeats the request for an unknown topic, if the
    #: topic existed before, if this client has created the topic, or if the broker may create it.
    metadata_wait_ms: int = 5_000
    #: How long the client repeats a Metadata request for any other topic that the broker does not
    #: know: a new topic reaches all brokers within some 100 ms, and a wrong name is reported soon.
    unknown_topic_wait_ms: int = 1_000
    #: The largest response that is read; a larger one ends the connection with an error.
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    #: The largest decompressed size of one batch that is read; a larger one is a CorruptBatchError,
    #: because a few KB may decompress to gigabytes.
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
    #: The largest request that the producer builds of several batches; a single batch may be
    #: larger. Brokers refuse requests over 100 MiB (socket.request.max.bytes).
    max_request_bytes: int = 16_777_216
    #: The most requests in flight on one connection; the client queues further requests. Brokers
    #: process one request of a connection at a time, so a broker would only queue further requests,
    #: too.
    max_in_flight: int = 16
    #: Use fetch sessions (KIP-227): a fetch then names only the partitions that changed.
    fetch_sessions: bool = True
    #: Negotiate versions that the definitions mark as unstable.
    unstable_versions: bool = False
    #: Observes the client, and may change records.
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
            resolve_release(self.broker_version)
        check_tls(self.tls)
        check_sasl(self.sasl)
        check_hooks(self.hooks)

    @property
    def max_cancelled_close_ms(self) -> int:
        """The longest time in ms that a close may take after its cancellation."""
        return self.error_flush_ms + self.cancelled_close_ms


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """The host and port of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_bootstrap(servers: str | Sequence[str]) -> list[Address]:
    """Parses `host:port,host:port`, or a list of `host:port`; IPv6 addresses are in brackets.

    The default port is 9092. A prefix, as in `SASL_SSL://host:port`, is ignored as by Kafka's
    clients. Raises ConfigurationError if an address is invalid, or if there is none.
    """
    return [_parse_address(part) for part in _split_servers(servers)]


def contradicting_prefixes(servers: str | Sequence[str], settings: ClientSettings) -> list[str]:
    """Returns a text for each address whose prefix contradicts `tls` or `sasl` of the settings."""
    found = []
    for part in _split_servers(servers):
        prefix, address = split_prefix(part)
        fault = prefix_contradiction(
            prefix, tls=settings.tls is not False, sasl=settings.sasl is not None
        )
        if fault:
            found.append(f"{prefix}://{address}: the prefix has no effect, but {prefix} {fault}")
    return found


def _split_servers(servers: str | Sequence[str]) -> list[str]:
    """Returns the addresses, stripped of spaces; raises the errors of `parse_bootstrap`."""
    given: object = servers
    if isinstance(given, Mapping):
        raise ConfigurationError(
            "the bootstrap servers are a mapping; write 'host:port', or pass properties to "
            "Client.from_properties"
        )
    if isinstance(given, str):
        parts = given.split(",")
    elif isinstance(given, Iterable) and not isinstance(given, bytes | bytearray):
        parts = list(given)
    else:
        raise ConfigurationError(f"{servers!r} is no address of a broker; write 'host:port'")
    for part in parts:
        if not isinstance(part, str):
            raise ConfigurationError(f"{part!r} is no address of a broker; write 'host:port'")
    texts = [part.strip() for part in parts if part.strip()]
    if not texts:
        raise ConfigurationError("no bootstrap server is given; write host:port")
    return texts


def _parse_address(text: str) -> Address:
    _, address = split_prefix(text)
    host, colon, port = address.rpartition(":")
    if address.startswith("[") and address.endswith("]"):
        host, colon, port = address, "", ""
    elif not colon:
        host, port = address, ""
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
