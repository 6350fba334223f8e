"""Describes values of fields: codes by their names, times as dates, sizes and durations with units.

`meaning_of` looks in a table for the message and field, then for the field, and then decides by the
end of the field's name. Source: the protocol guide, KIP-11 and KIP-140 (ACLs), KIP-226 and KIP-339
(configs), KIP-98 and KIP-890 (transactions), KIP-848, KIP-932 and KIP-1071 (groups).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from ..protocol.error_codes import error_code
from ..protocol.message_classes import KAFKA_MESSAGES, MessageClasses
from ..wire.uuid import ZERO_UUID, Uuid

__all__ = [
    "COMPRESSIONS",
    "api_name",
    "meaning_of",
    "named",
    "names_of",
    "own_meaning_of",
    "point_in_time",
]

Names: TypeAlias = Mapping[int, str]

COMPRESSIONS: Final[Names] = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}

_ACL_OPERATIONS: Final[Names] = {
    0: "UNKNOWN", 1: "ANY", 2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER",
    8: "DESCRIBE", 9: "CLUSTER_ACTION", 10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE", 13: "CREATE_TOKENS", 14: "DESCRIBE_TOKENS", 15: "TWO_PHASE_COMMIT",
}  # fmt: skip
_ACL_RESOURCES: Final[Names] = {
    0: "UNKNOWN", 1: "ANY", 2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN", 7: "USER",
}  # fmt: skip
_ACL_PATTERNS: Final[Names] = {0: "UNKNOWN", 1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
_ACL_PERMISSIONS: Final[Names] = {0: "UNKNOWN", 1: "ANY", 2: "DENY", 3: "ALLOW"}
_CONFIG_RESOURCES: Final[Names] = {
    0: "UNKNOWN", 2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP",
}  # fmt: skip
_CONFIG_SOURCES: Final[Names] = {
    -1: "unknown", 0: "unknown", 1: "the topic", 2: "the broker", 3: "all brokers",
    4: "the broker's file", 5: "default", 6: "the broker's logger", 7: "client metrics",
    8: "the group",
}  # fmt: skip
_CONFIG_TYPES: Final[Names] = {
    0: "unknown", 1: "boolean", 2: "string", 3: "int", 4: "short", 5: "long", 6: "double",
    7: "list", 8: "class", 9: "password",
}  # fmt: skip
_DELIVERY_STATES: Final[Names] = {0: "available", 2: "acknowledged", 4: "archived"}
_MEMBER_STATES: Final[Names] = {
    0: "stable", 1: "unrevoked partitions", 2: "unreleased partitions", 127: "unknown",
}  # fmt: skip
_REPLICA: Final[Names] = {-1: "a consumer", -2: "debugging"}
_SESSION_EPOCHS: Final[Names] = {0: "opens a session", -1: "no session, or closes it"}
_MEMBER_EPOCHS: Final[Names] = {0: "joins", -1: "leaves", -2: "leaves as a static member"}

#: Names of values, by the attribute of a field, or by (message, attribute).
_NAMES: Final[dict[str | tuple[str, str], Names]] = {
    "accepted_compression_types": COMPRESSIONS,
    "acknowledge_types": {0: "gap", 1: "accept", 2: "release", 3: "reject", 4: "renew"},
    "acks": {-1: "all in-sync replicas", 0: "no response", 1: "the leader"},
    "compression_type": COMPRESSIONS,
    "config_operation": {0: "SET", 1: "DELETE", 2: "APPEND", 3: "SUBTRACT"},
    "config_source": _CONFIG_SOURCES,
    "config_type": _CONFIG_TYPES,
    "delivery_state": _DELIVERY_STATES,
    "election_type": {0: "the preferred replica", 1: "any live replica (unclean)"},
    "endpoint_type": {1: "brokers", 2: "controllers"},
    "isolation_level": {0: "READ_UNCOMMITTED", 1: "READ_COMMITTED"},
    "key_type": {0: "GROUP", 1: "TRANSACTION", 2: "SHARE"},
    "leader_recovery_state": {0: "RECOVERED", 1: "RECOVERING"},
    "match_type": {0: "the given name", 1: "the default", 2: "any name"},
    "mechanism": {0: "UNKNOWN", 1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"},
    "member_type": {-1: "unknown", 0: "classic", 1: "consumer"},
    "node_type": {1: "source", 2: "processor", 3: "sink"},
    "operation": _ACL_OPERATIONS,
    "pattern_type": _ACL_PATTERNS,
    "pattern_type_filter": _ACL_PATTERNS,
    "permission_type": _ACL_PERMISSIONS,
    "remote_log_segment_state": {
        0: "copy started", 1: "copy finished", 2: "delete started", 3: "delete finished",
    },
    "remote_partition_delete_state": {0: "marked", 1: "started", 2: "finished"},
    "replica_id": _REPLICA,
    "resource_pattern_type": _ACL_PATTERNS,
    "resource_type": _ACL_RESOURCES,
    "resource_type_filter": _ACL_RESOURCES,
    "resource_types": _CONFIG_RESOURCES,
    "security_protocol": {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"},
    "session_epoch": _SESSION_EPOCHS,
    "share_acquire_mode": {0: "batch-optimized", 1: "record-limit"},
    "share_session_epoch": {0: "opens a session", -1: "closes the session"},
    "status_code": {
        0: "stale topology", 1: "missing source topics", 2: "incorrectly partitioned topics",
        3: "missing internal topics", 4: "shutdown application", 5: "assignment delayed",
        6: "missing tags",
    },
    "topology_description_status": {
        0: "not requested", 1: "not stored", 2: "failed", 3: "returned",
    },
    "transaction_result": {0: "ABORT", 1: "COMMIT"},
    "transaction_status": {
        0: "Empty", 1: "Ongoing", 2: "PrepareCommit", 3: "PrepareAbort", 4: "CompleteCommit",
        5: "CompleteAbort", 6: "Dead", 7: "PrepareEpochFence",
    },
    "upgrade_type": {1: "upgrade", 2: "safe downgrade", 3: "unsafe downgrade"},
    "zk_migration_state": {
        0: "none", 1: "running", 2: "about to start", 3: "finished", 4: "ZooKeeper only",
    },
    **{
        (message, "resource_type"): _CONFIG_RESOURCES
        for message in (
            "AlterConfigsRequest", "AlterConfigsResponse", "ConfigRecord",
            "DescribeConfigsRequest", "DescribeConfigsResponse", "IncrementalAlterConfigsRequest",
            "IncrementalAlterConfigsResponse", "ListConfigResourcesResponse",
        )
    },
    ("BrokerRegistrationChangeRecord", "fenced"): {-1: "unfences", 0: "no change", 1: "fences"},
    ("BrokerRegistrationChangeRecord", "in_controlled_shutdown"): {
        0: "no change", 1: "shuts down",
    },
    ("ConsumerGroupCurrentMemberAssignmentValue", "state"): _MEMBER_STATES,
    ("ConsumerGroupHeartbeatRequest", "member_epoch"): _MEMBER_EPOCHS,
    ("DescribeConfigsResponse", "source"): _CONFIG_SOURCES,
    ("LeaderAndIsrRequest", "type"): {0: "unknown", 1: "changes only", 2: "every partition"},
    ("ListOffsetsRequest", "timestamp"): {
        -1: "latest", -2: "earliest", -3: "max timestamp", -4: "earliest local",
        -5: "latest tiered", -6: "earliest pending upload",
    },
    ("PartitionChangeRecord", "leader"): {-1: "none", -2: "no change"},
    ("ShareGroupCurrentMemberAssignmentValue", "state"): _MEMBER_STATES,
    ("ShareGroupHeartbeatRequest", "member_epoch"): _MEMBER_EPOCHS,
    ("StreamsGroupCurrentMemberAssignmentValue", "state"): {
        1: "stable", 2: "unrevoked tasks", 3: "unreleased tasks", 127: "unknown",
    },
    ("StreamsGroupHeartbeatRequest", "member_epoch"): _MEMBER_EPOCHS,
    ("UpdateMetadataRequest", "type"): {0: "unknown", 1: "changes only", 2: "the whole cluster"},
}  # fmt: skip

#: Ends of the names of fields in which -1 means "none".
_NONE_AT: Final = (
    "epoch", "offset", "timestamp", "timestamp_ms", "producer_id", "sequence", "session_id",
    "generation_id", "leader", "leader_id", "replica", "controller_id", "coordinator",
    "num_partitions", "replication_factor", "time_ms", "node_id", "partition",
)  # fmt: skip

#: Ends of the names of fields that are times, in ms since the Unix epoch.
_TIMES: Final = ("timestamp", "timestamp_ms", "time_stamp", "append_time_ms", "start_time_ms")

#: The values that mean "no bound" in fields for durations and sizes.
_UNBOUNDED: Final = {2**31 - 1: "no bound", 2**63 - 1: "no bound"}

#: The value of a field for authorized operations if the request did not request them.
_NOT_REQUESTED: Final = -(2**31)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: The last time in ms that `datetime` supports: the end of the year 9999.
_LAST_TIME_MS: Final = 253_402_300_799_999

_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
_SIZES: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def meaning_of(message: str, struct: str, field: str, value: object) -> str:
    """Returns a description of a field's `value` in a message of Kafka; "" if there is none.

    `message` and `field` are the names of the message and of its Python attribute. `struct` is not
    used.
    """
    if isinstance(value, Uuid):
        return "none" if value == ZERO_UUID else ""
    if not isinstance(value, int) or isinstance(value, bool):
        if field == "committed" and isinstance(value, bool):
            return "COMMIT" if value else "ABORT"
        if field == "transaction_result" and isinstance(value, bool):
            return "COMMIT" if value else "ABORT"
        return ""
    names = _names(message, field)
    if names is not None and value in names:
        return names[value]
    by_field = _BY_FIELD.get(field)
    if by_field is not None:
        return by_field(value)
    if field.endswith("error_code"):
        return named_error(value)
    return _by_ending(field, value) if names is None or field == "timestamp" else "unknown"


def own_meaning_of(message: str, struct: str, field: str, value: object) -> str:
    """Returns a description of a field's `value` in a message that is not Kafka's.

    Only times, durations and sizes are described, by the end of the field's name. The arguments are
    those of `meaning_of`; `message` and `struct` are not used.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    return _in_unit_of_name(field, value)


