"""The broker's settings: every limit by name, with its default and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..protocol.framing import DEFAULT_MAX_FRAME_BYTES
from ..wire.checks import check_least, check_whole_number
from ..wire.errors import ConfigurationError
from .authorizer import Acl

__all__ = ["BrokerSettings"]

_WILDCARDS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
_LAST_PORT: Final = 65_535

#: Settings that count something, with the least that works.
_LEAST: Final = {
    "node_id": 0,
    "num_partitions": 1,
    "max_partitions": 1,
    "max_frame_bytes": 1,
    "message_max_bytes": 1,
    "fetch_max_bytes": 1,
    "max_queued_bytes": 1,
    "max_unsent_bytes": 1,
    "max_stored_bytes": 1,
    "retention_check_interval_ms": 1,
    "producer_id_expiration_ms": 1,
    "idle_timeout_ms": 1,
}


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """How a `Broker` behaves. Times are in ms, sizes in bytes. Raises ConfigurationError."""

    #: Where to listen. A broker for tests is not for the network, so: this machine only.
    host: str = "127.0.0.1"
    #: 0 lets the system choose a free port; `Broker.bootstrap` then names it.
    port: int = 0
    #: The name that clients are told to connect to; None for `host`. Needed when `host` stands
    #: for all addresses of the machine, as no client can connect to that.
    advertised_host: str | None = None
    #: The port that clients are told to connect to; None for the one that is listened at. Needed
    #: behind a proxy or where ports are forwarded, as between containers.
    advertised_port: int | None = None
    #: The broker's id; Kafka's examples of one node use 1.
    node_id: int = 1
    #: Id of the cluster; None for a new random one, as when Kafka's storage is formatted.
    cluster_id: str | None = None
    #: Partitions of a topic for which nobody says how many (Kafka's num.partitions).
    num_partitions: int = 1
    #: Create a topic when a client asks for its metadata. Off, unlike Kafka's: in a test a
    #: misspelt name shall be an error.
    auto_create_topics: bool = False
    #: Most partitions that one request may create; Kafka's controllers refuse more than 10,000.
    max_partitions: int = 10_000
    #: Largest request that is read; a larger one ends its connection (socket.request.max.bytes).
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    #: Largest record batch of a topic that does not say otherwise (message.max.bytes).
    message_max_bytes: int = 1_048_588
    #: Most bytes of records in one fetch response, whatever the client allows (fetch.max.bytes).
    fetch_max_bytes: int = 57_671_680
    #: Requests of one connection that wait for their turn; with more, nothing is read from it.
    max_queued_bytes: int = 4_194_304
    #: Responses that a client has not taken yet; with more, its next request is not worked on.
    max_unsent_bytes: int = 4_194_304
    #: What all logs together may take in memory; a Produce beyond is KAFKA_STORAGE_ERROR. 1 GiB
    #: is more than tests store, and leaves room for them where continuous integration has 4 GB.
    max_stored_bytes: int = 1_073_741_824
    #: How long records stay that were older than retention.ms when they came: Kafka, too, finds
    #: them only when it looks, this often (log.retention.check.interval.ms).
    retention_check_interval_ms: int = 300_000
    #: How long a partition remembers an idempotent producer that writes no more, about 1.5 KB each:
    #: after a day nothing is sent again (producer.id.expiration.ms).
    producer_id_expiration_ms: int = 86_400_000
    #: A connection on which nothing was heard for so long is closed (connections.max.idle.ms).
    idle_timeout_ms: int = 600_000
    #: Also take the versions that the definitions mark as unstable.
    unstable_versions: bool = False
    #: Ask for rights, as Kafka with its StandardAuthorizer (authorizer.class.name). Off, as there.
    authorizer: bool = False
    #: Principals that may do everything, such as `User:admin` (super.users).
    super_users: tuple[str, ...] = ()
    #: The ACLs to begin with, as `Acl` or as text: `allow User:alice read topic orders`.
    acls: tuple[Acl | str, ...] = ()
    #: Whether everybody may do everything with a resource that no ACL is about; Kafka says no
    #: (allow.everyone.if.no.acl.found).
    allow_everyone_if_no_acl_found: bool = False

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        check_whole_number("port", self.port, 0, _LAST_PORT)
        if self.advertised_port is not None:
            check_whole_number("advertised_port", self.advertised_port, 1, _LAST_PORT)
        if (self.super_users or self.acls) and not self.authorizer:
            what = "super_users" if self.super_users else "acls"
            raise ConfigurationError(f"{what} count for nothing without authorizer=True; set that")
        for principal in self.super_users:
            kind, _, name = principal.partition(":")
            if not (kind and name):
                raise ConfigurationError(
                    f"super_users has {principal!r}, which is not of the form Type:name, such as "
                    "User:admin"
                )
        acls = tuple(Acl.parse(acl) if isinstance(acl, str) else acl for acl in self.acls)
        object.__setattr__(self, "acls", acls)
        if self.advertised_host is None and self.host in _WILDCARDS:
            raise ConfigurationError(
                f"host {self.host!r} stands for every address of this machine, to which no client "
                "can connect; name one with advertised_host"
            )
