"""Tests the explanations of group errors, which name settings of the member and of others."""

from __future__ import annotations

from kproto.client.groups.error_explanations import with_explanation
from kproto.client.groups.settings import GroupSettings
from kproto.protocol.error_codes import code_of, error_of_code


def test_members_without_a_common_assignor_are_told_what_to_set_on_either_side() -> None:
    error = error_of_code(code_of("INCONSISTENT_GROUP_PROTOCOL"), "joining group g")
    text = str(with_explanation(error, GroupSettings("g"), None))
    assert "this member, which has range, cooperative-sticky" in text
    assert "assignors=['roundrobin'] beside aiokafka" in text
    assert "partition_assignment_strategy of the others" in text
