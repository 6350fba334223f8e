"""`Admin` without `await`.

`python -m tools.sync` writes this module from `kproto/client/admin/admin.py`.
"""

from __future__ import annotations

from .cluster_admin import ClusterAdmin
from .config_admin import ConfigAdmin
from .group_admin import GroupAdmin
from .group_offset_admin import GroupOffsetAdmin
from .placement_admin import PlacementAdmin
from .security_admin import SecurityAdmin
from .topic_admin import TopicAdmin
from .transaction_admin import TransactionAdmin

__all__ = ["Admin"]


class Admin(
    TopicAdmin,
    ConfigAdmin,
    GroupAdmin,
    GroupOffsetAdmin,
    SecurityAdmin,
    PlacementAdmin,
    ClusterAdmin,
    TransactionAdmin,
):
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

    __slots__ = ()
