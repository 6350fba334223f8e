"""What fields are for: from the glossary of kproto.schema, where there is one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from kproto.messages import HeartbeatRequest
from kproto.study import abouts, annotate, to_json, to_text

GLOSSARY = "kproto.schema.glossary"


class Glossary:
    """One that knows a single field."""

    def field(self, message: str, struct: str, field: str) -> str | None:
        known = ("HeartbeatRequest", "HeartbeatRequest", "GroupId")
        return "Id of the group." if (message, struct, field) == known else None


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    abouts.about_field.cache_clear()
    abouts._glossary.cache_clear()
    yield
    abouts.about_field.cache_clear()
    abouts._glossary.cache_clear()


def test_a_sentence_of_the_glossary(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(GLOSSARY)
    module.load_glossary = Glossary  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, GLOSSARY, module)
    root = annotate(HeartbeatRequest(group_id="g").encode(4), HeartbeatRequest, 4)
    assert root.child("group_id").about == "Id of the group."
    assert root.child("member_id").about == ""
    assert to_json(root)["children"][0]["about"] == "Id of the group."
    assert [line.strip() for line in to_text(root, about=True)][2] == "about: Id of the group."
    assert not any("about:" in line for line in to_text(root))


def test_without_a_glossary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, GLOSSARY, None)
    root = annotate(HeartbeatRequest(group_id="g").encode(4), HeartbeatRequest, 4)
    assert root.child("group_id").about == ""
