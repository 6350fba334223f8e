"""Tests ACLs: parsing from text, invalid ACLs, and filters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kproto import ConfigurationError
from kproto.broker import Acl, Operation, PatternType, Permission, ResourceType
from kproto.broker.authorizer import SUPPORTED_OPERATIONS, AclFilter

READ_T = Acl("User:alice", Operation.READ, ResourceType.TOPIC, "t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("allow User:alice read topic t", READ_T),
        ("ALLOW User:alice READ TOPIC t *", READ_T),
        (
            "deny User:* write topic tmp-* 10.0.0.1",
            Acl(
                "User:*",
                Operation.WRITE,
                ResourceType.TOPIC,
                "tmp-",
                PatternType.PREFIXED,
                Permission.DENY,
                "10.0.0.1",
            ),
        ),
        (
            "allow 'User:CN=me,O=my house' idempotent-write cluster kafka-cluster",
            Acl(
                "User:CN=me,O=my house",
                Operation.IDEMPOTENT_WRITE,
                ResourceType.CLUSTER,
                "kafka-cluster",
            ),
        ),
        (
            "allow User:a all transactional_id *",
            Acl("User:a", Operation.ALL, ResourceType.TRANSACTIONAL_ID, "*"),
        ),
    ],
)
def test_acls_as_text(text: str, expected: Acl) -> None:
    assert Acl.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has 0 words"),
        ("allow User:alice read topic", "has 4 words"),
        ("allow User:alice read topic t * more", "has 7 words"),
        ("permit User:alice read topic t", "'permit' is none of"),
        ("any User:alice read topic t", "invalid permission ANY"),
        ("allow alice read topic t", "not of the form Type:name"),
        ("allow User:alice reed topic t", "'reed' is none of"),
        ("allow User:alice unknown topic t", "'unknown' is none of"),
        ("allow User:alice any topic t", "invalid operation ANY"),
        ("allow User:alice read any t", "invalid resource type ANY"),
        ("allow User:alice alter cluster mine", "'kafka-cluster'"),
        ("allow User:alice read topic ''", "name of the resource is empty"),
        ("allow User:alice read topic t ''", "host is empty"),
        ("allow User:alice read topic 't", "No closing quotation"),
    ],
)
def test_invalid_acl_is_rejected(text: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        Acl.parse(text)


@pytest.mark.parametrize("pattern", [PatternType.UNKNOWN, PatternType.ANY, PatternType.MATCH])
def test_patterns_that_are_for_filters_alone(pattern: PatternType) -> None:
    with pytest.raises(ConfigurationError, match="invalid pattern type"):
        replace(READ_T, pattern_type=pattern)


def test_unknown_code_becomes_unknown() -> None:
    for words in (Operation, ResourceType, PatternType, Permission):
        assert words(99) is words(0) is words["UNKNOWN"]
        assert words(-1) is words["UNKNOWN"]


def test_every_resource_knows_its_operations() -> None:
    assert set(SUPPORTED_OPERATIONS) == set(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}
    for operations in SUPPORTED_OPERATIONS.values():
        assert not {Operation.UNKNOWN, Operation.ANY, Operation.ALL} & set(operations)


LITERAL_STAR = replace(READ_T, name="*")
PREFIX = replace(READ_T, pattern_type=PatternType.PREFIXED)
LONGER = replace(READ_T, name="ta")
OF_BOB = replace(READ_T, principal="User:bob", operation=Operation.ALL)
GROUP = replace(READ_T, resource_type=ResourceType.GROUP, permission=Permission.DENY)
ALL_ACLS = (READ_T, LITERAL_STAR, PREFIX, LONGER, OF_BOB, GROUP)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ALL_ACLS),
        ({"resource_type": ResourceType.GROUP}, (GROUP,)),
        ({"permission": Permission.DENY}, (GROUP,)),
        ({"principal": "User:bob"}, (OF_BOB,)),
        ({"operation": Operation.ALL}, (OF_BOB,)),
        ({"host": "10.0.0.1"}, ()),
        ({"host": "*"}, ALL_ACLS),
        ({"name": "t"}, (READ_T, PREFIX, OF_BOB, GROUP)),
        ({"name": "t", "pattern_type": PatternType.LITERAL}, (READ_T, OF_BOB, GROUP)),
        ({"name": "t", "pattern_type": PatternType.PREFIXED}, (PREFIX,)),
        ({"pattern_type": PatternType.PREFIXED}, (PREFIX,)),
        ({"name": "ta", "pattern_type": PatternType.MATCH}, (LITERAL_STAR, PREFIX, LONGER)),
        ({"name": "t", "pattern_type": PatternType.UNKNOWN}, ()),
        ({"operation": Operation.UNKNOWN}, ()),
    ],
)
def test_filters(wanted: dict[str, Any], expected: tuple[Acl, ...]) -> None:
    acl_filter = AclFilter(**wanted)
    assert tuple(acl for acl in ALL_ACLS if acl_filter.matches(acl)) == expected


def test_filters_with_unknown_codes_are_rejected() -> None:
    assert AclFilter().fault() is None
    assert "Operation" in (AclFilter(operation=Operation.UNKNOWN).fault() or "")
    assert "PatternType" in (AclFilter(pattern_type=PatternType.UNKNOWN).fault() or "")