def names_of(message: str, field: str) -> Names | None:
    """Returns the names of a field's values; None if no table has the field."""
    return _names(message, field)


def named(names: Names, value: int) -> str:
    """Returns the name of `value` in `names`, or `unknown`."""
    return names.get(value, "unknown")


def named_error(code: int) -> str:
    """Returns the name of an error code."""
    return error_code(code).name


def api_name(api_key: int, classes: MessageClasses = KAFKA_MESSAGES) -> str:
    """Returns the name of the API, such as `Fetch`; `unknown` if no definition has the key."""
    cls = classes.request(api_key)
    return "unknown" if cls is None else cls.__name__.removesuffix("Request")


def point_in_time(value: int) -> str:
    """Returns a time, given in ms since the Unix epoch, in ISO 8601.

    Returns "" for years before 1 and after 9999.
    """
    if not -62_135_596_800_000 <= value <= _LAST_TIME_MS:
        return ""
    shown = (_EPOCH + timedelta(milliseconds=value)).isoformat(timespec="milliseconds")
    return shown.replace("+00:00", "Z")


def _names(message: str, field: str) -> Names | None:
    return _NAMES.get((message, field)) or _NAMES.get(field)


def _by_ending(field: str, value: int) -> str:
    if value == -1 and field.endswith(_NONE_AT):
        return "none"
    return _in_unit_of_name(field, value)


