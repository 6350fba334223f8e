"""Holds the state that all nodes of a cluster share: nodes, topics, groups, users, ACLs, quotas.

Handlers read and change the state through `Context.cluster`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from ..stored.transaction_markers import TxnMarker
from ..wire.errors import ConfigurationError
from ..wire.uuid import Uuid
from .api_error import api_error
from .authorizer import Acl, Authorizer
from .client_telemetry import ClientTelemetry
from .config_changes import ConfigChange, apply_changes
from .coordinators import CoordinatorType
from .dynamic_configs import ALL_BROKERS, BrokerConfigManager, ClientMetricsConfigManager
from .effective_group_configs import EffectiveGroupConfigs
from .features import TRANSACTION_VERSION, FeatureManager, FeatureUpdate, initial_levels
from .group_configs import GroupConfigManager
from .groups import ClassicGroupLimits, ClockReading, GroupMetadataManager
from .groups.group_coordinator import OFFSETS_TOPIC, OFFSETS_TOPIC_CONFIGS, GroupCoordinator
from .leader_and_isr import NO_LEADER, LeaderAndIsr
from .leader_election import (
    after_broker_start,
    after_broker_stop,
    alternate_racks,
    elect_leader,
    elect_unclean,
    initial_leader_and_isr,
)
from .listeners import Endpoint
from .logger_levels import LoggerLevels
from .quotas import ClientQuotaManager, QuotaTable
from .replica_placement import Replicas, place_added_partitions, place_replicas
from .security.tokens import DelegationTokens
from .security.users import Users
from .settings import BrokerSettings
from .share import (
    SHARE_STATE_TOPIC,
    SHARE_STATE_TOPIC_CONFIGS,
    ShareCoordinator,
    SharePartitionManager,
)
from .storage.storage_limit import StorageLimit
from .topic_configs import LIST_DEFAULTS, TopicConfig
from .topics import Topic, Topics
from .transactions.transaction_coordinator import (
    TRANSACTION_TOPIC,
    TRANSACTION_TOPIC_CONFIGS,
    TransactionCoordinator,
)

__all__ = ["ClusterState"]

logger = logging.getLogger("kproto.broker")

#: Replication factor of internal topics, and of other topics if `default_replication_factor` is
#: None. If the cluster has fewer brokers, the number of brokers applies instead.
_INTERNAL_REPLICATION_FACTOR: Final = 3


class ClusterState:
    """Holds the state of one cluster; `settings` are the settings of any node.

    The class reads only settings that are equal on all nodes.
    """

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self.cluster_id = settings.cluster_id or str(Uuid.random())
        self.topics = Topics()
        self.storage_limit = StorageLimit(settings.max_stored_bytes)
        #: The quotas of the cluster, and the usage of controller_mutation_rate, which the
        #: controller measures. For the other quotas, each node measures the usage of its own
        #: clients (`quota_manager_of`).
        self.quota_manager = self._new_quota_manager(QuotaTable())
        self._quota_managers: dict[int, ClientQuotaManager] = {}
        #: None if the cluster has no authorizer.
        self.authorizer = _authorizer(settings)
        self.users = Users(settings.users)
        self.tokens = DelegationTokens(
            settings.delegation_token_secret_key,
            max_lifetime_ms=settings.delegation_token_max_lifetime_ms,
            renew_ms=settings.delegation_token_expiry_time_ms,
            kept_ms=settings.delegation_token_kept_ms,
        )
        self._endpoints: dict[int, dict[str, Endpoint]] = {}
        self._stopped: set[int] = set()
        #: The node id of the controller; None for the live node with the lowest id.
        self._controller: int | None = None
        self.controller_epoch = 1
        self.features = FeatureManager(initial_levels(settings))
        #: Dynamic configs of groups, which override broker settings.
        self.group_configs = GroupConfigManager(settings)
        #: Dynamic configs of brokers, which override broker settings.
        self.broker_configs = BrokerConfigManager(has_elr=settings.has_elr)
        self.client_metrics_configs = ClientMetricsConfigManager()
        self._client_telemetry: dict[int, ClientTelemetry] = {}
        self._logger_levels: dict[int, LoggerLevels] = {}
        #: The configs that apply to each group.
        self.effective_group_configs = EffectiveGroupConfigs(
            settings, self.broker_configs, self.group_configs
        )
        #: The groups that are loaded from `__consumer_offsets`, of all coordinators.
        self.groups = GroupMetadataManager(
            ClassicGroupLimits(
                settings.group_initial_rebalance_delay_ms,
                settings.group_new_member_join_timeout_ms,
                settings.group_max_size,
            ),
            self.effective_group_configs.consumer,
            self.topics,
            self.effective_group_configs.share,
        )
        self.group_coordinator = GroupCoordinator(
            self.topics,
            self.groups,
            retention_ms=settings.offsets_retention_minutes * 60_000,
            check_interval_ms=settings.offsets_retention_check_interval_ms,
        )
        self.transaction_coordinator = TransactionCoordinator(
            self.topics,
            self.write_txn_marker,
            self.new_producer_id,
            transaction_version=settings.transaction_version_level,
            max_timeout_ms=settings.transaction_max_timeout_ms,
            allows_two_phases=settings.transaction_two_phase_commit_enable,
            expiration_ms=settings.transactional_id_expiration_ms,
        )
        self.share_coordinator = ShareCoordinator(
            self.topics,
            lambda: self.topics.add(self.plan_automatic_topic(SHARE_STATE_TOPIC)),
            updates_per_snapshot=settings.share_coordinator_snapshot_update_records_per_snapshot,
        )
        self._share_partitions: dict[int, SharePartitionManager] = {}
        self._next_producer_id = 0

    # Nodes

    def register_endpoint(self, endpoint: Endpoint) -> None:
        """Adds or replaces the endpoint of a node for a listener."""
        self._endpoints.setdefault(endpoint.node_id, {})[endpoint.listener] = endpoint

    @property
    def nodes(self) -> list[int]:
        """Returns the ids of all nodes in ascending order, including stopped nodes."""
        return sorted(self._endpoints)

    @property
    def alive(self) -> list[int]:
        """Returns the ids of the nodes that are not stopped, in ascending order."""
        return [node for node in self.nodes if node not in self._stopped]

    def is_alive(self, node: int) -> bool:
        """Returns True if the node exists and is not stopped."""
        return node in self._endpoints and node not in self._stopped

    def endpoints(self, listener: str, *, stopped_too: bool = False) -> list[Endpoint]:
        """Returns the endpoints of the live nodes for a listener, in the order of node ids.

        If `stopped_too` is set, also returns the endpoints of stopped nodes.
        """
        return [
            self._endpoints[node][listener]
            for node in (self.nodes if stopped_too else self.alive)
            if listener in self._endpoints[node]
        ]

    def endpoint_of(self, node: int, listener: str) -> Endpoint | None:
        """Returns the endpoint of a node for a listener.

        Returns None if the node does not exist, is stopped, or does not have the listener.
        """
        return self._endpoints[node].get(listener) if self.is_alive(node) else None

    def stop(self, node: int) -> None:
        """Marks a node as stopped; other in-sync replicas become the leaders of its partitions.

        The node leaves the ISRs, except an ISR in which it is the last node. If the node was the
        controller, the live node with the lowest id becomes the controller. Raises
        ConfigurationError for an unknown node.
        """
        self._check_node(node)
        if node in self._stopped:
            return
        controls = self.controller_id == node
        self._stopped.add(node)
        self._share_partitions.pop(node, None)
        logger.info("broker %d is stopped", node)
        alive = self.alive
        self._change(lambda leader_and_isr: after_broker_stop(leader_and_isr, node, alive))
        if controls:
            self._controller = None
            if alive:
                self._set_controller(alive[0])

    def start(self, node: int) -> None:
        """Marks a stopped node as alive, so that it joins ISRs and may lead leaderless partitions.

        Does nothing if the node is not stopped. Raises ConfigurationError for an unknown node.
        """
        self._check_node(node)
        if node not in self._stopped:
            return
        self._stopped.remove(node)
        logger.info("broker %d is started", node)
        alive = self.alive
        self._change(lambda leader_and_isr: after_broker_start(leader_and_isr, node, alive))

    def _check_node(self, node: int) -> None:
        if node not in self._endpoints:
            raise ConfigurationError(
                f"there is no broker {node}: take one of {', '.join(map(str, self.nodes))}"
            )

    def _change(self, decide: Callable[[LeaderAndIsr], LeaderAndIsr]) -> None:
        """Replaces the leader and ISR of each partition by the result of `decide`."""
        moved = left = 0
        for topic in self.topics:
            for partition in topic.partitions:
                decided = self._with_leader(topic, decide(partition.leader_and_isr))
                if partition.update_leader_and_isr(decided):
                    moved += 1
                    left += partition.leader_and_isr.leader == NO_LEADER
        if moved:
            logger.info("the leaders of %d partitions changed; %d now have none", moved, left)

    def _with_leader(self, topic: Topic, state: LeaderAndIsr) -> LeaderAndIsr:
        """Returns `state` with a leader that is not in sync, if the topic allows that.

        Returns `state` unchanged if it has a leader, or if no replica is alive.
        """
        alive = self.alive
        if (
            state.leader != NO_LEADER
            or not topic.config.unclean_leader_election
            or not set(state.replicas) & set(alive)
        ):
            return state
        return elect_unclean(state, alive)

    def quota_manager_of(self, node: int) -> ClientQuotaManager:
        """Returns the quota manager of a node.

        As in Kafka, each node measures only the usage of its own clients.
        """
        if node not in self._quota_managers:
            self._quota_managers[node] = self._new_quota_manager(self.quota_manager.table)
        return self._quota_managers[node]

    def _new_quota_manager(self, table: QuotaTable) -> ClientQuotaManager:
        return ClientQuotaManager(
            table,
            self._settings.quota_window_num,
            self._settings.quota_window_size_seconds * 1000,
            self._settings.max_throttle_ms,
        )

    def share_partitions_of(self, node: int) -> SharePartitionManager:
        """Returns the share partitions and share sessions of a node; a restart ends all."""
        if node not in self._share_partitions:
            self._share_partitions[node] = SharePartitionManager(
                self.share_coordinator,
                self.effective_group_configs.share_partition,
                max_sessions=self._settings.group_share_max_share_sessions,
            )
        return self._share_partitions[node]

    # Controller and coordinators

    @property
    def controller_id(self) -> int:
        """Returns the node id of the controller; -1 if all nodes are stopped."""
        if self._controller is not None:
            return self._controller
        return next(iter(self.alive), NO_LEADER)

    def move_controller(self, node: int) -> None:
        """Makes a node the controller.

        Raises ConfigurationError if the node is unknown or stopped.
        """
        self._check_node(node)
        if node in self._stopped:
            raise ConfigurationError(f"broker {node} is stopped; start it first")
        self._set_controller(node)

    @property
    def metadata_offset(self) -> int:
        """Returns the number of changes of topics and features, as an offset of Kafka's log."""
        return self.topics.created_count + self.topics.deleted_count + self.features.epoch

    def _set_controller(self, node: int) -> None:
        self._controller = node
        self.controller_epoch += 1
        logger.info("the controller is broker %d", node)

    def coordinator(self, kind: CoordinatorType, key: str) -> int:
        """Returns the node id of the coordinator of `key`; NO_LEADER if there is none.

        `kind` determines whether `key` is a group id, a transactional id or a share partition. The
        first lookup of a group id creates `__consumer_offsets`. The first lookup of a transactional
        id creates `__transaction_state`, and that of a share partition `__share_group_state`.
        """
        if not self.alive:
            return NO_LEADER
        if kind is CoordinatorType.SHARE:
            return self.share_coordinator.coordinator(key)
        coordinator: GroupCoordinator | TransactionCoordinator = self.group_coordinator
        name = OFFSETS_TOPIC
        if kind is CoordinatorType.TRANSACTION:
            coordinator, name = self.transaction_coordinator, TRANSACTION_TOPIC
        if coordinator.topic is None:
            self.topics.add(self.plan_automatic_topic(name))
        return coordinator.coordinator(key)

    def write_txn_marker(
        self, topic: Topic, index: int, marker: TxnMarker, now: ClockReading
    ) -> None:
        """Appends a commit or abort marker to a partition (KIP-98).

        In `__consumer_offsets`, the pending offsets of the transaction take effect or are dropped.
        Raises NOT_LEADER_OR_FOLLOWER if the partition has no leader, NOT_ENOUGH_REPLICAS if the ISR
        is too small, and the errors of `Partition.end_transaction`.
        """
        partition = topic.partition(index)
        if partition.leader_and_isr.leader == NO_LEADER:
            raise api_error("NOT_LEADER_OR_FOLLOWER", f"{topic.name}-{index} has no leader")
        topic.check_in_sync(index)
        config = topic.config_of(index)
        partition.end_transaction(marker, now.timestamp_ms, stamp_time=config.log_append_time)
        if topic.name == OFFSETS_TOPIC:
            self.group_coordinator.end_transaction(
                partition, marker.producer_id, is_commit=marker.is_commit
            )

    def _internal_replicas(self, partitions: int) -> list[Replicas]:
        return self._assign_replicas(
            partitions, min(_INTERNAL_REPLICATION_FACTOR, len(self.nodes)), {}, partitions
        )

    # Partitions

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Makes the in-sync replica `node` the leader, and bumps the leader epoch.

        Does nothing if `node` is the leader already. Raises BrokerResponseError for an unknown
        partition, and for a node that is stopped or not in sync.
        """
        found = self.topics.named(topic).partition(partition)
        if found.update_leader_and_isr(elect_leader(found.leader_and_isr, node, self.alive)):
            epoch = found.log.epochs.current
            logger.info("%s-%d: broker %d leads, epoch %d", topic, partition, node, epoch)

    def update_leader_and_isr(
        self,
        topic: Topic,
        index: int,
        decide: Callable[[LeaderAndIsr, Container[int]], LeaderAndIsr],
    ) -> None:
        """Replaces replicas, leader and ISR of a partition by the result of `decide`.

        `decide` gets the state of the partition and the ids of the live nodes. Raises the errors of
        `decide`; then nothing is changed.
        """
        partition = topic.partition(index)
        if partition.update_leader_and_isr(decide(partition.leader_and_isr, self.alive)):
            leader, epoch = partition.leader_and_isr.leader, partition.log.epochs.current
            logger.info("%s-%d: broker %d leads, epoch %d", topic.name, index, leader, epoch)

    def truncate(self, topic: str, partition: int, offset: int) -> int:
        """Truncates a log at `offset`; returns the new end offset.

        The batch that contains `offset` is lost as a whole. If a batch is lost, bumps the leader
        epoch. Raises BrokerResponseError for an unknown partition or an offset outside of the log.
        """
        found = self.topics.named(topic).partition(partition)
        before = found.log.end_offset
        end = found.truncate(offset)
        if end < before:
            epoch = found.log.epochs.current
            logger.info("%s-%d: the log is truncated at %d, epoch %d", topic, partition, end, epoch)
        return end

    def new_producer_id(self) -> int:
        """Returns a producer id that the cluster has not returned to a producer before."""
        producer_id = self._next_producer_id
        self._next_producer_id += 1
        return producer_id

    def plan_topic(
        self,
        name: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        assignments: Mapping[int, Iterable[int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
    ) -> Topic:
        """Validates a new topic and returns it; the caller adds it to `topics`.

        For a `num_partitions` or `replication_factor` of -1, the default of `settings` applies.
        `assignments` are the node ids of the replicas, by partition. Raises BrokerResponseError
        with the error code that Kafka's controller returns.
        """
        self.topics.check_new_name(name)
        most = self._settings.max_partitions
        replicas = self._assign_replicas(
            num_partitions, replication_factor, assignments or {}, most
        )
        return self._new_topic(name, replicas, configs or {})

    def plan_automatic_topic(self, name: str) -> Topic:
        """Returns a topic for auto-creation, as `plan_topic` does, and raises the same errors.

        Kafka's internal topics get the configs with which Kafka creates them, and the partition
        counts from `settings`.
        """
        internal = {
            OFFSETS_TOPIC: (self._settings.offsets_topic_num_partitions, OFFSETS_TOPIC_CONFIGS),
            TRANSACTION_TOPIC: (
                self._settings.transaction_state_log_num_partitions,
                TRANSACTION_TOPIC_CONFIGS,
            ),
            SHARE_STATE_TOPIC: (
                self._settings.share_coordinator_state_topic_num_partitions,
                SHARE_STATE_TOPIC_CONFIGS,
            ),
        }
        if name not in internal:
            return self.plan_topic(name)
        self.topics.check_new_name(name)
        return self._new_topic(name, self._internal_replicas(internal[name][0]), internal[name][1])

    def _new_topic(
        self, name: str, replicas: list[Replicas], configs: Mapping[str, str | None]
    ) -> Topic:
        elect = partial(initial_leader_and_isr, alive=self.alive)
        config, limit = self._topic_config(configs, ALL_BROKERS), self.storage_limit
        topic = Topic(name, replicas, config, limit, elect=elect)
        self._set_topic_config(topic, config.overrides)
        return topic

    def _topic_config(self, configs: Mapping[str, str | None], node: str) -> TopicConfig:
        """Returns the config of a topic on a node; raises INVALID_CONFIG."""
        number, settings = self.broker_configs.number, self._settings
        return TopicConfig(
            configs,
            settings.message_max_bytes,
            settings.retention_check_interval_ms,
            number(node, "producer.id.expiration.ms", settings.producer_id_expiration_ms),
            self.broker_configs.topic_defaults(node),
            number(node, "log.cleaner.backoff.ms", settings.log_cleaner_backoff_ms),
        )

    def _set_topic_config(self, topic: Topic, overrides: Mapping[str, str | None]) -> None:
        """Replaces the configs of a topic. Raises INVALID_CONFIG; then nothing is changed."""
        by_node = {
            int(node): self._topic_config(overrides, node)
            for node in self.broker_configs.names
            if node != ALL_BROKERS
        }
        topic.replace_config(self._topic_config(overrides, ALL_BROKERS), by_node)
        for partition in topic.partitions:
            partition.update_leader_and_isr(self._with_leader(topic, partition.leader_and_isr))

    def update_features(self, updates: Iterable[FeatureUpdate], *, validate_only: bool) -> None:
        """Updates the finalized levels of features; with `validate_only`, only validates them.

        Raises INVALID_UPDATE_VERSION; then nothing is changed.
        """
        levels = self.features.updated(updates, self.controller_id)
        if not validate_only:
            self.features.replace(levels)
            self.transaction_coordinator.transaction_version = levels.get(TRANSACTION_VERSION, 0)

    # Dynamic configs

    def alter_topic_configs(
        self, topic: Topic, changes: Iterable[ConfigChange], *, validate_only: bool
    ) -> None:
        """Alters the configs of a topic; with `validate_only`, only validates the changes.

        Raises the errors of `apply_changes` and `TopicConfig`; then nothing is changed.
        """
        overrides = apply_changes(topic.config.overrides, list(changes), LIST_DEFAULTS)
        self._topic_config(overrides, ALL_BROKERS)
        if not validate_only:
            self._set_topic_config(topic, overrides)

    def alter_broker_configs(
        self, name: str, changes: Iterable[ConfigChange], *, validate_only: bool
    ) -> None:
        """Alters the dynamic configs of the broker `name`, or of all brokers (ALL_BROKERS).

        With `validate_only`, only validates the changes. New defaults apply to topics at once.
        Raises the errors of `BrokerConfigManager.altered`; then nothing is changed.
        """
        altered = self.broker_configs.altered(name, changes)
        if validate_only:
            return
        self.broker_configs.replace(name, altered)
        for topic in self.topics:
            self._set_topic_config(topic, topic.config.overrides)

    def client_telemetry_of(self, node: int) -> ClientTelemetry:
        """Returns the telemetry subscriptions of a node's clients."""
        return self._client_telemetry.setdefault(node, ClientTelemetry(self.client_metrics_configs))

    def logger_levels_of(self, node: int) -> LoggerLevels:
        """Returns the log levels of a node."""
        return self._logger_levels.setdefault(node, LoggerLevels())

    def plan_partitions(
        self, topic: Topic, count: int, assignments: Sequence[Sequence[int]] | None
    ) -> list[Replicas]:
        """Returns the replicas of the partitions that bring a topic to `count` partitions.

        Raises the errors of `place_added_partitions`.
        """
        return place_added_partitions(
            topic.name,
            len(topic.partitions),
            count,
            assignments,
            replication_factor=len(topic.partitions[0].leader_and_isr.replicas),
            nodes=self._alternate_racks(self.alive),
            stopped=self._alternate_racks(sorted(self._stopped)),
            most=self._settings.max_partitions,
        )

    def add_partitions(self, topic: Topic, replicas: Sequence[Replicas]) -> None:
        """Adds partitions to a topic; `plan_partitions` has returned their `replicas`."""
        topic.add_partitions(replicas)
        self.topics.on_partitions_added()

    def delete_topic(self, topic: Topic, now: ClockReading) -> None:
        """Deletes a topic, its records, and the offsets and share states of groups for it.

        Groups without a coordinator at this time keep their offsets.
        """
        self.topics.remove(topic)
        self.group_coordinator.on_topic_deleted(topic, now)
        self.share_coordinator.on_topic_deleted(topic, now)

    def _assign_replicas(
        self,
        num_partitions: int,
        replication_factor: int,
        assignments: Mapping[int, Iterable[int]],
        most: int,
    ) -> list[Replicas]:
        configured = self._settings.default_replication_factor
        return place_replicas(
            num_partitions,
            replication_factor,
            assignments,
            nodes=self._alternate_racks(self.alive),
            stopped=self._alternate_racks(sorted(self._stopped)),
            default=self._settings.num_partitions,
            default_replication_factor=min(_INTERNAL_REPLICATION_FACTOR, len(self.nodes))
            if configured is None
            else configured,
            most=most,
        )

    def _alternate_racks(self, nodes: list[int]) -> list[int]:
        racks = [next(iter(self._endpoints[node].values())).rack for node in nodes]
        return alternate_racks(nodes, racks)


def _authorizer(settings: BrokerSettings) -> Authorizer | None:
    if not settings.authorizer:
        return None
    return Authorizer(
        settings.super_users,
        [acl for acl in settings.acls if isinstance(acl, Acl)],
        allow_if_no_acl=settings.allow_everyone_if_no_acl_found,
    )
