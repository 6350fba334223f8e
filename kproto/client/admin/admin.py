"""`Admin`: administers a cluster, with the operations and names of Kafka's Admin interface.

The calls of each area are in a class of their own; the requests and results are in a module of the
area. A call imports the module of its area, because most programs use few areas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .area import AdminArea, LazyCall

__all__ = ["Admin"]

#: The calls by module and class of their area.
_CALLS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("topic_admin", "TopicAdmin"): (
        "create_topics",
        "delete_topics",
        "list_topics",
        "describe_topics",
        "create_partitions",
        "delete_records",
    ),
    ("config_admin", "ConfigAdmin"): (
        "describe_configs",
        "incremental_alter_configs",
        "list_config_resources",
        "list_client_metrics_resources",
    ),
    ("group_admin", "GroupAdmin"): (
        "list_groups",
        "list_consumer_groups",
        "describe_consumer_groups",
        "describe_classic_groups",
        "describe_share_groups",
        "describe_streams_groups",
        "delete_consumer_groups",
        "delete_share_groups",
        "delete_streams_groups",
        "remove_members_from_consumer_group",
    ),
    ("group_offset_admin", "GroupOffsetAdmin"): (
        "list_consumer_group_offsets",
        "alter_consumer_group_offsets",
        "delete_consumer_group_offsets",
        "consumer_group_lag",
        "list_streams_group_offsets",
        "alter_streams_group_offsets",
        "delete_streams_group_offsets",
        "list_share_group_offsets",
        "alter_share_group_offsets",
        "delete_share_group_offsets",
    ),
    ("security_admin", "SecurityAdmin"): (
        "describe_acls",
        "create_acls",
        "delete_acls",
        "describe_client_quotas",
        "alter_client_quotas",
        "describe_user_scram_credentials",
        "alter_user_scram_credentials",
        "create_delegation_token",
        "renew_delegation_token",
        "expire_delegation_token",
        "describe_delegation_token",
    ),
    ("placement_admin", "PlacementAdmin"): (
        "describe_log_dirs",
        "describe_replica_log_dirs",
        "alter_replica_log_dirs",
        "alter_partition_reassignments",
        "list_partition_reassignments",
        "elect_leaders",
    ),
    ("cluster_admin", "ClusterAdmin"): (
        "describe_cluster",
        "unregister_broker",
        "unregister_controller",
        "describe_features",
        "update_features",
        "describe_metadata_quorum",
        "add_raft_voter",
        "remove_raft_voter",
    ),
    ("transaction_admin", "TransactionAdmin"): (
        "list_transactions",
        "describe_transactions",
        "abort_transaction",
        "fence_producers",
        "force_terminate_transaction",
        "describe_producers",
    ),
    ("offset_admin", "OffsetAdmin"): ("list_offsets",),
}

if not TYPE_CHECKING:

    class _Areas(AdminArea):
        """Has the calls of all areas."""

    for (_module, _area), _names in _CALLS.items():
        for _name in _names:
            setattr(_Areas, _name, LazyCall(_module, _area, _name))

else:
    from .cluster_admin import ClusterAdmin
    from .config_admin import ConfigAdmin
    from .group_admin import GroupAdmin
    from .group_offset_admin import GroupOffsetAdmin
    from .placement_admin import PlacementAdmin
    from .security_admin import SecurityAdmin
    from .topic_admin import TopicAdmin
    from .transaction_admin import TransactionAdmin

    class _Areas(
        TopicAdmin,
        ConfigAdmin,
        GroupAdmin,
        GroupOffsetAdmin,
        SecurityAdmin,
        PlacementAdmin,
        ClusterAdmin,
        TransactionAdmin,
    ):
        """Has the calls of all areas."""


class Admin(_Areas):
    """The operations of Kafka's Admin interface (kafka-clients 4.4), with its names in snake_case.

    `Client.admin` returns the object; it uses the connections and the metadata of the client. Each
    call is sent to the brokers that answer it: the controller, coordinators, leaders, or the broker
    whose configs are described. A call is retried for `timeout_ms`, by default `api_timeout_ms`,
    after a lost connection, while a leader, coordinator or controller moves, and while the broker
    throttles the client (KIP-599).

    A call with many parts, such as topics, raises `AdminError` if a part failed; the error has the
    results of the other parts. A call without parts raises BrokerResponseError. Every call raises
    UnsupportedVersionError, or has it in `AdminError.errors`, if the broker lacks the operation;
    the text names the first release of Kafka that has it. Every call raises ConfigurationError for
    invalid arguments.
    """
