"""Translates the settings of a broker to Kafka's broker configs, as in a server.properties file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from .config_table import BROKER, config_defs
from .listeners import Listener
from .settings import BrokerSettings

__all__ = ["STATIC_CONFIGS", "static_configs"]

#: Kafka's default of group.consumer.regex.refresh.interval.ms.
_REGEX_REFRESH_MS: Final = 600_000

#: The value of each broker config that has a setting. Configs that Kafka's table lacks belong to
#: the authorizer; Kafka describes them only if they are set.
_VALUES: Final[Mapping[str, Callable[[BrokerSettings], object]]] = MappingProxyType(
    {
        "advertised.listeners": lambda it: _advertised_listeners(it.all_listeners),
        "allow.everyone.if.no.acl.found": lambda it: it.allow_everyone_if_no_acl_found or None,
        "authorizer.class.name": lambda it: (
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer" if it.authorizer else ""
        ),
        "auto.create.topics.enable": lambda it: it.auto_create_topics,
        "broker.id": lambda it: it.node_id,
        "broker.rack": lambda it: it.rack,
        "connections.max.idle.ms": lambda it: it.idle_timeout_ms,
        "connections.max.reauth.ms": lambda it: it.sasl_session_lifetime_ms,
        "default.replication.factor": lambda it: it.default_replication_factor or 1,
        "delegation.token.expiry.check.interval.ms": lambda it: it.delegation_token_kept_ms,
        "delegation.token.expiry.time.ms": lambda it: it.delegation_token_expiry_time_ms,
        "delegation.token.max.lifetime.ms": lambda it: it.delegation_token_max_lifetime_ms,
        "delegation.token.secret.key": lambda it: it.delegation_token_secret_key,
        "fetch.max.bytes": lambda it: it.fetch_max_bytes,
        "group.consumer.assignment.interval.ms": lambda it: (
            it.group_consumer_assignment_interval_ms
        ),
        "group.consumer.assignors": lambda it: it.group_consumer_assignors,
        "group.consumer.heartbeat.interval.ms": lambda it: it.group_consumer_heartbeat_interval_ms,
        "group.consumer.max.heartbeat.interval.ms": lambda it: (
            it.group_consumer_max_heartbeat_interval_ms
        ),
        "group.consumer.max.session.timeout.ms": lambda it: (
            it.group_consumer_max_session_timeout_ms
        ),
        "group.consumer.max.size": lambda it: it.group_consumer_max_size,
        "group.consumer.migration.policy": lambda it: it.group_consumer_migration_policy,
        "group.consumer.min.heartbeat.interval.ms": lambda it: (
            it.group_consumer_min_heartbeat_interval_ms
        ),
        "group.consumer.min.session.timeout.ms": lambda it: (
            it.group_consumer_min_session_timeout_ms
        ),
        "group.consumer.regex.refresh.interval.ms": lambda it: (
            # Kafka describes this internal config only if it is set.
            None
            if it.group_consumer_regex_refresh_interval_ms == _REGEX_REFRESH_MS
            else it.group_consumer_regex_refresh_interval_ms
        ),
        "group.consumer.session.timeout.ms": lambda it: it.group_consumer_session_timeout_ms,
        "group.coordinator.rebalance.protocols": lambda it: it.rebalance_protocols,
        "group.initial.rebalance.delay.ms": lambda it: it.group_initial_rebalance_delay_ms,
        "group.max.session.timeout.ms": lambda it: it.group_max_session_timeout_ms,
        "group.max.size": lambda it: it.group_max_size,
        "group.min.session.timeout.ms": lambda it: it.group_min_session_timeout_ms,
        "group.share.assignment.interval.ms": lambda it: it.group_share_assignment_interval_ms,
        "group.share.delivery.count.limit": lambda it: it.group_share_delivery_count_limit,
        "group.share.heartbeat.interval.ms": lambda it: it.group_share_heartbeat_interval_ms,
        "group.share.max.delivery.count.limit": lambda it: it.group_share_max_delivery_count_limit,
        "group.share.max.heartbeat.interval.ms": lambda it: (
            it.group_share_max_heartbeat_interval_ms
        ),
        "group.share.max.partition.max.record.locks": lambda it: (
            it.group_share_max_partition_max_record_locks
        ),
        "group.share.max.record.lock.duration.ms": lambda it: (
            it.group_share_max_record_lock_duration_ms
        ),
        "group.share.max.session.timeout.ms": lambda it: it.group_share_max_session_timeout_ms,
        "group.share.max.share.sessions": lambda it: it.group_share_max_share_sessions,
        "group.share.max.size": lambda it: it.group_share_max_size,
        "group.share.min.delivery.count.limit": lambda it: it.group_share_min_delivery_count_limit,
        "group.share.min.heartbeat.interval.ms": lambda it: (
            it.group_share_min_heartbeat_interval_ms
        ),
        "group.share.min.partition.max.record.locks": lambda it: (
            it.group_share_min_partition_max_record_locks
        ),
        "group.share.min.record.lock.duration.ms": lambda it: (
            it.group_share_min_record_lock_duration_ms
        ),
        "group.share.min.session.timeout.ms": lambda it: it.group_share_min_session_timeout_ms,
        "group.share.partition.max.record.locks": lambda it: (
            it.group_share_partition_max_record_locks
        ),
        "group.share.record.lock.duration.ms": lambda it: it.group_share_record_lock_duration_ms,
        "group.share.session.timeout.ms": lambda it: it.group_share_session_timeout_ms,
        "listeners": lambda it: ",".join(
            f"{one.name}://{one.host}:{one.port}" for one in it.all_listeners
        ),
        "log.cleaner.backoff.ms": lambda it: it.log_cleaner_backoff_ms,
        "log.dirs": lambda it: it.log_dirs,
        "log.retention.check.interval.ms": lambda it: it.retention_check_interval_ms,
        "max.incremental.fetch.session.cache.slots": lambda it: (
            it.max_incremental_fetch_session_cache_slots
        ),
        "message.max.bytes": lambda it: it.message_max_bytes,
        "node.id": lambda it: it.node_id,
        "num.partitions": lambda it: it.num_partitions,
        "offset.metadata.max.bytes": lambda it: it.offset_metadata_max_bytes,
        "offsets.retention.check.interval.ms": lambda it: it.offsets_retention_check_interval_ms,
        "offsets.retention.minutes": lambda it: it.offsets_retention_minutes,
        "offsets.topic.num.partitions": lambda it: it.offsets_topic_num_partitions,
        "process.roles": lambda it: "broker,controller",
        "producer.id.expiration.ms": lambda it: it.producer_id_expiration_ms,
        "quota.window.num": lambda it: it.quota_window_num,
        "quota.window.size.seconds": lambda it: it.quota_window_size_seconds,
        "replica.selector.class": lambda it: it.replica_selector,
        "sasl.server.max.receive.size": lambda it: it.sasl_max_receive_bytes,
        "share.coordinator.snapshot.update.records.per.snapshot": lambda it: (
            it.share_coordinator_snapshot_update_records_per_snapshot
        ),
        "share.coordinator.state.topic.num.partitions": lambda it: (
            it.share_coordinator_state_topic_num_partitions
        ),
        "socket.request.max.bytes": lambda it: it.max_frame_bytes,
        "super.users": lambda it: ";".join(it.super_users) or None,
        "transaction.max.timeout.ms": lambda it: it.transaction_max_timeout_ms,
        "transaction.state.log.num.partitions": lambda it: it.transaction_state_log_num_partitions,
        "transaction.two.phase.commit.enable": lambda it: it.transaction_two_phase_commit_enable,
        "transactional.id.expiration.ms": lambda it: it.transactional_id_expiration_ms,
    }
)

#: The broker configs that have a setting in `BrokerSettings`.
STATIC_CONFIGS: Final = frozenset(_VALUES)


def _advertised_listeners(listeners: tuple[Listener, ...]) -> str | None:
    """Returns the advertised addresses; None if no listener advertises another address."""
    if not any(it.advertised_host or it.advertised_port for it in listeners):
        return None
    return ",".join(
        f"{it.name}://{it.advertised_host or it.host}:{it.advertised_port or it.port}"
        for it in listeners
    )


def static_configs(settings: BrokerSettings) -> dict[str, str]:
    """Returns the broker configs by which `settings` differ from Kafka's defaults."""
    known = config_defs(BROKER)
    found = {}
    for name, read in _VALUES.items():
        value = _text(read(settings))
        if value is not None and (name not in known or value != known[name].default):
            found[name] = value
    return found


def _text(value: object) -> str | None:
    """Returns a config value in Kafka's text format; None if it is not set."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
