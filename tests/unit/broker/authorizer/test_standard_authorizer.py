"""Tests the rules of the authorizer one by one, and against a simple, slow model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.broker import Acl, Operation, PatternType, Permission, ResourceType
from kproto.broker.authorizer import AclFilter, Authorizer

TOPIC = ResourceType.TOPIC
HERE = "10.0.0.1"


@pytest.mark.parametrize(
    ("acls", "operation", "name", "expected"),
    [
        ((), "read", "t", False),
        (("allow User:alice read topic t",), "read", "t", True),
        (("allow User:alice read topic t",), "write", "t", False),
        (("allow User:alice read topic t",), "read", "tt", False),
        (("allow User:alice read topic t",), "read", "T", False),
        (("allow User:alice read group t",), "read", "t", False),
        (("allow User:bob read topic t",), "read", "t", False),
        (("allow User:* read topic t",), "read", "t", True),
        (("allow User:alice all topic t",), "alter-configs", "t", True),
        (("allow User:alice read topic *",), "read", "t", True),
        (("allow User:alice read topic t*",), "read", "tt", True),
        (("allow User:alice read topic t*",), "read", "t", True),
        (("allow User:alice read topic tt*",), "read", "t", False),
        (("allow User:alice read topic t 10.0.0.1",), "read", "t", True),
        (("allow User:alice read topic t 10.0.0.2",), "read", "t", False),
        # A deny ACL overrides every allow ACL.
        (("allow User:alice all topic t", "deny User:* read topic *"), "read", "t", False),
        (("deny User:alice all topic t*", "allow User:alice all topic t"), "read", "t", False),
        (("allow User:alice all topic t", "deny User:* read topic *"), "write", "t", True),
        (("allow User:alice read topic t", "deny User:alice read topic t 1.1.1.1"), "read", "t", 1),
        # Implied operations; only allow ACLs imply others.
        (("allow User:alice read topic t",), "describe", "t", True),
        (("allow User:alice write topic t",), "describe", "t", True),
        (("allow User:alice delete topic t",), "describe", "t", True),
        (("allow User:alice alter topic t",), "describe", "t", True),
        (("allow User:alice create topic t",), "describe", "t", False),
        (("allow User:alice alter-configs topic t",), "describe-configs", "t", True),
        (("allow User:alice alter topic t",), "describe-configs", "t", False),
        (
            ("allow User:alice describe topic t", "deny User:alice read topic t"),
            "describe",
            "t",
            True,
        ),
    ],
)
def test_each_rule_allows_or_denies(
    acls: tuple[str, ...], operation: str, name: str, expected: bool
) -> None:
    authorizer = Authorizer((), map(Acl.parse, acls))
    requested = Operation[operation.upper().replace("-", "_")]
    assert authorizer.allows("User:alice", HERE, requested, TOPIC, name) == bool(expected)


def test_super_users_may_do_all() -> None:
    authorizer = Authorizer(("User:root",), [Acl.parse("deny User:* all topic *")])
    assert authorizer.allows("User:root", HERE, Operation.WRITE, TOPIC, "t")
    assert authorizer.allows_any("User:root", HERE, Operation.WRITE, TOPIC)
    assert not authorizer.allows("User:alice", HERE, Operation.WRITE, TOPIC, "t")


def test_resource_without_acl_uses_the_default() -> None:
    acls = [Acl.parse("allow User:bob read topic t"), Acl.parse("allow User:bob read topic p*")]
    for allowed in (True, False):
        authorizer = Authorizer((), acls, allow_if_no_acl=allowed)
        verdicts = [
            authorizer.allows("User:alice", HERE, Operation.READ, TOPIC, name)
            for name in ("t", "pq", "other")
        ]
        assert verdicts == [False, False, allowed]


def test_acls_are_added_and_removed() -> None:
    authorizer = Authorizer()
    first, second = map(Acl.parse, ("allow User:a read topic t", "deny User:a read topic t"))
    for acl in (first, first, second):
        authorizer.add(acl)
    assert list(authorizer) == [first, second]
    assert authorizer.matching(AclFilter(permission=Permission.DENY)) == [second]
    assert not authorizer.allows("User:a", HERE, Operation.READ, TOPIC, "t")
    authorizer.remove(second)
    authorizer.remove(second)
    assert authorizer.allows("User:a", HERE, Operation.READ, TOPIC, "t")
    authorizer.remove(first)
    assert list(authorizer) == []


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ((), False),
        (("allow User:alice write topic some",), True),
        (("allow User:alice all topic some*",), True),
        (("allow User:alice read topic some",), False),
        (("allow User:alice write topic some", "deny User:* write topic *"), False),
        (("allow User:alice write topic some", "deny User:* write topic some"), False),
        (("allow User:alice write topic some", "deny User:* write topic so*"), False),
        (("allow User:alice write topic some*", "deny User:* write topic some"), True),
        (("allow User:alice write topic *", "deny User:* write topic so*"), True),
        (("allow User:alice write topic some 1.1.1.1",), False),
    ],
)
def test_allows_any_needs_a_resource_that_is_not_denied(
    acls: tuple[str, ...], expected: bool
) -> None:
    authorizer = Authorizer((), map(Acl.parse, acls))
    assert authorizer.allows_any("User:alice", HERE, Operation.WRITE, TOPIC) == expected


names = st.sampled_from(["a", "ab", "abc", "b", "*"])
acls = st.builds(
    Acl,
    st.sampled_from(["User:a", "User:b", "User:*"]),
    st.sampled_from([Operation.ALL, Operation.READ, Operation.DESCRIBE, Operation.ALTER_CONFIGS]),
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    names,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
    st.sampled_from(["*", HERE]),
)


def model_allows(acls: list[Acl], operation: Operation, name: str, default: bool) -> bool:
    """Returns whether User:a is allowed, by the rules in Kafka's documentation, in their order."""
    about = [
        acl
        for acl in acls
        if acl.resource_type is TOPIC
        and (
            acl.name == name
            or (acl.pattern_type is PatternType.PREFIXED and name.startswith(acl.name))
            or (acl.pattern_type is PatternType.LITERAL and acl.name == "*")
        )
    ]
    mine = [
        acl for acl in about if acl.principal in ("User:a", "User:*") and acl.host in ("*", HERE)
    ]
    denied = {acl.operation for acl in mine if acl.permission is Permission.DENY}
    allowed = {acl.operation for acl in mine if acl.permission is Permission.ALLOW}
    if denied & {Operation.ALL, operation}:
        return False
    implying = {Operation.ALL, operation}
    if operation is Operation.DESCRIBE:
        implying |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if operation is Operation.DESCRIBE_CONFIGS:
        implying |= {Operation.ALTER_CONFIGS}
    return bool(allowed & implying) or (not about and default)


@given(
    st.lists(acls, max_size=8, unique=True),
    st.sampled_from(
        [Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.WRITE]
    ),
    names,
    st.booleans(),
)
def test_random_acls_agree_with_the_model(
    given_acls: list[Acl], operation: Operation, name: str, default: bool
) -> None:
    authorizer = Authorizer((), given_acls, allow_if_no_acl=default)
    found = authorizer.allows("User:a", HERE, operation, TOPIC, name)
    assert found == model_allows(given_acls, operation, name, default)


@given(st.lists(acls, max_size=8), st.lists(acls, max_size=8))
def test_removed_acl_has_no_effect(kept: list[Acl], gone: list[Acl]) -> None:
    authorizer = Authorizer((), [*kept, *gone])
    for acl in set(gone) - set(kept):
        authorizer.remove(acl)
    assert set(authorizer) == set(kept)
