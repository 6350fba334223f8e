"""A Kafka broker in memory, for tests: real frames over a real socket, no disk.

    async with kproto.broker.Broker() as broker:
        broker.create_topic("greetings", partitions=3)
        async with kproto.Client(broker.bootstrap) as client: ...

`running` runs a broker in a thread, for tests that block and for other processes:

    with kproto.broker.running() as broker: ...

`Cluster` has several nodes. When a node stops, in-sync replicas become the leaders of the
partitions that the node led.

Each supported API has a module in `handlers`. The docstring of the module describes the versions of
the API and the differences from Kafka.
"""

from .authorizer import Acl, Operation, PatternType, Permission, ResourceType
from .broker import Broker
from .cluster import Cluster
from .embedded_cluster import BrokerHandle
from .faults import (
    Close,
    Control,
    ControlFunction,
    CutFrame,
    Delay,
    ErrorCode,
    LoseResponses,
    Outcome,
    SilentConnection,
    Slow,
    Throttled,
)
from .group_states import GroupMember, GroupState
from .listeners import Listener
from .principals import Principal
from .request_log import LoggedRequest, RequestLog
from .running_broker import RunningBroker, running
from .security.server_tls import ServerTls
from .settings import BrokerSettings
from .storage.log import PartitionLog
from .storage.partition import Partition
from .topics import Topic

__all__ = [
    "Acl",
    "Broker",
    "BrokerHandle",
    "BrokerSettings",
    "Close",
    "Cluster",
    "Control",
    "ControlFunction",
    "CutFrame",
    "Delay",
    "ErrorCode",
    "GroupMember",
    "GroupState",
    "Listener",
    "LoggedRequest",
    "LoseResponses",
    "Operation",
    "Outcome",
    "Partition",
    "PartitionLog",
    "PatternType",
    "Permission",
    "Principal",
    "RequestLog",
    "ResourceType",
    "RunningBroker",
    "ServerTls",
    "SilentConnection",
    "Slow",
    "Throttled",
    "Topic",
    "running",
]
