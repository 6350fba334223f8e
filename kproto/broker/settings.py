"""The broker's settings: every limit by name, with its default and the reason for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..protocol.framing import DEFAULT_MAX_FRAME_BYTES
from ..protocol.sasl import MAX_TOKEN_BYTES, BearerValidator
from ..wire.checks import check_least, check_whole_number
from ..wire.errors import ConfigurationError
from .authorizer import Acl
from .consumer_group_settings import ASSIGNORS, check_consumer_groups, rebalance_protocols
from .listeners import Listener, check_names
from .log_escaping import is_encodable
from .releases import Release, check_release
from .replica_selector import check_selector
from .security.users import check_users

__all__ = ["BrokerSettings"]

#: Settings of the listener that a broker has if no others are set, with their defaults.
_ADDRESS: Final = {
    "host": "127.0.0.1",
    "port": 0,
    "advertised_host": None,
    "advertised_port": None,
}

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
    "max_incremental_fetch_session_cache_slots": 0,
    "min_incremental_fetch_session_eviction_ms": 0,
    "offsets_topic_num_partitions": 1,
    "offsets_retention_minutes": 1,
    "offsets_retention_check_interval_ms": 1,
    "offset_metadata_max_bytes": 0,
    "idle_timeout_ms": 1,
    "quota_window_num": 2,
    "quota_window_size_seconds": 1,
    "max_throttle_ms": 1,
    "tls_handshake_timeout_ms": 1,
    "sasl_max_receive_bytes": 1,
    "sasl_session_lifetime_ms": 0,
    "delegation_token_max_lifetime_ms": 1,
    "delegation_token_expiry_time_ms": 1,
    "delegation_token_kept_ms": 0,
    "group_initial_rebalance_delay_ms": 0,
    "group_min_session_timeout_ms": 1,
    "group_max_session_timeout_ms": 1,
    "group_max_size": 1,
    "group_new_member_join_timeout_ms": 1,
    "group_consumer_session_timeout_ms": 1,
    "group_consumer_min_session_timeout_ms": 1,
    "group_consumer_max_session_timeout_ms": 1,
    "group_consumer_heartbeat_interval_ms": 1,
    "group_consumer_min_heartbeat_interval_ms": 1,
    "group_consumer_max_heartbeat_interval_ms": 1,
    "group_consumer_max_size": 1,
    "group_consumer_assignment_interval_ms": 0,
    "group_consumer_regex_refresh_interval_ms": 10_000,
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
    #: Where to listen, each with its own rules; empty for one without TLS and SASL, at `host` and
    #: `port` above. The first is `Broker.bootstrap`.
    listeners: tuple[Listener, ...] = ()
    #: Passwords by user, for PLAIN and SCRAM.
    users: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    #: Says whom a token of OAUTHBEARER stands for, or raises AuthenticationError; it runs in a
    #: thread. None for Kafka's tokens without a signature, which anybody can make.
    validate_token: BearerValidator | None = field(default=None, repr=False)
    #: How long a client that came in by SASL may go on before it authenticates again, where what
    #: it showed does not end sooner; 0 for ever (connections.max.reauth.ms).
    sasl_session_lifetime_ms: int = 0
    #: Largest request before a client is authenticated (sasl.server.max.receive.size).
    sasl_max_receive_bytes: int = MAX_TOKEN_BYTES
    #: How long a TLS handshake may take: a second would do, slow machines take a few.
    tls_handshake_timeout_ms: int = 10_000
    #: What delegation tokens are made with (delegation.token.secret.key); None for no tokens.
    delegation_token_secret_key: str | None = field(default=None, repr=False)
    #: The longest life of a token, by renewals (delegation.token.max.lifetime.ms): seven days.
    delegation_token_max_lifetime_ms: int = 604_800_000
    #: How long a token is good before it is renewed (delegation.token.expiry.time.ms): a day.
    delegation_token_expiry_time_ms: int = 86_400_000
    #: How long a token that has ended is told from one that never was; Kafka looks for them as
    #: often (delegation.token.expiry.check.interval.ms).
    delegation_token_kept_ms: int = 3_600_000
    #: The broker's id; Kafka's examples of one node use 1.
    node_id: int = 1
    #: Where the broker stands, for clients that would rather read near by (broker.rack, KIP-392).
    rack: str | None = None
    #: Id of the cluster; None for a new random one, as when Kafka's storage is formatted.
    cluster_id: str | None = None
    #: Partitions of a topic for which nobody says how many (Kafka's num.partitions).
    num_partitions: int = 1
    #: Replicas of a topic for which nobody says how many (default.replication.factor). None for
    #: three, or as many as there are brokers. Kafka has 1; with that, each broker that is stopped
    #: leaves partitions without a leader, which a test of several brokers seldom means.
    default_replication_factor: int | None = None
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
    #: How many clients may have a fetch session (KIP-227), which takes about 0.5 KB a partition
    #: (max.incremental.fetch.session.cache.slots). With 0 all name all partitions each time.
    max_incremental_fetch_session_cache_slots: int = 1000
    #: How long a fetch session has its place for sure, after it began and after it was used
    #: (min.incremental.fetch.session.eviction.ms).
    min_incremental_fetch_session_eviction_ms: int = 120_000
    #: Who tells consumers to read from another replica than the leader: None for nobody, as in
    #: Kafka, or RackAwareReplicaSelector for one in their rack (replica.selector.class).
    replica_selector: str | None = None
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
    #: Partitions of `__consumer_offsets`, whose leaders coordinate groups
    #: (offsets.topic.num.partitions).
    offsets_topic_num_partitions: int = 50
    #: How long committed offsets are kept, once their group is empty or, of simple consumers, after
    #: the commit (offsets.retention.minutes, KIP-211): seven days.
    offsets_retention_minutes: int = 10_080
    #: How long a group is kept that has neither members nor offsets: Kafka, too, finds it only when
    #: it looks, this often (offsets.retention.check.interval.ms).
    offsets_retention_check_interval_ms: int = 600_000
    #: The longest metadata of a commit, in characters, whatever Kafka's name for it says
    #: (offset.metadata.max.bytes).
    offset_metadata_max_bytes: int = 4096
    #: How long the first rebalance of a group waits for more members, and again for as long when
    #: some come (group.initial.rebalance.delay.ms). Kafka has 3000, for services whose instances
    #: start one after the other; a test would wait that long for each group.
    group_initial_rebalance_delay_ms: int = 0
    #: The shortest session that a member may ask for (group.min.session.timeout.ms).
    group_min_session_timeout_ms: int = 6_000
    #: The longest (group.max.session.timeout.ms): half an hour, for members that are long at work.
    group_max_session_timeout_ms: int = 1_800_000
    #: How many members a group may have (group.max.size); Kafka has no bound either.
    group_max_size: int = 2_147_483_647
    #: How long a new member stays that waits for its first generation, in which it cannot send
    #: heartbeats; Kafka has these five minutes without a setting.
    group_new_member_join_timeout_ms: int = 300_000
    #: Which protocols groups may be of, `classic` and `consumer`
    #: (group.coordinator.rebalance.protocols); None for what the release has: both since 4.0.
    group_coordinator_rebalance_protocols: tuple[str, ...] | None = None
    #: How long a member of the consumer protocol (KIP-848) is a member without a heartbeat
    #: (group.consumer.session.timeout.ms): the broker says so, not the member.
    group_consumer_session_timeout_ms: int = 45_000
    #: The shortest session (group.consumer.min.session.timeout.ms).
    group_consumer_min_session_timeout_ms: int = 45_000
    #: The longest (group.consumer.max.session.timeout.ms).
    group_consumer_max_session_timeout_ms: int = 60_000
    #: How often members of the consumer protocol send heartbeats, and so how soon they hear of a
    #: change (group.consumer.heartbeat.interval.ms): a third of the session and less.
    group_consumer_heartbeat_interval_ms: int = 5_000
    #: The shortest interval (group.consumer.min.heartbeat.interval.ms).
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    #: The longest (group.consumer.max.heartbeat.interval.ms).
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    #: How many members a group of the consumer protocol may have (group.consumer.max.size).
    group_consumer_max_size: int = 2_147_483_647
    #: The assignors of the coordinator, the first for groups that name none
    #: (group.consumer.assignors).
    group_consumer_assignors: tuple[str, ...] = ASSIGNORS
    #: How long after one assignment of a group the next is made
    #: (group.consumer.assignment.interval.ms, KIP-1263). Kafka has 1000 since 4.3, to make one of
    #: many changes; a test would wait that long for each.
    group_consumer_assignment_interval_ms: int = 0
    #: How often expressions are matched against topics again, besides when there are new ones
    #: (group.consumer.regex.refresh.interval.ms).
    group_consumer_regex_refresh_interval_ms: int = 600_000
    #: Which groups may change their protocol while they have members
    #: (group.consumer.migration.policy): disabled, upgrade (to consumer), downgrade, bidirectional.
    group_consumer_migration_policy: str = "bidirectional"
    #: A connection on which nothing was heard for so long is closed (connections.max.idle.ms).
    idle_timeout_ms: int = 600_000
    #: Take the versions of this release alone, such as "0.9", "3.9.2" or "4.4", or these by api
    #: key; None for all. Before 0.10 no broker answered ApiVersions.
    release: Release | None = field(default=None, hash=False)
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
    #: Over how many windows a rate is taken for a quota (quota.window.num).
    quota_window_num: int = 11
    #: How long each of them is (quota.window.size.seconds).
    quota_window_size_seconds: int = 1
    #: The longest time that a quota makes a client wait. Kafka has no such bound; a test that
    #: exceeds a small quota by far shall end all the same, within the patience of a client.
    max_throttle_ms: int = 30_000

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        if self.default_replication_factor is not None:
            check_whole_number("default_replication_factor", self.default_replication_factor, 1)
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ConfigurationError(
                f"group_min_session_timeout_ms is {self.group_min_session_timeout_ms}, above "
                f"group_max_session_timeout_ms, {self.group_max_session_timeout_ms}: no member "
                "could join"
            )
        check_consumer_groups(self)
        check_users(self.users)
        check_selector(self.replica_selector)
        check_release(self.release)
        key: object = self.delegation_token_secret_key
        if key is not None and not (isinstance(key, str) and key and is_encodable(key)):
            raise ConfigurationError(
                "delegation_token_secret_key is empty or no text that UTF-8 can carry: give one,"
                " or None"
            )
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
        object.__setattr__(self, "listeners", tuple(self.listeners))
        object.__setattr__(self, "group_consumer_assignors", tuple(self.group_consumer_assignors))
        check_names(self.listeners)
        if self.listeners:
            self._refuse_two_addresses()
        else:
            self._plain_listener()  # which looks at the address

    def _refuse_two_addresses(self) -> None:
        for name, default in _ADDRESS.items():
            if getattr(self, name) != default:
                raise ConfigurationError(
                    f"{name} is set and listeners too, which have it themselves; set it there"
                )

    def _plain_listener(self) -> Listener:
        return Listener(
            host=self.host,
            port=self.port,
            advertised_host=self.advertised_host,
            advertised_port=self.advertised_port,
        )

    @property
    def rebalance_protocols(self) -> tuple[str, ...]:
        """The protocols that groups may be of: those that are set, or those of the release."""
        return rebalance_protocols(self.group_coordinator_rebalance_protocols, self.release)

    @property
    def has_consumer_protocol(self) -> bool:
        """Whether groups may be of the consumer protocol (KIP-848)."""
        return "consumer" in self.rebalance_protocols

    @property
    def all_listeners(self) -> tuple[Listener, ...]:
        """The listeners that a broker has: those that are set, or the one of `host` and `port`."""
        return self.listeners or (self._plain_listener(),)
