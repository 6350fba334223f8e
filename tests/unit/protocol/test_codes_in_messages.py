"""Tests that error codes are found at any depth of a message."""

from __future__ import annotations

from kproto import messages
from kproto.messages.base import Message
from kproto.protocol.codes_in_messages import error_codes_in
from kproto.schema.definitions import union
from kproto.schema.layout import StructLayout, layout, struct_of
from kproto.schema.naming import class_name
from kproto.testing.instances import Fill, instance


def places(shape: StructLayout) -> int:
    """Returns the number of error codes in an instance whose arrays have two elements each."""
    count = 0
    for field in shape.all_fields():
        inner = struct_of(field.type)
        if field.attribute == "error_code":
            count += 1
        elif inner is not None:
            count += places(inner) * (2 if field.type.element is not None else 1)
    return count


def test_every_code_of_every_response_is_met() -> None:
    met = 0
    for name, spec in union().items():
        if spec.type != "response" or not spec.valid_versions:
            continue
        cls: type[Message] = getattr(messages, class_name(name))
        version = spec.valid_versions.highest
        full = instance(cls, version, Fill.FULL)
        # Codes of fields that the version lacks are 0.
        found = [code for code in error_codes_in(full) if code]
        assert len(found) == places(layout(spec, version)), name
        met += len(found)
    assert met > 200


def test_no_error_is_a_code_too() -> None:
    assert list(error_codes_in(messages.HeartbeatResponse())) == [0]
    assert list(error_codes_in(messages.HeartbeatResponse(error_code=27))) == [27]
    assert list(error_codes_in(messages.HeartbeatRequest())) == []
