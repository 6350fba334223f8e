"""Defines the broker's settings, the default values, and the reasons for the default values."""

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
from .releases import Release, check_release, is_before
from .replica_selector import check_selector
from .security.users import check_users
from .share_group_settings import SHARE_GROUP_LEAST, check_share_groups

__all__ = ["BrokerSettings"]

#: Settings of the default listener, with their defaults.
_ADDRESS: Final = {
    "host": "127.0.0.1",
    "port": 0,
    "advertised_host": None,
    "advertised_port": None,
}

#: Settings that are numbers, with their minimum.
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
    "log_cleaner_backoff_ms": 0,
    "producer_id_expiration_ms": 1,
    "max_incremental_fetch_session_cache_slots": 0,
    "min_incremental_fetch_session_eviction_ms": 0,
    "offsets_topic_num_partitions": 1,
    "offsets_retention_minutes": 1,
    "offsets_retention_check_interval_ms": 1,
    "offset_metadata_max_bytes": 0,
    "transaction_max_timeout_ms": 1,
    "transactional_id_expiration_ms": 1,
    "transaction_state_log_num_partitions": 1,
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
    **SHARE_GROUP_LEAST,
}


_TRANSACTION_VERSIONS: Final = (0, 1, 2)
#: The first release that finalizes transaction.version 2 in new clusters.
_FIRST_RELEASE_OF_TRANSACTION_VERSION: Final = "4.0.0"
#: The first release with the features and levels of `features.FEATURES`.
_FIRST_RELEASE_OF_ALL_FEATURES: Final = "4.4.0"
#: The first release that finalizes eligible.leader.replicas.version 1 in new clusters.
_FIRST_RELEASE_OF_ELR: Final = "4.1.0"


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Configures a `Broker`. Times are in ms unless the name has another unit, sizes in bytes.

    The description of a setting has Kafka's name of the setting in parentheses.

    Raises ConfigurationError for invalid or contradictory values.
    """

    #: The address to listen on. A broker for tests is local, so the default is this machine only.
    host: str = "127.0.0.1"
    #: The port to listen on; 0 lets the system choose a free port, see `Broker.bootstrap`.
    port: int = 0
    #: The host that clients connect to; None for `host`. Required if `host` is a wildcard such as
    #: 0.0.0.0, because no client can connect to that.
    advertised_host: str | None = None
    #: The port that clients connect to; None for the bound port. Required behind a proxy, and if a
    #: container forwards another port.
    advertised_port: int | None = None
    #: The listeners, each with its own security protocol; empty for one plaintext listener at
    #: `host` and `port`. `Broker.bootstrap` is the address of the first listener.
    listeners: tuple[Listener, ...] = ()
    #: Passwords by user name, for PLAIN and SCRAM.
    users: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    #: A function that validates an OAUTHBEARER token. It returns the `BearerIdentity` of the token,
    #: or raises AuthenticationError. It runs in a thread. None accepts Kafka's unsecured tokens,
    #: which any client can create for any user.
    validate_token: BearerValidator | None = field(default=None, repr=False)
    #: Maximum time from an authentication until the client must authenticate again; 0 for no limit
    #: (connections.max.reauth.ms). The expiry of the credentials limits this time, too.
    sasl_session_lifetime_ms: int = 0
    #: Largest request of a client that is not authenticated yet (sasl.server.max.receive.size).
    sasl_max_receive_bytes: int = MAX_TOKEN_BYTES
    #: Timeout of a TLS handshake. A handshake usually takes less than a second, and a few
    #: seconds on a slow machine.
    tls_handshake_timeout_ms: int = 10_000
    #: The secret key of delegation tokens (delegation.token.secret.key); None disables them.
    delegation_token_secret_key: str | None = field(default=None, repr=False)
    #: Maximum lifetime of a token with renewals (delegation.token.max.lifetime.ms): seven days.
    delegation_token_max_lifetime_ms: int = 604_800_000
    #: How long a token is valid before it must be renewed (delegation.token.expiry.time.ms): a day.
    delegation_token_expiry_time_ms: int = 86_400_000
    #: How long an expired token is kept, so that requests for it get DELEGATION_TOKEN_EXPIRED.
    #: Kafka removes expired tokens at this interval (delegation.token.expiry.check.interval.ms).
    delegation_token_kept_ms: int = 3_600_000
    #: The node id (node.id); Kafka's configuration for one node has 1.
    node_id: int = 1
    #: The broker's rack, for consumers that fetch from the closest replica (broker.rack, KIP-392).
    rack: str | None = None
    #: The cluster id; None for a new random one, as when Kafka's storage is formatted.
    cluster_id: str | None = None
    #: Default partitions of a topic (num.partitions).
    num_partitions: int = 1
    #: Default replication factor of a topic (default.replication.factor). None for three, or the
    #: number of brokers if that is less. Kafka's default is 1. With 1, each stopped broker leaves
    #: partitions without a leader, which few tests need.
    default_replication_factor: int | None = None
    #: Whether a Metadata request creates missing topics (auto.create.topics.enable). Kafka's
    #: default is true; in a test, a misspelt name should be an error.
    auto_create_topics: bool = False
    #: The log directories that DescribeLogDirs lists (log.dirs). Records are in memory: the names
    #: belong to no folder. With several names, AlterReplicaLogDirs can move a replica.
    log_dirs: tuple[str, ...] = ("/kproto/logs",)
    #: Maximum partitions of a new topic. Kafka's controllers allow 10,000 for one CreateTopics.
    max_partitions: int = 10_000
    #: Maximum size of a request; a larger one closes its connection (socket.request.max.bytes).
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    #: Maximum size of a record batch, unless the topic overrides it (message.max.bytes).
    message_max_bytes: int = 1_048_588
    #: Maximum bytes of records in a fetch response, even if the client allows more
    #: (fetch.max.bytes).
    fetch_max_bytes: int = 57_671_680
    #: Maximum number of fetch sessions (KIP-227); a session takes about 0.5 KB per partition
    #: (max.incremental.fetch.session.cache.slots). With 0, each Fetch names all its partitions.
    max_incremental_fetch_session_cache_slots: int = 1000
    #: How long a fetch session is safe from eviction after its creation
    #: (min.incremental.fetch.session.eviction.ms). After that, a new session with more partitions
    #: can evict it. If a session was not used for this time, any new session can evict it.
    min_incremental_fetch_session_eviction_ms: int = 120_000
    #: The replica selector (replica.selector.class): None for the leader, as in Kafka;
    #: RackAwareReplicaSelector for a replica in the consumer's rack.
    replica_selector: str | None = None
    #: Maximum bytes of a connection's queued requests; above it, the broker stops reading from the
    #: connection.
    max_queued_bytes: int = 4_194_304
    #: Maximum bytes of a connection's responses that the client has not read; above it, the next
    #: request is not processed.
    max_unsent_bytes: int = 4_194_304
    #: Maximum memory of all logs together; above it, Produce returns KAFKA_STORAGE_ERROR. 1 GiB is
    #: more than tests store, and fits into the 4 GB of a continuous integration machine.
    max_stored_bytes: int = 1_073_741_824
    #: How long the log keeps a batch that was already older than retention.ms when it was appended.
    #: Kafka, too, keeps such a batch until the next check (log.retention.check.interval.ms).
    retention_check_interval_ms: int = 300_000
    #: Minimum time between two checks whether a compacted log must be compacted
    #: (log.cleaner.backoff.ms). With 0, each access to the log compacts it if it is due.
    log_cleaner_backoff_ms: int = 15_000
    #: How long a partition keeps the state of an idle idempotent producer, about 1.5 KB each
    #: (producer.id.expiration.ms). No producer retries a batch for longer than a day.
    producer_id_expiration_ms: int = 86_400_000
    #: Partitions of `__consumer_offsets`, whose leaders coordinate groups
    #: (offsets.topic.num.partitions).
    offsets_topic_num_partitions: int = 50
    #: How long a committed offset is kept (offsets.retention.minutes, KIP-211): seven days. In an
    #: empty classic group, the time starts when the last member leaves; in other groups, it starts
    #: at the commit.
    offsets_retention_minutes: int = 10_080
    #: How long a group that has neither members nor offsets is kept. Kafka, too, keeps such a group
    #: until the next check (offsets.retention.check.interval.ms).
    offsets_retention_check_interval_ms: int = 600_000
    #: Maximum length of a commit's metadata (offset.metadata.max.bytes): as in Kafka, in UTF-16
    #: units, not bytes.
    offset_metadata_max_bytes: int = 4096
    #: The finalized level of the feature transaction.version, 0 to 2. None stands for the level of
    #: `release`: 2 since Kafka 4.0, 0 before. With 2, clients bump the epoch at the end of each
    #: transaction (KIP-890).
    transaction_version: int | None = None
    #: Maximum transaction timeout that a producer may request (transaction.max.timeout.ms): a
    #: quarter of an hour, because an open transaction blocks read_committed consumers.
    transaction_max_timeout_ms: int = 900_000
    #: Whether producers may use two-phase commit (transaction.two.phase.commit.enable, KIP-939).
    #: The API is unstable, so `unstable_versions` must be set, too. Kafka 4.4.0 refuses
    #: keepPreparedTxn with UNSUPPORTED_VERSION; this broker follows the KIP.
    transaction_two_phase_commit_enable: bool = False
    #: How long a transactional id is kept without being used (transactional.id.expiration.ms).
    transactional_id_expiration_ms: int = 604_800_000
    #: Partitions of `__transaction_state`, whose leaders coordinate transactional ids
    #: (transaction.state.log.num.partitions).
    transaction_state_log_num_partitions: int = 50
    #: How long the rebalance of an Empty group waits for more members. If a member joins during the
    #: wait, the rebalance waits for the same time again (group.initial.rebalance.delay.ms). Kafka's
    #: default is 3000, for services whose instances start one after the other; a test would wait
    #: that long for each group.
    group_initial_rebalance_delay_ms: int = 0
    #: Minimum session timeout of a member (group.min.session.timeout.ms).
    group_min_session_timeout_ms: int = 6_000
    #: Maximum session timeout (group.max.session.timeout.ms): half an hour, for members with long
    #: processing.
    group_max_session_timeout_ms: int = 1_800_000
    #: Maximum members of a group (group.max.size); Kafka's default has no limit either.
    group_max_size: int = 2_147_483_647
    #: How long a new member may wait for its first generation; it sends no heartbeats before.
    #: Kafka has a constant of five minutes instead of a setting.
    group_new_member_join_timeout_ms: int = 300_000
    #: The group protocols that are enabled, `classic` and `consumer`
    #: (group.coordinator.rebalance.protocols). None enables the protocols that `release` enables by
    #: default: both since Kafka 4.0.
    group_coordinator_rebalance_protocols: tuple[str, ...] | None = None
    #: Session timeout of members of the consumer protocol, KIP-848
    #: (group.consumer.session.timeout.ms). The broker sets it, not the member.
    group_consumer_session_timeout_ms: int = 45_000
    #: Minimum session timeout (group.consumer.min.session.timeout.ms).
    group_consumer_min_session_timeout_ms: int = 45_000
    #: Maximum session timeout (group.consumer.max.session.timeout.ms).
    group_consumer_max_session_timeout_ms: int = 60_000
    #: Heartbeat interval of the consumer protocol (group.consumer.heartbeat.interval.ms). A member
    #: gets a new assignment at its next heartbeat. The interval must be less than the session
    #: timeout.
    group_consumer_heartbeat_interval_ms: int = 5_000
    #: Minimum heartbeat interval (group.consumer.min.heartbeat.interval.ms).
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    #: Maximum heartbeat interval (group.consumer.max.heartbeat.interval.ms).
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    #: Maximum members of a group of the consumer protocol (group.consumer.max.size).
    group_consumer_max_size: int = 2_147_483_647
    #: The server-side assignors; the first is the default of groups (group.consumer.assignors).
    group_consumer_assignors: tuple[str, ...] = ASSIGNORS
    #: Minimum time between two target assignments of a group
    #: (group.consumer.assignment.interval.ms, KIP-1263). Kafka's default is 1000 since 4.3, to
    #: combine many changes; a test would wait that long for each change.
    group_consumer_assignment_interval_ms: int = 0
    #: How often subscribed regular expressions are matched against topics again, even if no topic
    #: was created (group.consumer.regex.refresh.interval.ms).
    group_consumer_regex_refresh_interval_ms: int = 600_000
    #: The allowed conversions of groups that have members (group.consumer.migration.policy):
    #: disabled, upgrade (classic to consumer), downgrade (consumer to classic), bidirectional.
    group_consumer_migration_policy: str = "bidirectional"
    #: Session timeout of members of share groups, KIP-932 (group.share.session.timeout.ms).
    group_share_session_timeout_ms: int = 45_000
    #: Minimum session timeout (group.share.min.session.timeout.ms).
    group_share_min_session_timeout_ms: int = 45_000
    #: Maximum session timeout (group.share.max.session.timeout.ms).
    group_share_max_session_timeout_ms: int = 60_000
    #: Heartbeat interval of share groups (group.share.heartbeat.interval.ms). A member gets a new
    #: assignment at its next heartbeat.
    group_share_heartbeat_interval_ms: int = 5_000
    #: Minimum heartbeat interval (group.share.min.heartbeat.interval.ms).
    group_share_min_heartbeat_interval_ms: int = 5_000
    #: Maximum heartbeat interval (group.share.max.heartbeat.interval.ms).
    group_share_max_heartbeat_interval_ms: int = 15_000
    #: Maximum members of a share group (group.share.max.size).
    group_share_max_size: int = 200
    #: Minimum time between two target assignments of a share group
    #: (group.share.assignment.interval.ms). Kafka's default is 1000, to combine many changes; a
    #: test would wait that long for each change.
    group_share_assignment_interval_ms: int = 0
    #: How often a record is delivered before it is archived (group.share.delivery.count.limit).
    group_share_delivery_count_limit: int = 5
    #: Minimum of share.delivery.count.limit (group.share.min.delivery.count.limit).
    group_share_min_delivery_count_limit: int = 2
    #: Maximum of share.delivery.count.limit (group.share.max.delivery.count.limit).
    group_share_max_delivery_count_limit: int = 10
    #: How long a member holds the acquisition lock of a record
    #: (group.share.record.lock.duration.ms). After that, the record is delivered again.
    group_share_record_lock_duration_ms: int = 30_000
    #: Minimum of share.record.lock.duration.ms (group.share.min.record.lock.duration.ms).
    group_share_min_record_lock_duration_ms: int = 15_000
    #: Maximum of share.record.lock.duration.ms (group.share.max.record.lock.duration.ms).
    group_share_max_record_lock_duration_ms: int = 60_000
    #: Maximum records in flight of a share partition (group.share.partition.max.record.locks).
    group_share_partition_max_record_locks: int = 2_000
    #: Minimum of share.partition.max.record.locks (group.share.min.partition.max.record.locks).
    group_share_min_partition_max_record_locks: int = 100
    #: Maximum of share.partition.max.record.locks (group.share.max.partition.max.record.locks).
    group_share_max_partition_max_record_locks: int = 4_000
    #: Maximum share sessions of a broker (group.share.max.share.sessions).
    group_share_max_share_sessions: int = 2_000
    #: Partitions of `__share_group_state`, whose leaders store the state of share partitions
    #: (share.coordinator.state.topic.num.partitions).
    share_coordinator_state_topic_num_partitions: int = 50
    #: How many ShareUpdate records the share coordinator appends before the next ShareSnapshot
    #: (share.coordinator.snapshot.update.records.per.snapshot).
    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    #: Whether ApiVersions lists GetTelemetrySubscriptions and PushTelemetry (KIP-714), so that
    #: clients push metrics. Kafka lists them only with a metrics reporter that implements
    #: ClientTelemetry. The broker validates pushed metrics, and drops them.
    client_telemetry: bool = False
    #: How long a connection may be idle before the broker closes it (connections.max.idle.ms).
    idle_timeout_ms: int = 600_000
    #: The Kafka release whose API versions the broker supports, such as "0.9", "3.9.2" or "4.4", or
    #: a mapping of version ranges by API key; None for all versions. Releases before 0.10 do not
    #: support ApiVersions.
    release: Release | None = field(default=None, hash=False)
    #: Whether to support API versions that the message definitions mark as unstable
    #: (unstable.api.versions.enable).
    unstable_versions: bool = False
    #: Whether to authorize requests as Kafka's StandardAuthorizer does (authorizer.class.name).
    authorizer: bool = False
    #: Principals that may perform all operations, such as `User:admin` (super.users).
    super_users: tuple[str, ...] = ()
    #: The initial ACLs, as `Acl` or as text: `allow User:alice read topic orders`.
    acls: tuple[Acl | str, ...] = ()
    #: Whether all principals may perform all operations on a resource without ACLs (the config
    #: `allow.everyone.if.no.acl.found`).
    allow_everyone_if_no_acl_found: bool = False
    #: Number of windows over which a quota measures a rate (quota.window.num).
    quota_window_num: int = 11
    #: Length of a window (quota.window.size.seconds).
    quota_window_size_seconds: int = 1
    #: Maximum throttle time of a quota. Kafka has no limit. The limit keeps a test that far exceeds
    #: a small quota within the client's timeouts.
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
        check_share_groups(self)
        version: object = self.transaction_version
        if version is not None and version not in _TRANSACTION_VERSIONS:
            raise ConfigurationError(
                f"transaction_version is {version!r}: take 0, 1 or 2, or None for that of release"
            )
        check_users(self.users)
        check_selector(self.replica_selector)
        check_release(self.release)
        key: object = self.delegation_token_secret_key
        if key is not None and not (isinstance(key, str) and key and is_encodable(key)):
            raise ConfigurationError(
                "delegation_token_secret_key is empty, or not a text that UTF-8 can encode: give a"
                " key, or None"
            )
        if (self.super_users or self.acls) and not self.authorizer:
            what = "super_users" if self.super_users else "acls"
            raise ConfigurationError(f"{what} have no effect without authorizer=True; set that")
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
        object.__setattr__(self, "log_dirs", tuple(self.log_dirs))
        if not self.log_dirs or not all(it.startswith("/") for it in self.log_dirs):
            raise ConfigurationError(
                f"log_dirs is {self.log_dirs!r}; give absolute paths, such as '/kproto/logs'"
            )
        object.__setattr__(self, "group_consumer_assignors", tuple(self.group_consumer_assignors))
        check_names(self.listeners)
        if self.listeners:
            self._refuse_two_addresses()
        else:
            self._plain_listener()  # validates host and port

    def _refuse_two_addresses(self) -> None:
        for name, default in _ADDRESS.items():
            if getattr(self, name) != default:
                raise ConfigurationError(
                    f"{name} is set, and listeners, too: set {name} of each listener instead"
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
        """Returns the enabled group protocols.

        If no protocols are configured, returns the protocols that `release` enables by default.
        """
        return rebalance_protocols(self.group_coordinator_rebalance_protocols, self.release)

    @property
    def has_consumer_protocol(self) -> bool:
        """Returns True if the consumer group protocol (KIP-848) is enabled."""
        return "consumer" in self.rebalance_protocols

    @property
    def transaction_version_level(self) -> int:
        """Returns the finalized level of transaction.version.

        Returns `transaction_version` if it is set, otherwise the level of Kafka's `release`. Level
        0 means that the feature is not finalized.
        """
        if self.transaction_version is not None:
            return self.transaction_version
        return 0 if is_before(self.release, _FIRST_RELEASE_OF_TRANSACTION_VERSION) else 2

    @property
    def has_all_features(self) -> bool:
        """Returns True if the broker lists the features of Kafka 4.4."""
        return not is_before(self.release, _FIRST_RELEASE_OF_ALL_FEATURES)

    @property
    def has_elr(self) -> bool:
        """Returns True if new clusters of the release have eligible leader replicas (KIP-966)."""
        return not is_before(self.release, _FIRST_RELEASE_OF_ELR)

    @property
    def all_listeners(self) -> tuple[Listener, ...]:
        """Returns `listeners`; if there are none, a plaintext listener at `host` and `port`."""
        return self.listeners or (self._plain_listener(),)
