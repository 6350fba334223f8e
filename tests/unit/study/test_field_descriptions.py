"""Tests the descriptions of fields, which come from the glossary of kproto.schema."""

from __future__ import annotations

from kproto.messages import HeartbeatRequest
from kproto.study import annotate, to_json, to_text


def test_a_sentence_of_the_glossary() -> None:
    root = annotate(HeartbeatRequest(group_id="g").encode(4), HeartbeatRequest, 4)
    about = root.child("group_id").about
    assert about == "Id of the group, which its members name in group.id."
    assert to_json(root)["children"][0]["about"] == about
    assert [line.strip() for line in to_text(root, about=True)][2] == f"about: {about}"
    assert not any("about:" in line for line in to_text(root))