def _in_unit_of_name(field: str, value: int) -> str:
    """Returns a time, duration or size; the end of the field's name decides which."""
    if field.endswith(_TIMES):
        return point_in_time(value)
    if field.endswith(("_ms", "timeout")):
        return _UNBOUNDED.get(value, _duration(value))
    if field.endswith("bytes"):
        return _UNBOUNDED.get(value, _in_units(value, _SIZES))
    return ""


def _duration(value: int) -> str:
    return _in_units(value, _UNITS)


def _in_units(value: int, units: tuple[tuple[int, str], ...]) -> str:
    """Returns `value` in the largest unit that it reaches, such as `30 s` for 30000 ms.

    Returns "" if it is less than the smallest unit.
    """
    for size, name in units:
        if value >= size:
            amount = value / size
            return f"{amount:.0f} {name}" if value % size == 0 else f"{amount:.1f} {name}"
    return ""


def _operations(value: int) -> str:
    if value == _NOT_REQUESTED:
        return "not requested"
    bits = value & 0xFFFFFFFF
    names = [_ACL_OPERATIONS.get(n, f"bit {n}") for n in range(32) if bits >> n & 1]
    return ", ".join(names) if names else "none"


_BY_FIELD: Final[dict[str, Callable[[int], str]]] = {
    "api_key": api_name,
    "request_api_key": api_name,
    "authorized_operations": _operations,
    "cluster_authorized_operations": _operations,
    "topic_authorized_operations": _operations,
}
