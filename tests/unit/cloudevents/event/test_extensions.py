"""Tests typed extensions: how they are read, checked and registered."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from kproto_cloudevents import CloudEvent, CloudEventError, to_json
from kproto_cloudevents.extensions import (
    DATAREF,
    DISTRIBUTED_TRACING,
    DOCUMENTED,
    PARTITIONING,
    SAMPLED_RATE,
    SEQUENCE,
    Extension,
    ExtensionAttribute,
    ExtensionRegistry,
)
from kproto_cloudevents.values import types

EVENT = CloudEvent(id="1", source="/s", type="t")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01"


def test_text_becomes_the_declared_type() -> None:
    assert SAMPLED_RATE.read(EVENT.replace(sampledrate="30")) == {"sampledrate": 30}
    assert SAMPLED_RATE.read(EVENT.replace(sampledrate=30)) == {"sampledrate": 30}
    assert SAMPLED_RATE.read(EVENT) is None


def test_every_documented_extension() -> None:
    event = EVENT.replace(
        partitionkey="k",
        traceparent=PARENT,
        tracestate="a=b",
        sequence="0001",
        sequencetype="Integer",
        dataref="https://example.com/1",
        sampledrate="7",
        other="x",
    )
    assert DOCUMENTED.read(event) == {**event.extensions, "sampledrate": 7}
    assert isinstance(DOCUMENTED.read(event)["dataref"], types.UriReference)
    assert DOCUMENTED.read(EVENT) == {}


@pytest.mark.parametrize(
    ("extension", "attributes", "message"),
    [
        (SAMPLED_RATE, {"sampledrate": "0"}, 'sampledrate: "0" is not greater than zero'),
        (SAMPLED_RATE, {"sampledrate": "x"}, 'sampledrate: "x" is no whole number in decimal'),
        (PARTITIONING, {"partitionkey": ""}, 'partitionkey: "" must not be empty'),
        (SEQUENCE, {"sequence": "x", "sequencetype": "Integer"}, 'sequence: "x" is no Integer'),
        (SEQUENCE, {"sequence": "2147483648", "sequencetype": "Integer"}, "sequence: .* is no Int"),
        (SEQUENCE, {"sequence": "0" * 99, "sequencetype": "Integer"}, "sequence: .* is no Integer"),
        (SEQUENCE, {"sequence": "1", "sequencetype": ""}, 'sequencetype: "" must not be empty'),
        (DATAREF, {"dataref": "a b"}, 'dataref: "a b" is not a URI-reference'),
        (DISTRIBUTED_TRACING, {"traceparent": "00-1-2-3"}, "traceparent: .* is no traceparent"),
        (DISTRIBUTED_TRACING, {"traceparent": f"{PARENT}-x"}, "traceparent: .* is no traceparent"),
        (DISTRIBUTED_TRACING, {"traceparent": "ff" + PARENT[2:]}, "traceparent: .* is no tracep"),
        (SEQUENCE, {"sequencetype": "Integer"}, "sequence: the extension's required attribute"),
        (DISTRIBUTED_TRACING, {"tracestate": "a=b"}, "traceparent: the extension's required"),
    ],
)
def test_broken_extensions(
    extension: Extension, attributes: Mapping[str, str], message: str
) -> None:
    event = EVENT.replace(attributes)
    with pytest.raises(CloudEventError, match=f'{message}.*Extension "{extension.name}"'):
        extension.read(event)
    with pytest.raises(CloudEventError):
        DOCUMENTED.read(event)


def test_an_attribute_has_one_extension() -> None:
    registry = ExtensionRegistry([PARTITIONING])
    thief = Extension("Thief", ExtensionAttribute("partitionkey", types.INTEGER))
    with pytest.raises(CloudEventError, match="partitionkey: belongs to the extension Partition"):
        registry.register(thief)
    mine = Extension("Mine", ExtensionAttribute("flag", types.BOOLEAN))
    registry.register(mine)
    assert registry.owner("flag") is mine
    assert registry.owner("nothing") is None
    assert registry.read(EVENT.replace(flag="true", partitionkey="k")) == {
        "flag": True,
        "partitionkey": "k",
    }
    assert "flag" in repr(mine)


@pytest.mark.parametrize("sequence", ["1", "0000000001", "2147483647", "-2147483648"])
def test_sequences_of_integers(sequence: str) -> None:
    event = EVENT.replace(sequence=sequence, sequencetype="Integer")
    assert SEQUENCE.read(event) == {"sequence": sequence, "sequencetype": "Integer"}
    # With another sequencetype, any text but the empty one is valid.
    assert SEQUENCE.read(EVENT.replace(sequence="b", sequencetype="letters")) is not None


def test_a_traceparent_of_a_later_version_may_have_more() -> None:
    later = f"01{PARENT[2:]}-what.comes"
    assert DISTRIBUTED_TRACING.read(EVENT.replace(traceparent=later)) == {"traceparent": later}


def test_typed_events_have_native_values() -> None:
    read = EVENT.replace(sampledrate="30", other="5")
    assert b'"sampledrate":"30"' in to_json(read)
    typed = DOCUMENTED.typed(read)
    assert b'"sampledrate":30' in to_json(typed)
    assert typed == read
    assert DOCUMENTED.typed(typed) is typed
    assert DOCUMENTED.typed(EVENT) is EVENT
    flag = ExtensionRegistry([Extension("Mine", ExtensionAttribute("flag", types.BOOLEAN))])
    with pytest.raises(CloudEventError, match="Boolean is no type of this version"):
        flag.typed(CloudEvent(specversion="0.3", id="1", source="/s", type="t", flag="true"))
