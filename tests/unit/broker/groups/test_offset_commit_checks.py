"""Tests checks of offset commits and deletes, by the group's state and its members."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kproto import BrokerResponseError
from kproto.broker.groups.classic_group_state import ClassicGroupState
from kproto.broker.groups.classic_members import ClassicMember, ClassicMembers
from kproto.broker.groups.offset_commit_checks import (
    resets_session,
    validate_offset_commit,
    validate_offset_delete,
    validate_transactional_commit,
)

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState
FINE = "NONE"


@dataclass
class ClassicGroup:
    """A group in generation 4 with member a and the static member b, whose instance id is i."""

    state: ClassicGroupState
    protocol_type: str | None = "consumer"
    generation: int = 4
    group_id: str = "g"
    roster: ClassicMembers = field(default_factory=lambda: roster({"a": None, "b": "i"}))

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        self.roster.check(member_id, instance_id)


def roster(instance_ids: dict[str, str | None]) -> ClassicMembers:
    made = ClassicMembers()
    for member_id, instance_id in instance_ids.items():
        made.add(ClassicMember(member_id, instance_id, "", "", 1, 1, ()))
    return made


def empty(protocol_type: str | None = "consumer") -> ClassicGroup:
    return ClassicGroup(EMPTY, protocol_type, roster=ClassicMembers())


def error_of_commit(
    group: ClassicGroup | None,
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    version: int = 10,
) -> str:
    try:
        validate_offset_commit(group, member, generation, instance, version)
    except BrokerResponseError as error:
        return error.name
    return FINE


@pytest.mark.parametrize("member", ["", "x"])
def test_missing_group_is_validated(member: str) -> None:
    assert error_of_commit(None, member) == error_of_commit(None, member, -7) == FINE, (
        "a simple consumer creates the group"
    )
    assert error_of_commit(None, member, 0) == "GROUP_ID_NOT_FOUND"
    assert error_of_commit(None, member, 0, version=9) == "GROUP_ID_NOT_FOUND"
    assert error_of_commit(None, member, 0, version=8) == "ILLEGAL_GENERATION"


def test_an_empty_group_accepts_simple_commits() -> None:
    for group in (empty(), empty(None)):
        assert (
            error_of_commit(group)
            == error_of_commit(group, "x")
            == error_of_commit(group, "x", -1, "i")
            == FINE
        )
        assert (
            error_of_commit(group, "x", 4) == error_of_commit(group, "", 4) == "UNKNOWN_MEMBER_ID"
        )
        assert error_of_commit(group, "x", 4, "i") == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("state", [PREPARING, STABLE])
def test_members_commit_in_stable_and_preparing_rebalance(state: ClassicGroupState) -> None:
    group = ClassicGroup(state)
    assert (
        error_of_commit(group, "a", 4)
        == error_of_commit(group, "b", 4)
        == error_of_commit(group, "b", 4, "i")
        == FINE
    )
    assert resets_session(group)


@pytest.mark.parametrize("state", [PREPARING, COMPLETING, STABLE])
def test_foreign_members_and_generations_are_rejected(state: ClassicGroupState) -> None:
    group = ClassicGroup(state)
    assert error_of_commit(group) == "UNKNOWN_MEMBER_ID", "a simple consumer"
    assert error_of_commit(group, "x", 4) == error_of_commit(group, "", 4) == "UNKNOWN_MEMBER_ID"
    assert error_of_commit(group, "a", 4, "j") == "UNKNOWN_MEMBER_ID"
    assert error_of_commit(group, "a", 4, "i") == "FENCED_INSTANCE_ID"
    assert (
        error_of_commit(group, "a", 3)
        == error_of_commit(group, "a", 5)
        == error_of_commit(group, "a")
        == "ILLEGAL_GENERATION"
    )
    assert (
        error_of_commit(group, "b", 3, "i")
        == error_of_commit(group, "b", -1, "i")
        == "ILLEGAL_GENERATION"
    )
    assert error_of_commit(group, "", -1, "i") == "FENCED_INSTANCE_ID"


def test_commit_during_completing_rebalance_is_rejected() -> None:
    group = ClassicGroup(COMPLETING)
    assert (
        error_of_commit(group, "a", 4)
        == error_of_commit(group, "b", 4, "i")
        == "REBALANCE_IN_PROGRESS"
    )
    assert error_of_commit(group, "a", 3) == "ILLEGAL_GENERATION", "the generation is checked first"
    assert not resets_session(group)


def test_dead_group_rejects_commit() -> None:
    group = ClassicGroup(DEAD, roster=ClassicMembers())
    assert error_of_commit(group) == error_of_commit(group, "a", 4) == "COORDINATOR_NOT_AVAILABLE"
    assert not resets_session(empty())


# Commits of transactions (KIP-447)


def error_of_transactional_commit(
    group: ClassicGroup | None,
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    version: int = 6,
) -> str:
    try:
        validate_transactional_commit(group, member, generation, instance, version)
    except BrokerResponseError as error:
        return error.name
    return FINE


def test_transaction_of_a_missing_group_is_validated() -> None:
    assert error_of_transactional_commit(None) == FINE
    assert error_of_transactional_commit(None, "x", -7, "i") == FINE
    assert error_of_transactional_commit(None, "", 0) == "GROUP_ID_NOT_FOUND"
    assert error_of_transactional_commit(None, "", 0, version=5) == "ILLEGAL_GENERATION"


@pytest.mark.parametrize("state", [PREPARING, COMPLETING, STABLE])
def test_transaction_without_a_member_may_commit_for_a_group_with_members(
    state: ClassicGroupState,
) -> None:
    assert error_of_transactional_commit(ClassicGroup(state)) == FINE


def test_transaction_commits_for_an_empty_group_without_a_generation() -> None:
    assert error_of_transactional_commit(empty()) == FINE
    assert error_of_transactional_commit(empty(), "x", -1, "i") == FINE
    assert error_of_transactional_commit(empty(), "x", 4) == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("state", [PREPARING, COMPLETING, STABLE])
@pytest.mark.parametrize(
    ("member", "generation", "instance", "expected"),
    [
        ("a", 4, None, FINE),
        ("b", 4, "i", FINE),
        ("b", 4, None, FINE),
        ("a", 3, None, "ILLEGAL_GENERATION"),
        ("a", 5, None, "ILLEGAL_GENERATION"),
        ("a", -1, None, "ILLEGAL_GENERATION"),
        ("x", 4, None, "UNKNOWN_MEMBER_ID"),
        ("", 4, None, "UNKNOWN_MEMBER_ID"),
        ("x", -1, None, "UNKNOWN_MEMBER_ID"),
        ("a", 4, "i", "FENCED_INSTANCE_ID"),
        ("", -1, "i", "FENCED_INSTANCE_ID"),
        ("a", 4, "j", "UNKNOWN_MEMBER_ID"),
    ],
)
def test_transaction_with_a_member_is_validated(
    state: ClassicGroupState, member: str, generation: int, instance: str | None, expected: str
) -> None:
    """Unlike OffsetCommit, TxnOffsetCommit is accepted while the group waits for an assignment."""
    group = ClassicGroup(state)
    assert error_of_transactional_commit(group, member, generation, instance) == expected


def test_dead_group_rejects_transactions() -> None:
    group = ClassicGroup(DEAD, roster=ClassicMembers())
    assert error_of_transactional_commit(group) == "COORDINATOR_NOT_AVAILABLE"


def deleting(group: ClassicGroup | None) -> str:
    try:
        validate_offset_delete(group)
    except BrokerResponseError as error:
        return error.name
    return FINE


def test_offset_delete_is_validated_by_state() -> None:
    assert deleting(None) == deleting(ClassicGroup(DEAD)) == "GROUP_ID_NOT_FOUND"
    assert deleting(empty()) == deleting(empty(None)) == deleting(empty("connect")) == FINE
    for state in (PREPARING, COMPLETING, STABLE):
        assert deleting(ClassicGroup(state)) == FINE, "topic by topic"
        assert deleting(ClassicGroup(state, "connect")) == "NON_EMPTY_GROUP"
        assert deleting(ClassicGroup(state, None)) == "NON_EMPTY_GROUP"
