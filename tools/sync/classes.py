"""Lists the classes of the asyncio client, and how the blocking client differs from each.

A method that is in no table here is emitted by its kind: a coroutine function, a plain function or
a property. So a new method needs no entry, and a new class needs one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["BY_NAME", "CLASSES", "SyncClass"]


@dataclass(frozen=True)
class SyncClass:
    """One class: where it is, where its blocking form is, and what differs.

    `module` and `target` are paths below `kproto/client` and `kproto/sync`, without `.py`. `bases`
    are the base classes; `{wrapped}` stands for the alias of the asyncio class. `inherited` maps
    modules to base classes of the asyncio class whose methods the blocking class has itself.
    `bodies` has the code of a method: `{args}` stands for its arguments as they are passed on, and
    `{items}` for the items of a dict of them. `imports` has the modules of names that the asyncio
    module does not import; `type:` marks a name that only type checkers import.
    """

    name: str
    module: str
    target: str
    bases: str = "Wrapper[{wrapped}]"
    inherited: Mapping[str, str] = field(default_factory=dict)
    #: Of a class with methods that only the client itself needs: the public ones.
    only: frozenset[str] | None = None
    #: The types of its public attributes.
    attributes: Mapping[str, str] = field(default_factory=dict)
    bodies: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, str] = field(default_factory=dict)
    #: Methods without a blocking form.
    omitted: frozenset[str] = frozenset()


_ADMIN_AREAS: Final = {
    "TopicAdmin": "topic_admin",
    "ConfigAdmin": "config_admin",
    "GroupAdmin": "group_admin",
    "OffsetAdmin": "offset_admin",
    "GroupOffsetAdmin": "group_offset_admin",
    "SecurityAdmin": "security_admin",
    "PlacementAdmin": "placement_admin",
    "ClusterAdmin": "cluster_admin",
    "TransactionAdmin": "transaction_admin",
}

_SEND_EVENTS: Final = """\
wrapped = self._wrapped
if not isinstance(events, Collection):
    check_many("events", events, one="event", of_one="send_event")
    convert = partial(wrapped._records_of_events, mode, timestamp, partition, options)
    return send_iterator(self._call, wrapped, topic, events, convert)
return self._call(wrapped.send_events, {args})
"""

_CONSUMER: Final = """\
arguments: dict[str, Any] = {{items}}
for name in ("on_assigned", "on_revoked", "on_lost"):
    arguments[name] = threaded_callback(name, arguments[name])

def create_consumer(client: _Client) -> _Consumer[K, V, U] | _GroupConsumer[K, V, U]:
    created: _Consumer[K, V, U] | _GroupConsumer[K, V, U] = client.consumer(**arguments)
    return created

consumer, create_again = self._create_part(create_consumer)
again: Any = create_again
if isinstance(consumer, _GroupConsumer):
    return GroupConsumer(self._binding, consumer, again)
return Consumer(self._binding, consumer, again)
"""

_ADMIN: Final = """\
from .admin.admin import Admin  # few programs need it

