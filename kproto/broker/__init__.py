"""A Kafka broker in memory, for tests: real frames over a real socket, no disk, one node.

    async with kproto.broker.Broker() as broker:
        broker.create_topic("greetings", partitions=3)
        async with kproto.Client(broker.bootstrap) as client: ...

Each API that is answered has a module of its own in `handlers`, which begins with what it does
and what it leaves out.
"""

from .broker import Broker
from .control import Close, Control, ControlFunction, Delay, Outcome
from .log import PartitionLog
from .settings import BrokerSettings
from .topics import Partition, Topic

__all__ = [
    "Broker",
    "BrokerSettings",
    "Close",
    "Control",
    "ControlFunction",
    "Delay",
    "Outcome",
    "Partition",
    "PartitionLog",
    "Topic",
]
