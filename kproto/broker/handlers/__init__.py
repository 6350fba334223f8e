"""Defines the request handlers, one module for each API, and the tuple of all, `KAFKA_APIS`.

The docstring of each module lists the supported versions with their changes, the KIPs, and the
features that are left out. A handler gets the request and its `Context`, reads and changes the
state of the cluster, and returns the response, or None if there is no response (acks=0). A handler
does not wait: it returns a `DelayedResponse` instead. `token_expiry`, `config_alteration`,
`share_request_checks`, `share_acknowledgements`, `share_partition_reading` and
`share_state_results` have code that handlers share.
"""

from typing import Final

from ..registry import Api
from .api_00_produce import produce
from .api_01_fetch import fetch
from .api_02_list_offsets import list_offsets
from .api_03_metadata import metadata
from .api_08_offset_commit import offset_commit
from .api_09_offset_fetch import offset_fetch
from .api_10_find_coordinator import find_coordinator
from .api_11_join_group import join_group
from .api_12_heartbeat import heartbeat
from .api_13_leave_group import leave_group
from .api_14_sync_group import sync_group
from .api_15_describe_groups import describe_groups
from .api_16_list_groups import list_groups
from .api_17_sasl_handshake import sasl_handshake
from .api_18_api_versions import api_versions
from .api_19_create_topics import create_topics
from .api_20_delete_topics import delete_topics
from .api_21_delete_records import delete_records
from .api_22_init_producer_id import init_producer_id
from .api_23_offset_for_leader_epoch import offset_for_leader_epoch
from .api_24_add_partitions_to_txn import add_partitions_to_txn
from .api_25_add_offsets_to_txn import add_offsets_to_txn
from .api_26_end_txn import end_txn
from .api_27_write_txn_markers import write_txn_markers
from .api_28_txn_offset_commit import txn_offset_commit
from .api_29_describe_acls import describe_acls
from .api_30_create_acls import create_acls
from .api_31_delete_acls import delete_acls
from .api_32_describe_configs import describe_configs
from .api_33_alter_configs import alter_configs
from .api_34_alter_replica_log_dirs import alter_replica_log_dirs
from .api_35_describe_log_dirs import describe_log_dirs
from .api_36_sasl_authenticate import sasl_authenticate
from .api_37_create_partitions import create_partitions
from .api_38_create_delegation_token import create_delegation_token
from .api_39_renew_delegation_token import renew_delegation_token
from .api_40_expire_delegation_token import expire_delegation_token
from .api_41_describe_delegation_token import describe_delegation_token
from .api_42_delete_groups import delete_groups
from .api_43_elect_leaders import elect_leaders
from .api_44_incremental_alter_configs import incremental_alter_configs
from .api_45_alter_partition_reassignments import alter_partition_reassignments
from .api_46_list_partition_reassignments import list_partition_reassignments
from .api_47_offset_delete import offset_delete
from .api_48_describe_client_quotas import describe_client_quotas
from .api_49_alter_client_quotas import alter_client_quotas
from .api_50_describe_user_scram_credentials import describe_user_scram_credentials
from .api_51_alter_user_scram_credentials import alter_user_scram_credentials
from .api_55_describe_quorum import describe_quorum
from .api_57_update_features import update_features
from .api_60_describe_cluster import describe_cluster
from .api_61_describe_producers import describe_producers
from .api_64_unregister_broker import unregister_broker
from .api_65_describe_transactions import describe_transactions
from .api_66_list_transactions import list_transactions
from .api_68_consumer_group_heartbeat import consumer_group_heartbeat
from .api_69_consumer_group_describe import consumer_group_describe
from .api_71_get_telemetry_subscriptions import get_telemetry_subscriptions
from .api_72_push_telemetry import push_telemetry
from .api_74_list_config_resources import list_config_resources
from .api_75_describe_topic_partitions import describe_topic_partitions
from .api_76_share_group_heartbeat import share_group_heartbeat
from .api_77_share_group_describe import share_group_describe
from .api_78_share_fetch import share_fetch
from .api_79_share_acknowledge import share_acknowledge
from .api_83_initialize_share_group_state import initialize_share_group_state
from .api_84_read_share_group_state import read_share_group_state
from .api_85_write_share_group_state import write_share_group_state
from .api_86_delete_share_group_state import delete_share_group_state
from .api_87_read_share_group_state_summary import read_share_group_state_summary
from .api_90_describe_share_group_offsets import describe_share_group_offsets
from .api_91_alter_share_group_offsets import alter_share_group_offsets
from .api_92_delete_share_group_offsets import delete_share_group_offsets

__all__ = ["KAFKA_APIS"]

#: All APIs of Kafka that have a handler.
KAFKA_APIS: Final[tuple[Api, ...]] = (
    produce,
    fetch,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    find_coordinator,
    join_group,
    heartbeat,
    leave_group,
    sync_group,
    describe_groups,
    list_groups,
    sasl_handshake,
    api_versions,
    create_topics,
    delete_topics,
    delete_records,
    init_producer_id,
    offset_for_leader_epoch,
    add_partitions_to_txn,
    add_offsets_to_txn,
    end_txn,
    write_txn_markers,
    txn_offset_commit,
    describe_acls,
    create_acls,
    delete_acls,
    describe_configs,
    alter_configs,
    alter_replica_log_dirs,
    describe_log_dirs,
    sasl_authenticate,
    create_partitions,
    create_delegation_token,
    renew_delegation_token,
    expire_delegation_token,
    describe_delegation_token,
    delete_groups,
    elect_leaders,
    incremental_alter_configs,
    alter_partition_reassignments,
    list_partition_reassignments,
    offset_delete,
    describe_client_quotas,
    alter_client_quotas,
    describe_user_scram_credentials,
    alter_user_scram_credentials,
    describe_quorum,
    update_features,
    describe_cluster,
    describe_producers,
    unregister_broker,
    describe_transactions,
    list_transactions,
    consumer_group_heartbeat,
    consumer_group_describe,
    get_telemetry_subscriptions,
    push_telemetry,
    list_config_resources,
    describe_topic_partitions,
    share_group_heartbeat,
    share_group_describe,
    share_fetch,
    share_acknowledge,
    initialize_share_group_state,
    read_share_group_state,
    write_share_group_state,
    delete_share_group_state,
    read_share_group_state_summary,
    describe_share_group_offsets,
    alter_share_group_offsets,
    delete_share_group_offsets,
)
