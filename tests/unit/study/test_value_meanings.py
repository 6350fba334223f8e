"""Tests the meanings of values; the tables of meanings must name only fields that exist."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kproto.schema.definitions import union
from kproto.schema.naming import snake_case
from kproto.schema.specs import FieldSpec
from kproto.study import value_meanings
from kproto.study.value_meanings import meaning_of
from kproto.wire.uuid import ZERO_UUID

CASES = [
    ("FetchRequest", "isolation_level", 1, "READ_COMMITTED"),
    ("FetchRequest", "replica_id", -1, "a consumer"),
    ("FetchRequest", "max_wait_ms", 500, ""),
    ("FetchRequest", "max_wait_ms", 30_000, "30 s"),
    ("FetchRequest", "max_wait_ms", 2**31 - 1, "no bound"),
    ("FetchRequest", "max_bytes", 52_428_800, "50 MiB"),
    ("FetchRequest", "current_leader_epoch", -1, "none"),
    ("FetchRequest", "session_epoch", -1, "no session, or closes it"),
    ("FetchResponse", "error_code", 6, "NOT_LEADER_OR_FOLLOWER"),
    ("FetchResponse", "error_code", 9999, "UNKNOWN_CODE_9999"),
    ("RequestHeader", "request_api_key", 18, "ApiVersions"),
    ("RequestHeader", "request_api_key", 999, "unknown"),
    ("ProduceRequest", "acks", -1, "all in-sync replicas"),
    ("ProduceRequest", "acks", 7, "unknown"),
    ("FindCoordinatorRequest", "key_type", 1, "TRANSACTION"),
    ("DescribeAclsRequest", "resource_type_filter", 2, "TOPIC"),
    ("CreateAclsRequest", "resource_type", 4, "CLUSTER"),
    ("DescribeConfigsRequest", "resource_type", 4, "BROKER"),
    ("ListOffsetsRequest", "timestamp", -2, "earliest"),
    ("ListOffsetsRequest", "timestamp", 0, "1970-01-01T00:00:00.000Z"),
    ("ListOffsetsResponse", "timestamp", -1, "none"),
    ("TransactionLogValue", "transaction_status", 2, "PrepareCommit"),
    ("TransactionLogValue", "transaction_start_timestamp_ms", -1, "none"),
    ("DescribeTransactionsResponse", "transaction_start_time_ms", 0, "1970-01-01T00:00:00.000Z"),
    ("ProduceResponse", "log_append_time_ms", 1_700_000_000_000, "2023-11-14T22:13:20.000Z"),
    ("OffsetCommitRequest", "retention_time_ms", 60_000, "1 min"),
    ("MetadataResponse", "topic_authorized_operations", -(2**31), "not requested"),
    ("MetadataResponse", "topic_authorized_operations", 0b11000, "READ, WRITE"),
    ("EndTxnRequest", "committed", True, "COMMIT"),
    ("OffsetCommitValue", "commit_timestamp", 1_700_000_000_000, "2023-11-14T22:13:20.000Z"),
    ("OffsetCommitValue", "commit_timestamp", 2**63 - 1, ""),
    ("FetchRequest", "topic", "t", ""),
    ("FetchRequest", "topic_id", ZERO_UUID, "none"),
]


@pytest.mark.parametrize(("message", "field", "value", "meaning"), CASES)
def test_a_meaning(message: str, field: str, value: object, meaning: str) -> None:
    assert meaning_of(message, message, field, value) == meaning


def attributes(message: str) -> Iterator[str]:
    def walk(fields: tuple[FieldSpec, ...]) -> Iterator[str]:
        for field in fields:
            yield snake_case(field.name)
            yield from walk(field.fields)

    spec = union()[message]
    yield from walk(spec.fields)
    for struct in spec.common_structs:
        yield from walk(struct.fields)


def test_every_row_is_of_a_field() -> None:
    everywhere = {name for message in union() for name in attributes(message)}
    for row in (*value_meanings._NAMES, *value_meanings._BY_FIELD):
        if isinstance(row, tuple):
            assert row[1] in set(attributes(row[0])), row
        else:
            assert row in everywhere, row


@pytest.mark.parametrize("value", [-(2**63), -(2**31), -1, 0, 1, 127, 2**31, 2**63 - 1])
def test_any_number_has_a_meaning_or_none(value: int) -> None:
    for message in ("FetchRequest", "DescribeAclsRequest", "PartitionRecord"):
        for field in attributes(message):
            assert isinstance(meaning_of(message, message, field, value), str)