admin = self._read(lambda: self._wrapped.admin)
return Admin(self._binding, admin, lambda: self._binding.client.admin)
"""

_RUN: Final = """\
wrap = None if transactional_id is None else HandlerTransaction
called = threaded_handler(handler, {decode}, wrap)
wrapped = self._wrapped
arguments: dict[str, Any] = {{**settings{more}}}
return run_until_stopped(
    self._binding.thread(), wrapped, wrapped.{name}, called, transactional_id, arguments
)
"""

_RUN_SHARE: Final = """\
called = threaded_handler(handler, decode, None)
arguments: dict[str, Any] = {**settings}
return run_share_until_stopped(self._binding.thread(), self._wrapped, called, arguments)
"""

CLASSES: Final = (
    SyncClass(
        "HandlerTransaction",
        "processing/handler_transaction",
        "handler_transaction",
        bases="InlineWrapper[{wrapped}]",
        imports={"InlineWrapper": ".wrapper"},
    ),
    SyncClass(
        "BrokerConnection",
        "network/connection",
        "broker_connection",
        only=frozenset(
            {"request", "send_only", "version_of", "version_for", "usable", "in_flight", "close"}
        ),
        attributes={
            "address": "Address",
            "ranges": "Mapping[int, ApiRange]",
            "message_magic": "int",
            "finalized_features": "Mapping[str, int]",
        },
    ),
    SyncClass(
        "RecordStream",
        "consumer/record_stream",
        "record_stream",
        bases="StreamWrapper[S], Generic[S, K, V, U]",
        imports={
            "StreamWrapper": ".stream_wrapper",
            "S": ".stream_wrapper",
            "Generic": "typing",
            "record_iteration": ".iterations",
        },
        bodies={
            "__aiter__": "return record_iteration(self, self._wrapped.__aiter__())",
            "record_lists": "return RecordListIteration(self, self._wrapped.record_lists())",
            "values": "return ValueIteration(self, self._wrapped.values())",
            "raw_batches": "return RawBatchIteration(self, self._wrapped.raw_batches())",
            "poll": "return self._poll_call(self._wrapped.poll, {args})",
        },
    ),
    SyncClass(
        "Consumer",
        "consumer/consumer",
        "consumer",
        bases="RecordStream[{wrapped}[K, V, U], K, V, U]",
        imports={"RecordStream": ".record_stream"},
    ),
    SyncClass(
        "GroupConsumer",
        "consumer/group_consumer",
        "group_consumer",
        bases="RecordStream[{wrapped}[K, V, U], K, V, U]",
        inherited={"consumer/processing_stream": "ProcessingStream"},
        imports={
            "RecordStream": ".record_stream",
            "HandlerTransaction": ".handler_transaction",
            "run_until_stopped": ".running",
            "threaded_handler": ".threaded_functions",
            "Any": "typing",
        },
        bodies={
            "run": _RUN.format(name="run", decode="decode", more=""),
            "run_batches": _RUN.format(
                name="run_batches", decode="None", more=', "batch_size": batch_size'
            ),
        },
    ),
    SyncClass(
        "ShareConsumer",
        "consumer/share_consumer",
        "share_consumer",
        bases="ShareWrapper[K, V, U]",
        imports={
            "ShareWrapper": ".share_wrapper",
            "share_iteration": ".iterations",
            "run_share_until_stopped": ".running",
            "threaded_handler": ".threaded_functions",
        },
        bodies={
            "__aiter__": "return share_iteration(self, self._wrapped.__aiter__())",
            "record_lists": "return ShareListIteration(self, self._wrapped.record_lists())",
            "poll": "return self._poll_call(self._wrapped.poll, {args})",
            "run": _RUN_SHARE,
        },
    ),
    SyncClass(
        "Transaction",
        "producer/transactions/transaction",
        "transaction",
        imports={"GroupConsumer": ".group_consumer", "Any": "typing"},
        bodies={
            "commit_offsets": (
                "source = offsets._wrapped if isinstance(offsets, GroupConsumer) else offsets\n"
                "return self._call(self._wrapped.commit_offsets, source, group_id=group_id)"
            ),
        },
    ),
    SyncClass(
        "Producer",
        "producer/producer",
        "producer",
        bases="ProducerWrapper[K, V]",
        imports={
            "ProducerWrapper": ".producer_wrapper",
            "Transaction": ".transaction",
            "Delivery": ".deliveries",
            "BatchDelivery": ".deliveries",
            "Collection": "collections.abc",
            "check_many": "..client.producer_record",
            "partial": "functools",
            "send_iterator": ".iterator_sends",
            "send_records": ".iterator_sends",
        },
        attributes={
            "settings": "ProducerSettings",
            "undelivered": "dict[str, list[ProducerRecord]]",
        },
        bodies={
            "transaction": (
                "return Transaction(self._binding, self._call_plain(self._wrapped.transaction))"
            ),
            "enqueue": (
                "return Delivery(self._binding, self._call(self._wrapped.enqueue, {args}))"
            ),
            "send_batch": (
                "return BatchDelivery(self._binding, self._call(self._wrapped.send_batch, {args}))"
            ),
            "send_many": "return send_records(self._call, self._wrapped, topic, values)",
            "send_events": _SEND_EVENTS,
        },
    ),
    *(
        SyncClass(
            name,
            f"admin/{module}",
            f"admin/{module}",
            bases="OffsetAdmin" if name == "GroupOffsetAdmin" else "Wrapper[Admin]",
            imports={
                "Wrapper": "..wrapper",
                "Admin": "...client.admin.admin",
                "OffsetAdmin": ".offset_admin",
            },
        )
        for name, module in _ADMIN_AREAS.items()
    ),
    SyncClass(
        "Admin",
        "admin/admin",
        "admin/admin",
        bases=", ".join(name for name in _ADMIN_AREAS if name != "OffsetAdmin"),
        imports={name: f".{module}" for name, module in _ADMIN_AREAS.items()},
    ),
    SyncClass(
        "Client",
        "client",
        "client",
        inherited={"cluster_calls": "ClusterCalls"},
        bases="ClientWrapper",
        attributes={"settings": "ClientSettings"},
        imports={
            "Admin": "type:.admin.admin",
            "Any": "typing",
            "BrokerConnection": ".broker_connection",
            "ClientWrapper": ".client_wrapper",
            "Consumer": ".consumer",
            "GroupConsumer": ".group_consumer",
            "Producer": ".producer",
            "ShareConsumer": ".share_consumer",
            "_GroupConsumer": "..client.consumer.group_consumer:GroupConsumer",
            "_Consumer": "..client.consumer.consumer:Consumer",
            "_ShareConsumer": "..client.consumer.share_consumer:ShareConsumer",
            "threaded": ".threaded_functions",
            "threaded_callback": ".threaded_functions",
        },
        bodies={
            "__init__": "self._bind(lambda: _Client({args}))",
            "from_properties": (
                "client = cls.__new__(cls)\n"
                "client._bind(lambda: _Client.from_properties({args}))\n"
                "return client"
            ),
            "__aenter__": "",
            "__aexit__": "",
            "close": "self._close(lambda: self._wrapped.close({args}))",
            "admin": _ADMIN,
            "metrics": "return self._read(self._wrapped.metrics)",
            "connection": (
                "connection = self._call(self._wrapped.connection, broker)\n"
                "return BrokerConnection(self._binding, connection)"
            ),
            "retrying": (
                'return self._call(self._wrapped.retrying, threaded("operation", operation))'
            ),
            "producer": (
                "producer, create_again = self._create_part("
                "lambda client: client.producer({args}))\n"
                "return Producer(self._binding, producer, create_again)"
            ),
            "consumer": _CONSUMER,
            "share_consumer": (
                "def create_consumer(client: _Client) -> _ShareConsumer[K, V, U]:\n"
                "    created: _ShareConsumer[K, V, U] = client.share_consumer({args})\n"
                "    return created\n\n"
                "consumer, create_again = self._create_part(create_consumer)\n"
                "return ShareConsumer(self._binding, consumer, create_again)"
            ),
        },
    ),
)

BY_NAME: Final = {each.name: each for each in CLASSES}
